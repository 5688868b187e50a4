import pytest

from app.importers.importer import Skipped
from app.importers.json_lines import count, first_records, inner, number, records, text
from app.importers.lines import Line
from tests.support.importing import lines_of


def test_each_line_is_an_object_or_is_told_and_empty_ones_are_nothing():
    data = b'\xef\xbb\xbf{"a":1}\n\n[1]\n{"b":\n{"c":2}'
    assert [
        (1, {"a": 1}),
        Skipped(3, "is not one JSON object"),
        Skipped(4, "is not one JSON object"),
        (5, {"c": 2}),
    ] == list(records(lines_of(data)))


def test_a_torn_last_line_and_one_that_is_too_long_are_told():
    assert [Skipped(1, "ends within its record")] == list(records(lines_of(b'{"a":')))
    assert [Skipped(1, "is too long")] == list(records([Line(1, b"", too_long=True)]))


def test_the_first_records_are_the_objects_among_the_first_lines():
    assert [{"a": 1}, {"b": 2}] == list(first_records(b'{"a":1}\nx\n{"b":2}\n{"torn'))
    assert [] == list(first_records(b"\n" * 10 + b'{"a":1}'))


@pytest.mark.parametrize(
    ("value", "as_count", "as_number"),
    [
        (3, 3, 3.0),
        (3.0, 3, 3.0),
        (3.5, None, 3.5),
        (0, 0, 0.0),
        (-1, None, None),
        (True, None, None),
        ("3", None, None),
        (None, None, None),
        (1e300, None, None),
    ],
)
def test_what_is_not_of_its_type_is_unknown(value, as_count, as_number):
    assert as_count == count(value)
    assert as_number == number(value)


def test_texts_say_something_and_objects_are_there():
    assert ["a", None, None] == [text("a"), text(""), text(1)]
    assert [{"a": 1}, {}, {}] == [inner({"a": 1}), inner(None), inner([1])]
