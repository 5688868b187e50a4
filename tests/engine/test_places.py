"""The place of a difference: pointer, offset, line, lengths, digests, nature."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import items
from engine.places import MISSING, Teller, canonical, value_at

TELLER = Teller(b"k" * 32, {"output", "content", "text", "list", "a/b", "c~d"})


def parsed(value):
    return items.parse(json.dumps(value))


def place(before, now, **options):
    one, other = parsed(before), parsed(now)
    return TELLER.place(one, other, items.plain_difference(one, other), **options)


def told(before, now, *names):
    found = place({"output": before}, {"output": now})
    return tuple(getattr(found, name) for name in names)


def test_a_text_is_told_by_offset_and_lengths():
    found = place({"text": "abc"}, {"text": "abXY"})
    assert ("/text", 2, None) == (found.path, found.offset, found.line)
    assert (3, 4) == (found.length_before, found.length_now)


def test_a_text_of_several_lines_is_told_by_line():
    assert (3, 8) == told("one\ntwo\nthree", "one\ntwo\nThree", "line", "offset")
    assert (1, 0) == told("one", "One\ntwo", "line", "offset")


@pytest.mark.parametrize(
    ("before", "now", "path", "nature"),
    [
        ({"list": [1, 2]}, {"list": [2, 1]}, "/list/0", "reordered"),
        ({"list": ["x", {"text": 1}, {"text": 2}]}, {"list": ["x", {"text": 2}, {"text": 1}]}, "/list/1", "reordered"),
        ({"list": [1, 2, 3]}, {"list": [1, 3]}, "/list/1", "removed"),
        ({"list": [1, 3]}, {"list": [1, 2, 3]}, "/list/1", "added"),
        ({"list": [1, 2, 3]}, {"list": [1, 4, 5, 6]}, "/list/1", "number"),
        ({"list": []}, {"list": ["x"]}, "/list/0", "added"),
        ({"text": "x"}, {}, "/text", "removed"), ({}, {"text": "x"}, "/text", "added"),
        ({"text": "x"}, {"text": None}, "/text", "removed"),
        ({"text": 1}, {"text": 1.0}, "/text", "number"), ({"text": 1}, {"text": "1"}, "/text", "type"),
        ({"text": True}, {"text": False}, "/text", "rewritten"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_told_by_its_nature(before, now, path, nature):
    found = place(before, now)
    assert (path, nature, None) == (found.path, found.nature, found.offset)


@pytest.mark.parametrize("wrap", [lambda value: value, json.dumps,
                                  lambda value: json.dumps({"text": json.dumps(value)})])  # fmt: skip
def test_json_in_a_string_is_followed_to_the_place_in_it(wrap):
    path, offset = told(
        wrap({"text": "abc", "list": 1}), wrap({"list": 1, "text": "abd"}), "path", "offset"
    )
    assert path.startswith("/output")
    assert path.endswith("/text")
    assert 2 == offset


def test_a_list_in_a_string_is_followed_too():
    assert ("/output/1", "added") == told('["a"]', '["a","b"]', "path", "nature")
    assert ("/output", "rewritten") == told('["a"]', '{"a":1}', "path", "nature")


def test_json_that_is_only_spelled_otherwise_is_told_as_such():
    assert ("/output", 5, "reserialized") == told('{"a":1}', '{"a": 1}', "path", "offset", "nature")
    inner = [json.dumps({"text": json.dumps([1, 2], indent=n)}) for n in (None, 1)]
    assert ("/output/text", "reserialized") == told(*inner, "path", "nature")


@pytest.mark.parametrize("other", ["no json", "5", '{"a":1,"a":1}', '["a"'])
def test_a_string_that_holds_no_json_stays_one(other):
    assert ("/output",) == told('{"a":1}', other, "path")


def test_where_nobody_asks_for_it_json_is_not_followed():
    assert "/output" == place({"output": '{"a":1}'}, {"output": '{"a":2}'}, inside_json=False).path


def test_of_very_long_lists_only_the_first_difference_is_told():
    one = list(range(5_000))
    assert ("/output/0", "reordered") == told(one[:1_500], one[:1_500][::-1], "path", "nature")
    assert ("/output/0", "number") == told(one, one[::-1], "path", "nature")


def test_json_is_followed_to_a_bounded_depth():
    one, other = '{"text":"a"}', '{"text":"b"}'
    for _ in range(9):
        one, other = json.dumps({"text": one}), json.dumps({"text": other})
    assert ("/output" + "/text" * 4,) == told(one, other, "path")


def test_unknown_keys_are_digests_and_known_ones_are_escaped():
    found = place({"a/b": {"secret": {"c~d": 1}}}, {"a/b": {"secret": {"c~d": 2}}})
    first, hashed, last = found.path.split("/")[1:]
    assert ("a~1b", "c~0d") == (first, last)
    assert ("~", 9) == (hashed[0], len(hashed))
    other = Teller(b"o" * 32, TELLER.shown)
    assert hashed != other.name("secret")
    assert hashed == TELLER.name("secret")


def test_digests_are_those_of_the_values_whatever_their_spelling():
    assert TELLER.digest(parsed({"a": 1, "b": [2]})) == TELLER.digest(parsed({"b": [2], "a": 1}))
    assert TELLER.digest(parsed(1)) != TELLER.digest(parsed(1.0))
    assert TELLER.digest("x") != Teller(b"o" * 32, ()).digest("x")
    assert TELLER.digest(MISSING) is None


def test_lone_surrogates_have_digests_too():
    assert TELLER.digest("\ud800") != TELLER.digest("\ud801")
    assert TELLER.digest({"\ud800": 1}) is not None


def test_the_short_spelling_of_a_message_is_its_text():
    assert "hello" == value_at({"content": "hello"}, ("content", 0, "text"))
    assert MISSING is value_at({"content": "hello"}, ("content", 1, "text"))
    assert MISSING is value_at({"content": 5}, ("content", 0))
    assert MISSING is value_at([], (0,))


def test_a_place_in_the_short_spelling_is_told_as_in_the_long_one():
    short, long = {"content": "ab"}, {"content": [{"type": "output_text", "text": "ac"}]}
    found = TELLER.place(short, long, ("content", 0, "text"))
    assert ("/content/0/text", 1, 2) == (found.path, found.offset, found.length_before)


def test_what_is_unknown_is_left_out_of_the_details():
    assert {"path", "length_now", "digest_now", "nature"} == set(place({}, {"text": "x"}).as_dict())
    assert "path" not in TELLER.place("a", "b", ()).as_dict()


def test_what_is_not_json_has_no_canonical_text():
    with pytest.raises(TypeError):
        canonical(object())


def deep():
    value: list = []
    for _ in range(5000):
        value = [value]
    return value


def test_values_too_deep_to_be_written_are_no_fault():
    assert "type" == TELLER.place([1, deep()], ["1", deep()], (0,)).nature
    assert TELLER.digest(deep()) is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(json_values, json_values)
def test_values_differ_exactly_where_their_canonical_texts_do(one, other):
    before, now = parsed(one), parsed(other)
    assert (canonical(before) == canonical(now)) == items.same_json(before, now)


@given(json_values, json_values)
def test_any_difference_has_a_place(one, other):
    before, now = parsed({"text": one}), parsed({"text": other})
    if (where := items.plain_difference(before, now)) is not None:
        found = TELLER.place(before, now, where)
        assert found.digest_before != found.digest_now
        assert found.path.startswith("/text")


class Everything:
    """All keys are visible."""

    def __contains__(self, key):
        return True


def resolve(value, pointer):
    """A naive reading of a pointer that may lead into JSON in strings."""
    for step in pointer.split("/")[1:]:
        value = json.loads(value) if isinstance(value, str) else value
        name = step.replace("~1", "/").replace("~0", "~")
        try:
            value = value[int(name) if isinstance(value, list) else name]
        except (KeyError, IndexError):
            return MISSING
    return value


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, min_size=1, max_size=3).map(json.dumps),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["a", "b/c"]), nested, min_size=1), st.data())
def test_the_pointer_leads_to_two_values_that_differ(one, data):
    other = {key: data.draw(st.just(value) | nested) for key, value in one.items()}
    before, now = parsed(one), parsed(other)
    if (where := items.plain_difference(before, now)) is None:
        return
    found = Teller(b"k" * 32, Everything()).place(before, now, where)
    held, sent = resolve(one, found.path), resolve(other, found.path)
    if found.nature == "removed" and isinstance(sent, type(held)) and sent is not MISSING:
        return  # another element has moved up into the place of the one that is gone
    if found.nature == "added" and isinstance(held, type(sent)) and held is not MISSING:
        return
    assert json.dumps(held, default=str) != json.dumps(sent, default=str)
    if isinstance(held, str) and isinstance(sent, str) and found.nature != "reordered":
        assert held[: found.offset] == sent[: found.offset]
        assert held[found.offset : found.offset + 1] != sent[found.offset : found.offset + 1]
        assert (len(held), len(sent)) == (found.length_before, found.length_now)
