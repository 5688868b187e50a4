"""When a turn of an embedded session is over, and what an answer in one piece is."""

from __future__ import annotations

import json
import weakref

import pytest

from engine.agent_turn import AgentTurn, whole
from engine.errors import TurnFailed
from engine.frozen import Applied
from engine.outcome import Answer


async def events():
    yield {}


def turn() -> AgentTurn:
    return AgentTurn("t", b"{}", Applied([], 0, {}, {}), 0, (), "g")


def answered(status: int, body: bytes, *headers: tuple[str, str]) -> Answer:
    return Answer("t", None, None, status, list(headers), body)


async def test_a_turn_is_under_way_while_its_events_are_held_and_not_at_their_end():
    one, stream = turn(), events()
    assert not one.under_way
    one.stream = weakref.ref(stream)
    assert one.under_way
    one.closed.set()
    assert (True, False) == (one.ended, one.under_way)


async def test_a_turn_whose_events_were_dropped_is_not_under_way():
    one, stream = turn(), events()
    one.stream = weakref.ref(stream)
    del stream
    assert (False, False) == (one.ended, one.under_way)


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed"])
def test_an_answer_in_one_piece_is_its_last_event(status):
    response = {"id": "r", "status": status}
    assert {"type": f"response.{status}", "response": response} == whole(
        answered(200, json.dumps(response).encode())
    )


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("soon", None), ("", None), ("-1", None), ("\u00b2", None)]
)
def test_an_error_tells_how_long_to_wait_where_it_is_told(header, seconds):
    body = b'{"error":{"code":"slow_down"}}'
    with pytest.raises(TurnFailed) as failed:
        whole(answered(429, body, ("retry-after", header)))
    assert (429, "slow_down", body, seconds) == (
        failed.value.status,
        failed.value.code,
        failed.value.body,
        failed.value.retry_after,
    )


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"status":"queued"}', b'{"status":[]}'])
def test_what_is_no_response_is_a_502(body):
    with pytest.raises(TurnFailed, match="unreadable_answer"):
        whole(answered(200, body))
