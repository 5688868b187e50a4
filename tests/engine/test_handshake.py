"""Which headers open a connection, and which travel in each frame."""

import json

import pytest

from engine.handshake import (
    client_metadata,
    handshake,
    identity,
    per_turn,
    post_headers,
    sender,
)
from engine.request import split

BETA = "responses_websockets=2026-02-06"


def test_only_what_names_the_client_opens_a_connection():
    given = [
        ("x-codex-window-id", "w"),
        ("authorization", "a"),
        ("accept", "x"),
        ("thread-id", "t"),
    ]
    assert handshake(given) == (("authorization", "a"), ("thread-id", "t"))


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_spellings_the_hyphen_wins(order):
    given = [("session_id", "under"), ("session-id", "hyphen")][::order]
    assert handshake(given) == (("session-id", "hyphen"),)
    assert handshake([("thread_id", "t")]) == (("thread-id", "t"),)


def test_codex_names_its_beta_once_on_every_wire():
    plain = handshake([("originator", "codex_exec")])
    named = handshake([("originator", "codex_exec"), ("openai-beta", BETA)])
    assert plain == named == (("openai-beta", BETA), ("originator", "codex_exec"))
    other = handshake([("x-codex-beta-features", "f"), ("openai-beta", "a, ")])
    assert dict(other)["openai-beta"] == f"a, {BETA}"


def test_connections_are_shared_by_equal_headers_of_one_tenant_only():
    one = identity("t", "u", [("a", "b")], b"k")
    assert one == identity("t", "u", [("a", "b")], b"k")
    assert one not in {
        identity("x", "u", [("a", "b")], b"k"), identity("t", "x", [("a", "b")], b"k"),
        identity("t", "u", [("a", "c")], b"k"), identity("tu", "", [("a", "b")], b"k"),
        identity("t", "u", [("ab", "")], b"k"),
    }  # fmt: skip


TURNS = (("x-codex-window-id", "w"), ("x-client-request-id", "r"))
TURN = per_turn(TURNS)


def test_the_headers_of_the_turn_travel_in_the_frame():
    assert json.loads(client_metadata(b'{"a":1}', TURN, "s")) == {
        "a": 1, "x-codex-window-id": "w", "x-client-request-id": "r", "x-codex-turn-state": "s",
    }  # fmt: skip
    assert json.loads(client_metadata(None, TURN, None))["x-codex-window-id"] == "w"
    assert json.loads(client_metadata(b"null", {}, "s")) == {"x-codex-turn-state": "s"}


def test_what_the_client_says_itself_stays():
    raw = b'{"x-codex-turn-state":"own"}'
    assert client_metadata(raw, {}, "s") is None
    given = per_turn([("x-codex-window-id", "w")])
    assert client_metadata(b'{"x-codex-window-id":"own"}', given, None) is None


@pytest.mark.parametrize("raw", [b"[]", b"5", b"{"])
def test_metadata_of_a_strange_shape_is_left_alone(raw):
    assert client_metadata(raw, TURN, "s") is None


def test_other_clients_get_nothing_added():
    assert per_turn([("x-client-request-id", "r")]) == {}
    assert client_metadata(None, {}, None) is None


def test_what_headers_say_is_worked_out_once_and_anew_when_anything_of_it_changes():
    memory = {}
    first = sender((("authorization", "a"), *TURNS), "t", "u", b"k", memory)
    assert first is sender((("authorization", "a"), *TURNS), "t", "u", b"k", memory)
    assert (("authorization", "a"),) == first.opening
    assert identity("t", "u", first.opening, b"k") == first.identity
    assert TURN == first.per_turn
    others = [
        sender((("authorization", "b"), *TURNS), "t", "u", b"k", memory),
        sender((("authorization", "b"), *TURNS), "x", "u", b"k", memory),
        sender((("authorization", "b"), *TURNS), "x", "y", b"k", memory),
    ]
    assert 4 == len({first.identity, *(other.identity for other in others)})


def test_a_post_keeps_the_clients_headers_but_those_of_the_body():
    headers = post_headers([("a", "b"), ("content-length", "5"), ("host", "h")], None, socket=False)
    assert headers == [
        ("a", "b"),
        ("content-type", "application/json"),
        ("accept-encoding", "identity"),
    ]


def test_a_post_for_a_socket_takes_the_frames_headers_of_the_turn():
    request = split(
        b'{"input":[],"client_metadata":{"x-codex-window-id":"new","x-client-request-id":5}}'
    )
    given = [
        ("authorization", "a"),
        ("openai-beta", BETA),
        ("x-codex-window-id", "old"),
        ("accept", "x"),
    ]
    headers = post_headers(given, request, socket=True)
    assert headers[:3] == [
        ("authorization", "a"), ("x-codex-window-id", "new"), ("accept", "text/event-stream"),
    ]  # fmt: skip
    assert post_headers([("openai-beta", "z")], None, socket=True)[0] == ("openai-beta", "z")
    strange = split(b'{"input":[],"client_metadata":[]}')
    assert post_headers([], strange, socket=True)[0] == ("accept", "text/event-stream")
