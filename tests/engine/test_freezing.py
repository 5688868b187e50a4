"""An old tool output that differs in the frozen keys alone is the one that the model has seen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import freezing, items
from tests.support.frozen_oracle import same_under, written_without

KEYS = ("_meta",)
META = {"tokens_left": 41_200, "at": ["08:41", 1.0]}


def gave(output: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "call_1", "output": output, **more}


def difference(held: Any, now: Any, keys: tuple[str, ...] = KEYS) -> items.Path | None:
    """Of two items, given as values or as JSON texts; both ways, for being the same has no side."""
    one, other = (each if isinstance(each, str) else json.dumps(each) for each in (held, now))
    there, back = parted(one, other, keys), parted(other, one, keys)
    assert (there is None) == (back is None)
    assert (there is None) == same_under(keys, one, other)
    return there


def parted(
    one: str, other: str, keys: tuple[str, ...] = KEYS, *, made: bool | None = None
) -> items.Path | None:
    held, now = items.parse(one), items.parse(other)
    made = items.made_by_model(held) if made is None else made
    return freezing.difference(held, now, model_made=made, freeze=keys)


def text(**members: Any) -> str:
    return json.dumps(members)


SAME = {
    "a text that lost it": (gave(text(ok=1, _meta=META)), gave(text(ok=1))),
    "a text that won it": (gave(text(ok=1)), gave(text(ok=1, _meta=META))),
    "a text with another value of it": (gave(text(ok=1, _meta=1)), gave(text(ok=1, _meta=META))),
    "a text in which it stood first": (gave(text(_meta=META, ok=1)), gave(text(ok=1))),
    "a text in which it stood in between": (gave(text(a=1, _meta=0, b=2)), gave(text(a=1, b=2))),
    "a text in which it stands elsewhere": (gave(text(_meta=0, a=1)), gave(text(a=1, _meta=0))),
    "a text that held nothing else": (gave(text(_meta=META)), gave("{}")),
    "a text with line ends": (
        gave(json.dumps({"ok": 1, "_meta": META}, indent=2)),
        gave(json.dumps({"ok": 1}, indent=2)),
    ),
    "a text with blanks around it": (gave(' {"ok":1,"_meta":1}\n'), gave(' {"ok":1}\n')),
    "deep in a text": (gave(text(a=[{"b": {"_meta": 1, "c": 2}}])), gave(text(a=[{"b": {"c": 2}}]))),
    "in several places of a text": (
        gave('[{"_meta":1,"a":1},{"a":[2],"_meta":[1]},{"_meta":{}},{"a":"\\n","_meta":""}]'),
        gave('[{"a":1},{"a":[2]},{},{"a":"\\n"}]'),
    ),
    "a text in a text": (gave(text(a=text(b=1, _meta=META))), gave(text(a=text(b=1)))),
    "a text in a text in a text": (
        gave(text(a=text(b=text(c="é🙂\n", _meta=META)))),
        gave(text(a=text(b=text(c="é🙂\n")))),
    ),
    "a text in a text in a text in a text": (
        gave(text(a=text(b=text(c=text(d=1, _meta=META))))),
        gave(text(a=text(b=text(c=text(d=1))))),
    ),
    "a text that spells it with escapes": (gave('{"ok":1,"\\u005fmeta":1}'), gave('{"ok":1}')),
    "a part whose text is JSON": (
        gave([{"type": "input_text", "text": text(ok=1, _meta=META)}]),
        gave([{"type": "input_text", "text": text(ok=1)}]),
    ),
    "a part that has it": (
        gave([{"type": "input_text", "text": "ok", "_meta": META}]),
        gave([{"type": "input_text", "text": "ok"}]),
    ),
    "an object": (gave({"ok": [1, {"_meta": META}]}), gave({"ok": [1, {}]})),
    "an object whose keys come in another order": (
        gave({"a": 1, "_meta": 1, "b": 2}),
        gave({"b": 2, "a": 1}),
    ),
    "an item in another order, and without its id": (
        gave(text(ok=1, _meta=META), id="fco_1", metadata={}),
        {"output": text(ok=1), "call_id": "call_1", "type": "function_call_output"},
    ),
    "the output of a custom tool": (
        {**gave(text(ok=1, _meta=META)), "type": "custom_tool_call_output"},
        {**gave(text(ok=1)), "type": "custom_tool_call_output"},
    ),
    "the output of a shell": (
        {**gave([{"stdout": text(ok=1, _meta=1), "outcome": {}}]), "type": "shell_call_output"},
        {**gave([{"stdout": text(ok=1), "outcome": {}}]), "type": "shell_call_output"},
    ),
    "the result of a program": (
        {"type": "program_output", "call_id": "c", "result": text(ok=1, _meta=META)},
        {"type": "program_output", "call_id": "c", "result": text(ok=1)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_differs_in_a_frozen_key_alone_is_the_seen_one(name):
    held, now = SAME[name]
    assert difference(held, now) is None


@pytest.mark.parametrize("name", SAME)
def test_without_the_key_it_is_a_change(name):
    held, now = SAME[name]
    where = difference(held, now, ())
    assert where is not None
    assert difference(held, now, ("other",)) == where


SEEN = text(ok=1, _meta=META)
OTHER = {
    "another value in another key": (gave(SEEN), gave(text(ok=2)), ("output",)),
    "another key": (gave(SEEN), gave(text(ok=1, meta=META)), ("output",)),
    "one more key": (gave(SEEN), gave(text(ok=1, new=1)), ("output",)),
    "an empty text": (gave(text(_meta=META)), gave(""), ("output",)),
    "the key beside the output": (gave("a", _meta=1), gave("a", _meta=2), ("_meta",)),
    "the key beside an output that differs in it": (
        gave(SEEN, _meta=1), gave(text(ok=1), _meta=2), ("_meta",)),
    "the output of another call": (gave(SEEN), gave(text(ok=1), call_id="call_2"), ("call_id",)),
    "another id": (gave(SEEN, id="a"), gave(text(ok=1), id="b"), ("id",)),
    "another kind of output": (
        gave(SEEN), {**gave(text(ok=1)), "type": "custom_tool_call_output"}, ("type",)),
    "a text for an object": (gave({"ok": 1, "_meta": 1}), gave(text(ok=1)), ("output",)),
    "a text for a part": (
        gave(SEEN), gave([{"type": "input_text", "text": text(ok=1)}]), ("output",)),
    "a part less": (gave([{"text": "a"}, {"_meta": 1}]), gave([{"text": "a"}]), ("output", 1)),
    "a text that is no JSON": (gave("ok, _meta: 1"), gave("ok, _meta: 2"), ("output",)),
    "a text of which half is JSON": (gave('> {"_meta":1}'), gave('> {"_meta":2}'), ("output",)),
    "a text with JSON behind JSON": (gave('{"_meta":1} {}'), gave('{"_meta":2} {}'), ("output",)),
    "a text that is one JSON string": (gave('"_meta"'), gave('"meta"'), ("output",)),
    "a number with another literal": (gave('{"a":1,"_meta":1}'), gave('{"a":1.0}'), ("output",)),
    "another literal in an object": (
        '{"type":"function_call_output","call_id":"c","output":{"a":1,"_meta":1}}',
        '{"type":"function_call_output","call_id":"c","output":{"a":1.0}}', ("output", "a")),
    "keys of a text in another order": (gave(text(a=1, b=2, _meta=1)), gave(text(b=2, a=1)), ("output",)),
    "other blanks in a text": (gave('{"a": 1,"_meta":1}'), gave('{"a":1}'), ("output",)),
    "other blanks in an empty object": (gave('{"a":{},"_meta":1}'), gave('{"a":{ }}'), ("output",)),
    "other escapes in a text": (gave('{"a":"/","_meta":1}'), gave('{"a":"\\/"}'), ("output",)),
    "a key that stands twice": (gave('{"a":1,"a":2,"_meta":1}'), gave('{"a":1,"a":2}'), ("output",)),
    "the frozen key twice": (gave('{"_meta":1,"_meta":2,"a":1}'), gave('{"a":1}'), ("output",)),
    "a key that stands twice in what is frozen": (
        gave('{"_meta":{"x":1,"x":2},"a":1}'), gave('{"a":1}'), ("output",)),
    "a text in a text in a text in a text in a text": (
        gave(text(a=text(a=text(a=text(a=text(_meta=1)))))),
        gave(text(a=text(a=text(a=text(a=text(_meta=2)))))), ("output",)),
    "the key inside a key": (gave('{"{\\"_meta\\":1}":0}'), gave('{"{}":0}'), ("output",)),
    "what a user says": (
        {"role": "user", "content": text(ok=1, _meta=1)}, {"role": "user", "content": text(ok=1)},
        ("content",)),
    "arguments of a call": (
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": text(ok=1, _meta=1)},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": text(ok=1)},
        ("arguments",)),
    "the input of a custom tool": (
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": text(ok=1, _meta=1)},
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": text(ok=1)},
        ("input",)),
    "what a model's own tool gave back": (
        {"type": "mcp_call", "name": "f", "output": text(ok=1, _meta=1)},
        {"type": "mcp_call", "name": "f", "output": text(ok=1)}, ("output",)),
    "tools that were found": (
        {"type": "tool_search_output", "tools": [{"_meta": 1}]},
        {"type": "tool_search_output", "tools": [{}]}, ("tools", 0, "_meta")),
    "an output beside the result": (
        {"type": "program_output", "call_id": "c", "result": "a", "output": text(_meta=1)},
        {"type": "program_output", "call_id": "c", "result": "a", "output": text(_meta=2)},
        ("output",)),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER)
def test_any_other_difference_is_one_and_is_told_where_it_is(name):
    held, now, where = OTHER[name]
    assert where == difference(held, now)


@pytest.mark.parametrize(
    "text", ['{"a":"\\n","b":true}', '{"b":true,"a":1}', '{"true":1}', '["true"]']
)
def test_a_word_that_is_a_key_only_elsewhere_is_none(text):
    assert written_without(("true",), text) == freezing.cut(text, ("true",))


def test_a_word_before_the_key_hides_it_not():
    assert '{"b":true}' == freezing.cut('{"b":true,"true":1}', ("true",))
    assert '{"b":[1,"\\n"]}' == freezing.cut('{"b":[1,"\\n"],"1":1}', ("1",))


def test_a_large_text_is_cut_in_one_pass():
    """A pass that went back to the beginning for each member would take minutes."""
    rows = [{"n": n, "_meta": n, "s": "a\n"} for n in range(4_000)]
    left = [{"n": n, "s": "a\n"} for n in range(4_000)]
    assert json.dumps(left, indent=1) == freezing.cut(json.dumps(rows, indent=1), KEYS)


def test_several_keys_may_be_frozen_and_any_text_may_be_a_key():
    odd = ('say "when"', "étape", "a/b", "_meta")
    held = gave(text(ok=1, **dict.fromkeys(odd, 1)))
    assert difference(held, gave(text(ok=1)), odd) is None
    assert ("output",) == difference(held, gave(text(ok=1)), odd[1:])


@pytest.mark.parametrize(
    ("spelled", "left"),
    [
        ('{"a":1 , "_meta":1 ,"at" : 2, "b":3,"_meta2":4}', '{"a":1, "b":3,"_meta2":4}'),
        ('{ "at":[1] , "_meta":{"a":1} , "b":3, "at2":4 }', '{ "b":3, "at2":4 }'),
        ('{ "at":1, "_meta":{"_meta":"}"} }', "{}"),
        ('[{"at":1,"a":"_meta","_meta":2}, {"_meta":1,"a":1,"at":{}} ]', '[{"a":"_meta"}, {"a":1} ]'),
    ],
)  # fmt: skip
def test_keys_that_stand_side_by_side_go_together(spelled, left):
    assert (
        left == freezing.cut(spelled, ("_meta", "at")) == written_without(("_meta", "at"), spelled)
    )


def test_what_the_provider_made_is_compared_under_its_projection_apart_from_the_key():
    """Some outputs are the provider's own: of them a client drops what it does not model."""
    made = json.dumps({**gave(text(ok=1, _meta=META)), "id": "fco_1", "created_by": "x"})
    assert parted(made, json.dumps(gave(text(ok=1))), made=True) is None
    assert ("output",) == parted(made, json.dumps(gave(text(ok=2))), made=True)


def test_a_nested_difference_is_told_in_what_is_left():
    held = gave([{"type": "input_text", "text": text(_meta=1, rows=["a", "b"])}])
    now = gave([{"type": "input_text", "text": text(_meta=2, rows=["a", "c"])}])
    assert ("output", 0, "text") == difference(held, now)
    assert gave([{"type": "input_text", "text": text(rows=["a", "b"])}]) == freezing.seen(
        held, KEYS
    )


@pytest.mark.parametrize(("deep", "where"), [(100, None), (50_000, ("output",))])
def test_a_text_nested_too_deeply_to_be_read_is_as_it_is(deep, where):
    nested = '{"_meta":%d,"a":' + "[" * deep + "]" * deep + "}"
    one, other = (json.dumps(gave(nested % number)) for number in (1, 2))
    assert where == parted(one, other)


def test_all_but_outputs_are_as_they_are():
    for item in (None, {"type": 1}, {"type": "message", "output": text(_meta=1)}, gave(SEEN)):
        keys = () if item == gave(SEEN) else KEYS
        assert item is freezing.seen(item, keys)


def test_a_text_that_is_too_deep_is_left_and_one_beside_it_is_cut():
    deep = '{"_meta":1,"a":' + "[" * 50_000 + "]" * 50_000 + "}"
    assert deep == freezing.cut(deep, KEYS)
    assert gave([deep, "{}"]) == freezing.seen(gave([deep, '{"_meta":1}']), KEYS)


@pytest.mark.parametrize(
    "shape", ['{"n":%s,"_meta":1}', '{"_meta":%s,"n":1}', '{"_meta":[%s],"n":1}']
)
def test_a_number_may_have_any_length(shape):
    spelled = shape % ("7" * 5_000)
    assert written_without(KEYS, spelled) == freezing.cut(spelled, KEYS)
    assert "_meta" not in freezing.cut(spelled, KEYS)


def test_an_output_nested_too_deeply_to_be_read_is_as_it_is():
    nested: list[Any] = []
    for _ in range(20_000):
        nested = [nested]
    assert freezing.seen(gave(nested), KEYS)["output"] is nested


# --- against the oracle ---------------------------------------------------------------------------

NAMES = st.sampled_from(["_meta", "a", "b", "{", "étape", 'q"', "\\"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([1.0, "", "x", "_meta", "{", "[]", '{"_meta":1}', 'é🙂\n\\"/', "\ud83d"]),
)
SHAPES = st.sampled_from(
    [{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"separators": (" , ", " : ")}]
)  # fmt: skip


@st.composite
def values(draw: st.DrawFn, deep: int = 3) -> Any:
    """JSON in which some texts hold JSON, spelled in one way or another."""
    if deep == 0 or draw(st.integers(0, 3)) == 0:
        return draw(SCALARS)
    inner = values(deep - 1)
    made: Any = draw(
        st.one_of(st.dictionaries(NAMES, inner, max_size=3), st.lists(inner, max_size=2))
    )
    return json.dumps(made, **draw(SHAPES)) if draw(st.integers(0, 2)) == 0 else made


def changed(draw: st.DrawFn, value: Any, often: int = 3) -> Any:
    """The same value, or one that differs in the key, or in another, at some depth."""
    if isinstance(value, dict):
        out = {key: changed(draw, each, often) for key, each in value.items()}
        if draw(st.integers(0, often)) == 0:
            out.pop("_meta", None)
        if draw(st.integers(0, often)) == 0:
            out["_meta"] = draw(values(1))
        if draw(st.integers(0, 9)) == 0:
            out[draw(NAMES)] = draw(values(1))
        return out
    if isinstance(value, list):
        return [changed(draw, each, often) for each in value]
    if isinstance(value, str):
        try:
            return json.dumps(changed(draw, json.loads(value), often), **draw(SHAPES))
        except ValueError:
            return value
    return draw(SCALARS) if draw(st.integers(0, 19)) == 0 else value


KINDS = st.sampled_from(
    ["function_call_output"] * 4 + ["custom_tool_call_output", "program_output", "tool_result"]
)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_engine_and_the_oracle_call_the_same_items_the_same(data: st.DataObject) -> None:
    kind = data.draw(KINDS)
    name = "result" if kind == "program_output" else "output"
    held = {"type": kind, "call_id": "c", name: data.draw(values())}
    now = {**held, name: changed(data.draw, held[name])}
    if data.draw(st.integers(0, 9)) == 0:
        now = changed(data.draw, now)
    difference(held, now, data.draw(st.sampled_from([KEYS, ("a", "_meta"), ("étape", 'q"'), ()])))


@settings(max_examples=60, deadline=None)
@given(values(), st.sampled_from([KEYS, ("a",), ("étape", 'q"', "\\"), ("true", "1")]), SHAPES)
def test_what_is_left_of_a_text_is_what_the_oracle_leaves(value, keys, shape):
    spelled = json.dumps(value, **shape)
    left = freezing.cut(spelled, keys)
    assert written_without(keys, spelled) == left
    assert left == freezing.cut(left, keys)
    if isinstance(value, dict | list):
        json.loads(left)


@settings(max_examples=60, deadline=None)
@given(st.text('{}[]:,"\\ \n_metaud83c1', max_size=24))
def test_a_text_that_only_looks_like_json_is_left_as_the_oracle_leaves_it(text):
    for spelled in (text, '{"_meta":' + text + "}", '{"a":"' + text + '","_meta":1}'):
        assert written_without(KEYS, spelled) == freezing.cut(spelled, KEYS)
