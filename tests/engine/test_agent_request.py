"""What an agent hands over becomes one body, with one identity in three places."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agent_request import (
    MAX_IDENTITY,
    Identity,
    body_of,
    checked,
    encode,
    fields_of,
    last_user_message,
)

AGENT = Identity("agent-7", "my-agent", "2.1")


def test_the_name_of_the_conversation_stands_in_three_places():
    headers = dict(AGENT.header_list("k"))
    fields = fields_of({"model": "m"}, "agent-7")
    key = json.loads(bytes(fields["prompt_cache_key"]))
    assert "agent-7" == key == headers["session-id"] == headers["thread-id"]


def test_the_software_is_named_as_what_it_is():
    headers = dict(AGENT.header_list(None))
    assert ("my-agent", "my-agent/2.1") == (headers["originator"], headers["user-agent"])
    assert "my-agent" == dict(Identity("a", "my-agent").header_list(None))["user-agent"]


def test_a_credential_is_a_bearer_token_and_nothing_of_it_is_shown():
    assert "Bearer k" == dict(AGENT.header_list("k"))["authorization"]
    assert "authorization" not in dict(AGENT.header_list(None))
    assert "secret" not in repr(Identity("a", "b", headers={"api-key": "secret"}))


def test_the_agents_own_headers_come_last_but_for_the_identity():
    who = Identity("a", "b", headers={"User-Agent": "other", "X-Team": "t", "api-key": "k"})
    headers = dict(who.header_list(None))
    assert ("other", "t", "k") == (headers["user-agent"], headers["x-team"], headers["api-key"])


@pytest.mark.parametrize("name", ["session-id", "Session_Id", "thread-id", "THREAD_ID"])
def test_the_identity_cannot_be_given_twice(name):
    with pytest.raises(ValueError, match="is the session's identity"):
        Identity("a", "b", headers={name: "c"})


@pytest.mark.parametrize("name", ["", " a", "a\n", "é", "a\x00"])
def test_a_name_that_cannot_be_a_header_is_refused(name):
    with pytest.raises(ValueError, match="identity must be printable ASCII"):
        Identity(name, "b")
    with pytest.raises(ValueError, match="client must be printable ASCII"):
        Identity("a", name)


def test_a_name_has_at_most_as_many_characters_as_the_provider_takes():
    Identity("a" * MAX_IDENTITY, "b")
    with pytest.raises(ValueError, match="65 characters, of at most 64"):
        Identity("a" * (MAX_IDENTITY + 1), "b")


def test_nothing_is_stored_and_everything_is_streamed():
    fields = fields_of({"model": "m", "tools": [], "store": None}, "a")
    assert {
        "model": "m",
        "tools": [],
        "store": False,
        "stream": True,
        "prompt_cache_key": "a",
    } == {name: json.loads(bytes(raw)) for name, raw in fields.items()}


@pytest.mark.parametrize(
    "name",
    [
        "input",
        "previous_response_id",
        "conversation",
        "background",
        "generate",
        "stream_id",
        "type",
    ],
)
def test_what_the_session_decides_is_refused_in_a_request(name):
    with pytest.raises(ValueError, match=f"has no {name}"):
        fields_of({"model": "m", name: "x"}, "a")
    assert name not in fields_of({"model": "m", name: None}, "a")


@pytest.mark.parametrize(
    "given", [{"store": True}, {"stream": False}, {"prompt_cache_key": "other"}]
)
def test_what_contradicts_the_session_is_refused(given):
    with pytest.raises(ValueError, match="in an embedded session"):
        fields_of(given, "a")


def test_what_agrees_with_the_session_may_be_said():
    fields_of({"store": False, "stream": True, "prompt_cache_key": "a"}, "a")


def test_the_body_is_the_fields_and_the_input():
    body = body_of(fields_of({"model": "m"}, "a"), [encode({"role": "user", "content": "ü"})])
    assert '"content":"ü"'.encode() in body
    assert [{"role": "user", "content": "ü"}] == json.loads(body)["input"]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_is_no_json_is_refused(value):
    with pytest.raises((TypeError, ValueError)):
        encode({"a": value})


def test_a_lone_surrogate_is_sent_as_its_escape():
    assert b'{"a":"\\ud800\\u00fc"}' == bytes(encode({"a": "\ud800ü"}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(json_values)
def test_what_is_sent_is_what_was_given(value):
    assert value == json.loads(bytes(encode(value)))


@pytest.mark.parametrize("given", ["a string", [{"role": "user"}, object()], [None]])
def test_an_input_item_is_a_mapping(given):
    with pytest.raises(TypeError, match="an input item is a mapping, not"):
        checked(given)
    assert [{"role": "user"}] == checked(iter([{"role": "user"}]))


def test_a_new_message_of_the_user_is_told_from_a_longer_tool_loop():
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    looped = [*said, {"type": "function_call_output", "call_id": "c", "output": "d"}]
    assert last_user_message(said) == last_user_message(looped)
    assert last_user_message(said) != last_user_message([*looped, {"role": "user", "content": "a"}])
    assert last_user_message(said) != last_user_message([{"role": "user", "content": "A"}])
    assert (0, b"") == last_user_message([{"type": "reasoning"}])
