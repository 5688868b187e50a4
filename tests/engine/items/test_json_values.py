"""JSON values are equal by value, with numbers by their literal (DESIGN 4.3)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine import items


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("1", "1", True), ("1", "1.0", False), ("1", "1e0", False), ("1", "true", False),
        ("0", "false", False), ("0", "-0", False), ("null", "0", False), ("null", "null", True),
        ('""', "null", False), ("[]", "null", False), ("{}", "[]", False), ('"1"', "1", False),
        ("[1,2]", "[2,1]", False), ("[1]", "[1,1]", False), ('{"a":1,"b":2}', '{"b":2,"a":1}', True),
        ('{"a":null}', "{}", False), ("{}", '{"a":null}', False), ('"\\u00e9"', '"é"', True),
        ('"\\ud83d\\ude00"', '"😀"', True), ('"e\\u0301"', '"é"', False), ("NaN", "NaN", True),
        ("1E5", "1e5", False), ("12345678901234567890123", "12345678901234567890124", False),
        ("0.1", "0.10000000000000000555", False),
    ],
)  # fmt: skip
def test_json_values_are_equal_by_value_with_numbers_by_their_literal(one, other, equal):
    assert items.same_json(items.parse(one), items.parse(other)) == equal
    assert (items.plain_difference(items.parse(other), items.parse(one)) is None) == equal


def test_a_truth_value_is_no_number_however_it_was_read():
    assert not items.same_json(1, True)
    assert not items.same_json({"a": [False]}, {"a": [0]})


def test_a_difference_of_plain_values_is_told_by_its_path():
    one, two = items.parse('{"a":[{"b":1}]}'), items.parse('{"a":[{"b":2}]}')
    assert items.plain_difference(one, two) == ("a", 0, "b")
    assert items.plain_difference(one, items.parse('{"a":[]}')) == ("a", 0)
    assert items.plain_difference(one, items.parse('{"a":[{"b":1}],"z":1}')) == ("z",)


@pytest.mark.parametrize("made", [True, False])
def test_the_place_that_is_told_is_the_first_in_what_is_held(made):
    one, other = {"type": "t", "a": "x", "b": "x"}, {"b": "y", "a": "y", "type": "t"}
    assert items.difference(one, other, model_made=made) == ("a",)
    assert items.difference([one], [other], model_made=made) == (0, "a")
    assert items.plain_difference(one, other) == ("a",)
    search = {"type": "web_search_call"}
    held, now = {**search, "action": one}, {**search, "action": other}
    assert items.difference(held, now, model_made=made) == ("action", "a")


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("key", ["action", "arguments", "content", "unknown"])
def test_so_it_is_inside_of_objects_and_lists(key, made):
    one, other = {"a": "x", "b": "x"}, {"b": "y", "a": "y"}
    for held, now, path in (
        (one, other, ("a",)),
        ([one], [other], (0, "a")),
        ([[one]], [[other]], (0, 0, "a")),
        ({"k": [[one]]}, {"k": [[other]]}, ("k", 0, 0, "a")),
    ):
        where = items.difference({"type": "t", key: held}, {"type": "t", key: now}, model_made=made)
        assert where == (key, *path)


def test_items_that_are_no_objects_are_compared_as_values():
    assert items.difference("a", "a", model_made=True) is None
    for made in (True, False):
        assert items.difference("a", {}, model_made=made) == ()
        assert items.difference({"type": "t"}, "a", model_made=made) == ()
        assert items.difference({"type": "t"}, ["type"], model_made=made) == ()


def test_an_ambiguous_object_is_refused_at_any_depth():
    with pytest.raises(items.AmbiguousJSON):
        items.parse('{"a":[{"b":1,"b":1}]}')


def test_all_forms_of_text_are_read_alike():
    assert items.parse(Raw(b'"\xc3\xa9"')) == items.parse('"é"') == items.parse(b'"\\u00e9"')


def test_a_lone_surrogate_in_bytes_is_read_as_it_is_when_escaped():
    assert items.parse(b'"\xed\xa0\x80"') == items.parse('"\\ud800"') == "\ud800"


def test_a_lone_surrogate_is_a_character_like_any_other():
    assert not items.same_json(items.parse('"\\ud800"'), items.parse('"\\udc00"'))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(JSON, JSON)
def test_plain_equality_agrees_with_sorted_text(one, other):
    a, b = json.dumps(one, sort_keys=True), json.dumps(other, sort_keys=True)
    assert items.same_json(items.parse(a), items.parse(b)) == (a == b)
