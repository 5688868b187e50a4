"""The projection, rule by rule: what is one item, and the twin that is not (DESIGN 4.3)."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine import items

MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}],
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "sh",
    "arguments": '{"a": 1}',
    "status": "completed",
}
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
DEEP = "[" * 5000 + "]" * 5000


def between(held, now, *, model_made=True):
    """The difference, which must not depend on which side is held."""
    one, other = items.parse(json.dumps(held)), items.parse(json.dumps(now))
    there = items.difference(one, other, model_made=model_made)
    back = items.difference(other, one, model_made=model_made)
    assert (there is None) == (back is None)
    return there


def same(held, now, *, model_made=True):
    return between(held, now, model_made=model_made) is None


def without(item, *names):
    return {key: value for key, value in item.items() if key not in names}


# --- ids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [MESSAGE, REASONING, CALL])
def test_two_different_ids_are_two_items(item):
    assert between(item, {**item, "id": "other"}) == ("id",)


@pytest.mark.parametrize("item", [MESSAGE, REASONING, CALL])
@pytest.mark.parametrize("absent", [{}, {"id": None}, {"id": ""}])
def test_an_id_is_ignored_where_one_side_has_none(item, absent):
    assert same(item, {**without(item, "id"), **absent})


def test_the_rule_of_ids_holds_for_items_of_the_client_too():
    assert same({**USER, "id": "msg_u"}, USER, model_made=False)
    assert same({**USER, "id": "msg_u"}, {**USER, "id": "msg_u"}, model_made=False)
    assert between({**USER, "id": "a"}, {**USER, "id": "b"}, model_made=False) == ("id",)


def test_an_equal_id_does_not_excuse_another_text():
    other = {**MESSAGE, "content": [{"type": "output_text", "text": "y"}]}
    assert between(MESSAGE, other) == ("content", 0, "text")


def test_different_ids_of_parts_are_a_difference_too():
    one = {**MESSAGE, "content": [{"type": "output_text", "text": "x", "id": "a"}]}
    two = {**MESSAGE, "content": [{"type": "output_text", "text": "x", "id": "b"}]}
    assert between(one, two) == ("content", 0, "id")


def test_a_reference_is_its_id():
    held = {"type": "item_reference", "id": "msg_1"}
    assert same(held, dict(held), model_made=False)
    assert not same(held, {"type": "item_reference"}, model_made=False)
    assert not same(held, {"type": "item_reference"}, model_made=True)


# --- regenerated and unknown keys ----------------------------------------------------------------

REGENERATED = [
    "status", "created_at", "completed_at", "created_by", "annotations", "logprobs",
    "obfuscation", "metadata", "internal_chat_message_metadata_passthrough",
]  # fmt: skip


@pytest.mark.parametrize("key", REGENERATED)
def test_what_a_provider_regenerates_is_ignored(key):
    bare = without(MESSAGE, "status")
    assert same({**bare, key: "one"}, bare)
    assert same({**bare, key: "one"}, {**bare, key: "two"})


@pytest.mark.parametrize("key", REGENERATED)
def test_it_is_not_ignored_in_an_item_of_the_client(key):
    held = {**USER, key: "one"}
    assert same(held, USER, model_made=False) == (key == "metadata")


def test_metadata_of_items_is_ignored_wherever_they_come_from():
    assert same({**USER, "metadata": {"k": "v"}}, USER, model_made=False)
    assert same({**USER, "metadata": {"k": "v"}}, {**USER, "metadata": 1}, model_made=False)
    inner = {**USER, "content": [{"type": "input_text", "text": "hi", "metadata": {"k": 1}}]}
    assert not same(inner, USER, model_made=False)


def test_an_unknown_key_is_ignored_only_where_one_side_lacks_it():
    assert same({**MESSAGE, "future": {"a": 1}}, MESSAGE)
    assert between({**MESSAGE, "future": 1}, {**MESSAGE, "future": 2}) == ("future",)
    part = {"type": "output_text", "text": "x", "extra": 5}
    assert same({**MESSAGE, "content": [part]}, MESSAGE)
    assert not same({**MESSAGE, "content": [part]}, {**MESSAGE, "content": [{**part, "extra": 6}]})


@pytest.mark.parametrize(
    ("item", "key"),
    [
        (MESSAGE, "content"), (MESSAGE, "role"), (CALL, "call_id"), (CALL, "name"),
        (CALL, "arguments"), (REASONING, "encrypted_content"),
    ],
)  # fmt: skip
def test_content_that_one_side_lacks_is_a_difference(item, key):
    assert between(item, without(item, key))[0] == key
    assert between(item, {**item, key: None})[0] == key


@pytest.mark.parametrize(
    "key",
    ["phase", "namespace", "input", "output", "action", "result", "code", "error", "operation"],
)
def test_optionals_are_one_when_absent_or_null_and_compared_when_given(key):
    assert same({**CALL, key: None}, CALL)
    assert same({**CALL, key: "a"}, {**CALL, key: "a"})
    assert not same({**CALL, key: "a"}, CALL)
    assert not same({**CALL, key: "a"}, {**CALL, key: "b"})


def test_another_type_is_another_item():
    assert not same(CALL, {**CALL, "type": "custom_tool_call"})
    assert not same({**CALL, "type": None}, CALL)


# --- messages ------------------------------------------------------------------------------------


def test_the_short_and_the_long_spelling_of_a_message_are_one():
    assert same(MESSAGE, {"role": "assistant", "content": "x"})
    assert same(MESSAGE, {"type": None, "role": "assistant", "content": "x"})
    assert same(MESSAGE, {"role": "assistant", "content": [{"text": "x", "type": "output_text"}]})


@pytest.mark.parametrize("content", ["x ", "X", "", [], None, [{"type": "refusal", "text": "x"}]])
def test_another_text_in_any_spelling_is_another_message(content):
    assert not same(MESSAGE, {"role": "assistant", "content": content})


def test_two_parts_are_not_their_sum():
    held = {**MESSAGE, "content": [{"type": "output_text", "text": t} for t in "ab"]}
    assert between(held, {"role": "assistant", "content": "ab"}) is not None
    swapped = {**held, "content": held["content"][::-1]}
    assert between(held, swapped) == ("content", 0, "text")


def test_a_missing_part_is_told_by_its_place():
    held = {**MESSAGE, "content": [{"type": "output_text", "text": t} for t in "ab"]}
    assert between(held, {**held, "content": held["content"][:1]}) == ("content", 1)


def test_a_message_of_the_user_has_one_spelling():
    assert not same(USER, {"role": "user", "content": "hi"}, model_made=False)
    assert not same(USER, without(USER, "type"), model_made=False)


def test_no_empty_value_but_null_and_the_empty_list_counts_as_absent():
    assert not same({**REASONING, "content": False}, REASONING)
    assert not same({**REASONING, "content": {}}, REASONING)
    assert not same({**REASONING, "content": ""}, REASONING)


def test_parts_that_are_no_objects_are_compared_as_they_are():
    assert same({**MESSAGE, "content": ["a"]}, {**MESSAGE, "content": ["a"]})
    assert between({**MESSAGE, "content": ["a"]}, {**MESSAGE, "content": ["b"]}) == ("content", 0)
    assert not same({**MESSAGE, "content": ["a"]}, MESSAGE)


# --- reasoning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [{}, {"content": None}, {"content": []}])
def test_empty_content_of_reasoning_is_no_content(empty):
    assert same({**REASONING, "content": []}, {**REASONING, **empty})
    assert same({**REASONING, "content": []}, {**without(REASONING, "id"), **empty})
    assert same(without(REASONING, "summary"), REASONING)


def test_another_ciphertext_is_another_thought():
    assert between(REASONING, {**REASONING, "encrypted_content": "E2"}) == ("encrypted_content",)


def test_reasoning_is_known_by_its_id_alone():
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert same(bare, dict(bare))


def test_reasoning_is_known_by_its_text():
    by_summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]}
    by_content = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "t"}]}
    assert same({**by_summary, "id": "rs_1"}, by_summary)
    assert same(by_content, dict(by_content))
    assert not same(by_summary, {**by_summary, "summary": [{"type": "summary_text", "text": "u"}]})


@pytest.mark.parametrize(
    "nothing",
    [
        {"type": "reasoning"},
        {"type": "reasoning", "summary": []},
        {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None},
        {"type": "reasoning", "encrypted_content": ""},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": ""}]},
        {"type": "reasoning", "summary": ["text"]},
    ],
)
def test_nothing_matches_nothing(nothing):
    assert not same(nothing, dict(nothing))
    assert not same({**nothing, "id": "rs_1"}, nothing)


@pytest.mark.parametrize("summary", [5, True, "text", {"a": 1}])
def test_reasoning_of_a_strange_shape_is_not_identified_and_raises_nothing(summary):
    strange = {"type": "reasoning", "summary": summary}
    assert not same(strange, copy.deepcopy(strange))


# --- arguments -----------------------------------------------------------------------------------


def arguments(text):
    return {**CALL, "arguments": text}


@pytest.mark.parametrize(
    "echo",
    ['{"a":1}', ' {"a" : 1}\n', '{"\\u0061":1}'],
)
def test_arguments_match_as_json_when_a_client_serializes_them_again(echo):
    assert same(CALL, arguments(echo))


@pytest.mark.parametrize(
    "echo",
    ['{"a":1.0}', '{"a":1e0}', '{"a":true}', '{"a":"1"}', '{"a":2}', '{"b":1}', "{}", "", "null",
     '{"a":1,"a":1}', '{"a":1', {"a": 1}, '{"a":1,"b":null}'],
)  # fmt: skip
def test_arguments_of_another_value_are_another_call(echo):
    assert between(CALL, arguments(echo)) == ("arguments",)


def test_key_order_in_arguments_is_free_and_array_order_is_not():
    assert same(arguments('{"a":[1,2],"b":2}'), arguments('{"b":2,"a":[1,2]}'))
    assert not same(arguments('{"a":[1,2]}'), arguments('{"a":[2,1]}'))


def test_arguments_that_are_no_json_match_as_strings_only():
    assert same(arguments("not json"), arguments("not json"))
    assert not same(arguments("not json"), arguments("not  json"))


def test_a_key_that_stands_twice_proves_nothing():
    assert same(arguments('{"a":1,"a":2}'), arguments('{"a":1,"a":2}'))
    assert not same(arguments('{"a":1,"a":2}'), arguments('{"a":1, "a":2}'))


def test_arguments_too_deep_to_read_match_as_strings_only():
    assert same(arguments(DEEP), arguments(DEEP))
    assert not same(arguments(DEEP), arguments(DEEP + " "))


def test_arguments_given_as_an_object_are_compared_without_leniency():
    held = {**CALL, "type": "tool_search_call", "arguments": {"query": "q", "n": None}}
    assert same(held, copy.deepcopy(held))
    assert not same(held, {**held, "arguments": {"query": "q"}})
    assert not same(held, {**held, "arguments": '{"query":"q","n":null}'})


def test_the_input_of_a_custom_tool_is_a_string_and_no_json():
    held = {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": '{"a": 1}'}
    assert same(held, dict(held))
    assert not same(held, {**held, "input": '{"a":1}'})


# --- sources, which Codex drops -------------------------------------------------------------------


def test_sources_of_a_web_search_are_optional():
    action = {"type": "search", "query": "q", "queries": ["q"]}
    held = {"type": "web_search_call", "id": "ws", "action": {**action, "sources": [{"u": 1}]}}
    assert same(held, {**held, "action": action})
    assert not same(held, {**held, "action": {**action, "sources": []}})
    assert not same(held, {**held, "action": {**action, "query": "p"}})


def test_sources_anywhere_else_are_content():
    held = {"type": "tool_search_call", "call_id": "c", "arguments": {"sources": ["a"]}}
    assert not same(held, {**held, "arguments": {}})
    call = {"type": "shell_call", "call_id": "c", "action": {"env": {"sources": "a"}}}
    assert not same(call, {**call, "action": {"env": {}}})
    tools = {"type": "mcp_list_tools", "server_label": "s"}
    with_it = [{"name": "f", "input_schema": {"properties": {"sources": {"type": "string"}}}}]
    less = [{"name": "f", "input_schema": {"properties": {}}}]
    assert not same({**tools, "tools": with_it}, {**tools, "tools": less})


def test_nested_values_are_told_by_their_path():
    held = {"type": "shell_call", "action": {"commands": ["a", "b"], "timeout": None}}
    assert same(held, {**held, "action": {"commands": ["a", "b"]}})
    assert between(held, {**held, "action": {"commands": ["a", "c"]}}) == ("action", "commands", 1)
    assert between(held, {**held, "action": {"commands": ["a"]}}) == ("action", "commands", 1)


# --- plain JSON ----------------------------------------------------------------------------------


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


def test_a_difference_of_plain_values_is_told_by_its_path():
    one, two = items.parse('{"a":[{"b":1}]}'), items.parse('{"a":[{"b":2}]}')
    assert items.plain_difference(one, two) == ("a", 0, "b")
    assert items.plain_difference(one, items.parse('{"a":[]}')) == ("a", 0)
    assert items.plain_difference(one, items.parse('{"a":[{"b":1}],"z":1}')) == ("z",)


def test_items_that_are_no_objects_are_compared_as_values():
    assert items.difference("a", "a", model_made=True) is None
    assert items.difference("a", {}, model_made=True) == ()


def test_an_ambiguous_object_is_refused_at_any_depth():
    with pytest.raises(items.AmbiguousJSON):
        items.parse('{"a":[{"b":1,"b":1}]}')


def test_all_forms_of_text_are_read_alike():
    assert items.parse(Raw(b'"\xc3\xa9"')) == items.parse('"é"') == items.parse(b'"\\u00e9"')


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


# --- who made an item ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "type_",
    ["reasoning", "compaction", "compaction_summary", "mcp_list_tools", "function_call",
     "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call", "mcp_call"],
)  # fmt: skip
def test_these_kinds_are_made_by_the_model(type_):
    assert items.made_by_model({"type": type_})
    assert items.kind({"type": type_}) == type_


@pytest.mark.parametrize(
    "value",
    [USER, {"role": "developer", "content": "x"}, {"type": "function_call_output"},
     {"type": "item_reference", "id": "x"}, {"type": 5}, {}, "text", None],
)  # fmt: skip
def test_these_are_not(value):
    assert not items.made_by_model(value)


def test_an_assistant_message_is_made_by_the_model_in_both_spellings():
    assert items.made_by_model(MESSAGE)
    assert items.made_by_model({"role": "assistant", "content": "x"})


def test_a_kind_is_a_word_and_never_content():
    assert items.kind(USER) == "message:user"
    assert items.kind({"role": "assistant"}) == "message:assistant"
    assert items.kind({"role": "secret words"}) == "message:other"
    assert items.kind({"type": "secret words"}) == "unknown"
    assert items.kind({"type": "a" * 99}) == "a" * 64
    assert items.kind({"type": 5}) == "unknown"
    assert items.kind([]) == "value"


# --- the echo key ------------------------------------------------------------------------------------


def key(value):
    return items.echo_key(items.parse(json.dumps(value)))


@pytest.mark.parametrize(
    ("held", "echo"),
    [
        (MESSAGE, {"role": "assistant", "content": "x"}),
        (REASONING, {"type": "reasoning", "encrypted_content": "E", "content": None}),
        (CALL, {"type": "function_call", "call_id": "c1", "name": "sh", "arguments": '{"a":1}'}),
        (arguments("no json"), without(arguments("no json"), "id")),
        ({**MESSAGE, "content": ["a"]}, {**MESSAGE, "content": ["a"], "status": None}),
        (
            {"type": "web_search_call", "action": {"query": "q", "sources": [{"url": "u"}]}},
            {"type": "web_search_call", "action": {"query": "q"}},
        ),
    ],
)
def test_an_echo_is_found_under_the_key_of_its_item(held, echo):
    assert key(held)[0] == key(echo)[0]


def test_an_echo_key_tells_the_id_beside_the_content():
    assert (key(MESSAGE)[1], key(without(MESSAGE, "id"))[1]) == ("msg_1", None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MESSAGE, {"role": "assistant", "content": "y"}),
        (CALL, arguments('{"a":1.0}')),
        ({"type": "hologram", "number": 1}, {"type": "hologram", "number": 2}),
        ("a", "b"),
    ],
)
def test_other_content_has_another_key(one, other):
    assert key(one)[0] != key(other)[0]


def test_what_is_no_json_has_no_key():
    with pytest.raises(TypeError, match="object"):
        items.echo_key(object())


# --- pairs as real clients make them -----------------------------------------------------------------

TEXT = {"type": "output_text", "annotations": [], "logprobs": []}
HELD_REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Look first"}],
    "encrypted_content": "gAAAAB",
}
HELD_MESSAGE = {
    **MESSAGE,
    "content": [{**TEXT, "text": "Run it."}],
    "phase": "commentary",
}
HELD_CALL = {**CALL, "arguments": '{"command": "echo hi", "why": "é"}'}
ODD = {
    "id": "msg_2",
    "type": "message",
    "status": "in_progress",
    "role": "assistant",
    "phase": None,
    "unknown_field": {"a": 1},
    "content": [{**TEXT, "text": "odd \u2603 \u0001", "extra": 5}],
}
PAIRS = {
    "codex, live: an empty content is dropped": (
        {**REASONING, "content": [], "status": "completed"},
        REASONING,
    ),
    "codex, resumed: content is null": (
        {**REASONING, "content": [], "status": "completed"},
        {**REASONING, "content": None},
    ),
    "codex: an id of its own for a message without": (
        without(MESSAGE, "id", "status"),
        {**without(MESSAGE, "status"), "id": "msg_01a2"},
    ),
    "codex: unknown keys and null phase are dropped": (
        ODD,
        {
            "type": "message",
            "status": "in_progress",
            "id": "msg_2",
            "role": "assistant",
            "content": [{**TEXT, "text": "odd \u2603 \u0001"}],
        },
    ),
    "codex: namespace null is dropped": (
        {**CALL, "namespace": None, "created_by": "zz"},
        {"type": "function_call", "id": "fc_1", "name": "sh", "arguments": '{"a": 1}', "call_id": "c1"},
    ),
    "codex: reasoning known by its id only": (
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {"type": "reasoning", "id": "rs_3", "summary": [], "content": None, "encrypted_content": None},
    ),
    "codex: a shell call in another key order": (
        {"id": "l", "type": "local_shell_call", "action": {"type": "exec", "env": {}, "user": None}},
        {"type": "local_shell_call", "id": "l", "action": {"user": None, "type": "exec", "env": {}}},
    ),
    "codex: the background of an image is dropped": (
        {"id": "ig", "type": "image_generation_call", "result": "AA", "background": "opaque"},
        {"id": "ig", "type": "image_generation_call", "result": "AA"},
    ),
    "agents SDK: to_input_list": (
        HELD_REASONING,
        {
            "id": "rs_1",
            "summary": [{"text": "Look first", "type": "summary_text"}],
            "type": "reasoning",
            "encrypted_content": "gAAAAB",
        },
    ),
    "openai SDK: model_dump adds nulls": (
        HELD_REASONING,
        {**HELD_REASONING, "content": None, "status": None},
    ),
    "pi: no logprobs, arguments serialized again": (
        HELD_CALL,
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "sh",
            "arguments": '{"command":"echo hi","why":"\\u00e9"}',
        },
    ),
    "pi: a message keeps its id and phase": (
        HELD_MESSAGE,
        {**HELD_MESSAGE, "content": [{"type": "output_text", "text": "Run it.", "annotations": []}]},
    ),
    "opencode: reasoning without an id": (HELD_REASONING, without(HELD_REASONING, "id")),
    "opencode: a message without type and id": (
        HELD_MESSAGE,
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Run it."}],
            "phase": "commentary",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(("held", "echo"), PAIRS.values(), ids=PAIRS.keys())
def test_the_echo_of_a_real_client_is_the_same_item(held, echo):
    assert same(held, echo)


def _leaves(value, path=()):
    """All strings that the model reads back, with the way to them."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in {"status", "annotations", "logprobs"}:
                continue
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    elif isinstance(value, str):
        yield path


TWINS = [
    pytest.param(held, echo, path, id=f"{name} {'/'.join(map(str, path))}")
    for name, (held, echo) in PAIRS.items()
    for path in _leaves(echo)
    if not (path == ("id",) and "id" not in held)
]


@pytest.mark.parametrize(("held", "echo", "path"), TWINS)
def test_its_twin_with_one_value_changed_is_another(held, echo, path):
    changed = copy.deepcopy(echo)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] += "~"
    assert not same(held, changed)


@pytest.mark.parametrize("dropped", ["encrypted_content", "summary"])
def test_a_client_that_drops_a_part_of_a_thought_does_not_hold_it(dropped):
    assert not same(HELD_REASONING, without(HELD_REASONING, dropped))


def test_a_client_that_drops_the_phase_does_not_hold_it():
    assert not same(HELD_MESSAGE, without(HELD_MESSAGE, "phase"))
