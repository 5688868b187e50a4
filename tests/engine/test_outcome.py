from __future__ import annotations

import json

import pytest

from engine.model import Kind, Mode, Reason
from engine.outcome import Answer, Singly, lost, name_of, nested
from engine.sessions import Scope
from engine.turn import Call, Event, Turn, Upstream


def a_turn() -> Turn:
    upstream = Upstream("default", "https://provider/v1")
    call = Call(
        turn_id="t", received_at=1.0, received_mono=1.0, body=b"{}", upstream=upstream, tenant="a"
    )
    return Turn(call=call, request=None, scope=Scope(("a", "default", "s")), kind=Kind.GENERATION)


def test_a_lost_upstream_is_502_and_its_cause_is_on_the_turn():
    turn = a_turn()
    end = lost(turn, "connection_lost")
    assert (502, "connection_lost") == (end.status, turn.error_code)
    assert "connection_lost" == json.loads(end.body)["error"]["code"]


def test_a_timeout_is_504():
    assert 504 == lost(a_turn(), "first_event_timeout").status


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("connect_refused", "could not be reached. Check its address"),
        ("connect_timeout", "could not be reached. Check its address"),
        ("first_event_timeout", "did not answer in time"),
        ("connection_lost", "was lost"),
    ],
)
def test_an_upstream_that_was_never_reached_is_told_apart_from_a_lost_one(cause, said):
    assert said in json.loads(lost(a_turn(), cause).body)["error"]["message"]


def test_only_the_kind_of_an_exception_is_told():
    assert "ValueError" == name_of(ValueError("a secret"))


def test_a_flat_error_in_mid_stream_is_nested_and_given_a_status():
    event = nested(Event(b'{"type":"error","code":"rate_limit_exceeded","message":"slow"}'))
    frame = json.loads(event.data)
    assert ("error", 429, "rate_limit_exceeded") == (
        frame["type"],
        frame["status"],
        frame["error"]["code"],
    )


def test_an_error_that_has_its_status_is_relayed_as_it_came():
    event = Event(b'{"type":"error","status":400,"error":{"code":"x","message":"y"}}')
    assert event is nested(event)


async def test_the_events_of_batches_come_one_by_one_and_closing_closes_the_batches():
    closed = []

    async def batches():
        try:
            yield [Event(b"1"), Event(b"2")]
            yield []
            yield [Event(b"3")]
            yield [Event(b"4")]
        finally:
            closed.append(True)

    events = Singly(batches())
    assert [b"1", b"2", b"3"] == [(await anext(events)).data for _ in range(3)]
    await events.aclose()
    assert [True] == closed
    assert [] == [event async for event in events]


def test_an_answer_is_streamed_when_it_has_events():
    assert not Answer("t", Mode.WS_FULL, Reason.OK, 200, [], b"{}").streamed
