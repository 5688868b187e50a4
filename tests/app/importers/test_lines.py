import io

import pytest

from app.importers.lines import Line, from_first, split


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\n", [Line(1, b"a")]),
        (b"a\r\n\nb\n", [Line(1, b"a\r"), Line(2, b""), Line(3, b"b")]),
        (b"a\nb", [Line(1, b"a"), Line(2, b"b", whole=False)]),
        (b"12345\nb\n", [Line(1, b"12345"), Line(2, b"b")]),
        (b"123456\nb\n", [Line(1, b"", too_long=True), Line(2, b"b")]),
        (b"1" * 99 + b"\nb\n", [Line(1, b"", too_long=True), Line(2, b"b")]),
        (b"1" * 99, [Line(1, b"", whole=False, too_long=True)]),
    ],
)
def test_lines_are_numbered_and_one_that_is_too_long_takes_no_memory(data: bytes, lines):
    assert lines == list(split(io.BytesIO(data), limit=5))


def test_blank_lines_at_the_beginning_are_passed_over_and_no_others():
    blank, long, last = Line(1, b" \r"), Line(2, b"", too_long=True), Line(3, b"a")
    assert [long, blank, last] == list(from_first([blank, blank, long, blank, last]))
    assert [] == list(from_first([blank]))
