"""What is told of changed fields: tools by name, instructions by line, words of the protocol."""

import json

import pytest
from msgspec import Raw

from app.demo.provider.parameters import CREATE
from engine import items
from engine.field_divergence import FIELDS, KEYS, MOST, describe_fields, field_name, tool_name
from engine.places import Teller
from engine.request import changed_fields

TELLER = Teller(b"k" * 32, FIELDS | KEYS | {"visible"})


def fields(**given):
    return {name: Raw(json.dumps(value).encode()) for name, value in given.items()}


def told(before, now):
    """Details of all that differs, without digests and lengths."""
    one, other = fields(**before), fields(**now)
    details = describe_fields(one, other, changed_fields(one, other, "strict"), TELLER)
    beside = ("digest_before", "digest_now", "length_before", "length_now")
    return [{key: value for key, value in each.items() if key not in beside} for each in details]


def tool(name, **more):
    return {"type": "function", "name": name, **more}


A, B, C = (tool(name) for name in "abc")


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([A], [A, B], [{"change": "added", "name": "b"}]),
        ([A, B], [B], [{"change": "removed", "name": "a"}]),
        ([A, B, C], [A, C, B], [{"change": "reordered", "at": 1, "moved": 2}]),
        ([A, B], [C, B, A], [{"change": "added", "name": "c"}, {"change": "reordered", "at": 0, "moved": 2}]),
        ([tool("a", strict=True)], [tool("a", strict=False)],
         [{"change": "changed", "name": "a", "path": "/strict", "nature": "rewritten"}]),
        ([tool("a", description="one\ntwo")], [tool("a", description="one\nTwo")],
         [{"change": "changed", "name": "a", "path": "/description", "line": 2, "offset": 4, "nature": "rewritten"}]),
        ([tool("a", description="x", parameters={"required": ["p", "q"]})],
         [tool("a", description="y", parameters={"required": ["q", "p"]})],
         [{"change": "changed", "name": "a", "path": "/description", "offset": 0, "nature": "rewritten",
           "parts": ["description", "parameters"]}]),
        ([tool("a", parameters={"required": ["p", "q"]})], [tool("a", parameters={"required": ["q", "p"]})],
         [{"change": "changed", "name": "a", "path": "/parameters/required/0", "nature": "reordered"}]),
        ([A, A], [A], [{"change": "removed", "name": "a"}]),
        ([], [{"type": "mcp", "server_label": "files"}, {"type": "web_search"}, 5],
         [{"change": "added", "name": "mcp:files"}, {"change": "added", "name": "web_search"},
          {"change": "added", "name": "unknown"}]),
    ],
)  # fmt: skip
def test_tools_are_told_by_name(before, now, expected):
    assert [{"field": "tools", **each} for each in expected] == told(
        {"tools": before}, {"tools": now}
    )


def test_tools_that_are_newly_given_are_told_one_by_one():
    assert [{"field": "tools", "change": "added", "name": "a"}] == told({}, {"tools": [A]})
    assert [{"field": "tools", "change": "removed", "name": "a"}] == told(
        {"tools": [A]}, {"tools": None}
    )


def test_names_of_parameters_are_the_users():
    (detail,) = told({"tools": [tool("a", parameters={"properties": {"secret": {"type": "string"}}})]},
                     {"tools": [tool("a", parameters={"properties": {"secret": {"type": "number"}}})]})  # fmt: skip
    assert detail["path"].startswith("/parameters/properties/~")
    assert detail["path"].endswith("/type")
    assert "secret" not in str(detail)


@pytest.mark.parametrize("name", ["two words", "x" * 65, "naïve", ""])
def test_a_name_that_is_none_is_a_digest(name):
    assert tool_name(tool(name), TELLER).startswith("~")


def test_instructions_are_told_by_line_and_offset():
    before, now = (
        {"instructions": "Be kind.\nIt is 08:39."},
        {"instructions": "Be kind.\nIt is 08:41."},
    )
    expected = {
        "field": "instructions",
        "change": "changed",
        "line": 2,
        "offset": 18,
        "nature": "time",
    }
    assert [expected] == told(before, now)
    assert [{"field": "instructions", "change": "added", "nature": "added"}] == told({}, now)
    assert [{"field": "instructions", "change": "removed", "nature": "removed"}] == told(now, {})


def test_instructions_that_hold_json_are_still_told_by_offset():
    (detail,) = told({"instructions": '{"a":1}'}, {"instructions": '{"a":2}'})
    assert (5, None) == (detail["offset"], detail.get("path"))


def test_instructions_given_as_items_are_told_by_pointer():
    (detail,) = told({"instructions": [{"content": "ab"}]}, {"instructions": [{"content": "ac"}]})
    assert ("changed", 1) == (detail["change"], detail["offset"])
    assert detail["path"].startswith("/0/")


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"model": "gpt-5"}, {"model": "gpt-5.1"}, {"field": "model", "before": "gpt-5", "now": "gpt-5.1"}),
        ({"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "high"}},
         {"field": "reasoning", "path": "/effort", "before": "low", "now": "high"}),
        ({"text": {"format": {"type": "text"}}}, {"text": {"format": {"type": "json_object"}}},
         {"field": "text", "path": "/format/type", "before": "text", "now": "json_object"}),
        ({"temperature": 1}, {"temperature": 0.5}, {"field": "temperature", "before": "1", "now": "0.5"}),
        ({"store": True}, {"store": False}, {"field": "store", "before": True, "now": False}),
        ({"tool_choice": "auto"}, {"tool_choice": "none"}, {"field": "tool_choice", "before": "auto", "now": "none"}),
        ({"tool_choice": "auto"}, {"tool_choice": {"type": "function"}}, {"field": "tool_choice", "before": "auto"}),
    ],
)  # fmt: skip
def test_words_of_the_protocol_are_told_as_they_are(before, now, expected):
    (detail,) = told(before, now)
    assert "changed" == detail["change"]
    shown = {key: detail[key] for key in ("field", "path", "before", "now") if key in detail}
    assert expected == shown


def test_each_key_of_a_setting_is_told():
    details = told({"reasoning": {"effort": "low", "summary": "auto"}},
                   {"reasoning": {"effort": "high", "context": "all_turns"}})  # fmt: skip
    assert [("changed", "/effort"), ("removed", "/summary"), ("added", "/context")] == [
        (each["change"], each["path"]) for each in details
    ]
    assert ["high", None, "all_turns"] == [each.get("now") for each in details]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"prompt_cache_key": "secret-one"}, {"prompt_cache_key": "secret-two"}),
        ({"user": "secret"}, {"user": "secret2"}),
        ({"model": "secret words"}, {"model": "more secret words"}),
        ({"reasoning": {"effort": "a secret"}}, {"reasoning": {"effort": "two secrets"}}),
        ({"reasoning": {"secret": True}}, {"reasoning": {"secret": False}}),
        ({"secret": True}, {"secret": False}),
        ({"text": {"format": {"name": "secret"}}}, {"text": {"format": {"name": "secret2"}}}),
        ({"include": ["secret"]}, {"include": ["secret2"]}),
        ({"temperature": 1}, {"temperature": "secret"}),
        ({"prompt": 1}, {"prompt": 2}),
    ],
)
def test_texts_of_the_user_are_told_by_length_and_digest_only(before, now):
    one, other = fields(**before), fields(**now)
    details = describe_fields(one, other, changed_fields(one, other, "strict"), TELLER)
    assert details
    assert "secret" not in json.dumps(details)
    assert not [each for each in details if "before" in each and each["field"] == "prompt"]


def test_a_number_too_long_to_be_one_is_not_told():
    assert "before" not in told({"temperature": 10**40}, {"temperature": 1})[0]


def test_included_extras_are_told_by_name():
    expected = [("added", "reasoning.encrypted_content"), ("removed", "file_search_call.results")]
    details = told(
        {"include": ["file_search_call.results"]}, {"include": ["reasoning.encrypted_content"]}
    )
    assert expected == [(each["change"], each["name"]) for each in details]
    both = ["file_search_call.results", "reasoning.encrypted_content"]
    assert [{"field": "include", "change": "reordered"}] == told(
        {"include": both}, {"include": both[::-1]}
    )


def test_every_field_that_a_provider_takes_is_known_by_its_name():
    taken = {name: Raw(b"1") for name in CREATE}
    assert FIELDS >= set(changed_fields(taken, {}, "strict"))


def test_included_extras_that_are_no_words_are_digests():
    added, removed = told({"include": [["secret"]]}, {"include": [{"secret": 1}]})
    assert ("added", "removed") == (added["change"], removed["change"])
    assert "secret" not in str([added, removed])


def test_a_field_that_is_nested_too_deeply_is_named_all_the_same(monkeypatch):
    def too_deep(*_):
        raise RecursionError

    sides = fields(tools=[A]), fields(tools=[tool("a", strict=True)])
    monkeypatch.setattr(items, "plain_difference", too_deep)
    assert ({"field": "tools", "change": "changed"},) == describe_fields(*sides, ("tools",), TELLER)


def test_fields_outside_the_protocol_are_digests_unless_they_are_visible():
    assert field_name("secret", TELLER).startswith("~")
    assert ("visible", "tools") == (field_name("visible", TELLER), field_name("tools", TELLER))


def test_what_is_no_part_of_the_comparison_is_not_told():
    before = {"prompt_cache_options": {"mode": "a", "comparison_response_id": "r1"}}
    now = {"prompt_cache_options": {"mode": "b", "comparison_response_id": "r2"}}
    assert ["/mode"] == [each["path"] for each in told(before, now)]


def test_of_a_long_list_the_rest_is_counted():
    details = told({"tools": []}, {"tools": [tool(f"t{n}") for n in range(MOST + 6)]})
    assert MOST + 1 == len(details)
    assert {"field": "tools", "left_out": 6} == details[-1]


def test_a_field_that_cannot_be_read_is_told_all_the_same():
    before, now = {"text": Raw(b'{"a":1,"a":2}')}, {"text": Raw(b'{"a":1,"a":3}')}
    (detail,) = describe_fields(before, now, ("text",), TELLER)
    assert ("changed", 11) == (detail["change"], detail["offset"])


def test_a_tool_that_is_no_object_is_told_without_parts():
    expected = {"field": "tools", "change": "changed", "name": "unknown", "nature": "number"}
    assert [expected] == told({"tools": [5]}, {"tools": [6]})


def test_tools_that_are_no_list_are_told_as_a_whole():
    assert [("tools", "changed", "type")] == [
        (each["field"], each["change"], each["nature"])
        for each in told({"tools": 5}, {"tools": []})
    ]
