"""What the engine cannot read, and its own faults, are not the client's (DESIGN 4.1)."""

from __future__ import annotations

import json

import pytest

from engine.model import Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, stack, warm
from tests.support.provider import user


@pytest.mark.parametrize("name", ["generate", "reasoning", "tools", "x"])
@pytest.mark.parametrize("depth", [500, 100_000])
async def test_a_deeply_nested_field_is_one_row(name, depth):
    s = stack()
    deep = b"[" * depth + b"]" * depth
    answer = await s.answer(b'{"%s":%s,' % (name.encode(), deep) + json.dumps(FIRST).encode()[1:])
    if answer.streamed:
        async for _ in answer:
            pass
    assert 1 == len(s.facts)


async def test_an_internal_fault_never_sends_an_anchored_delta_without_its_history(monkeypatch):
    s = stack()
    events = await s.turn(FIRST, transport="ws", socket="c")
    delta = {**FIRST, "input": [user("x")], "previous_response_id": s.last.response_id}

    def broken(*args, **more):
        raise RuntimeError("fault")

    monkeypatch.setattr("engine.over_socket.stage", broken)
    await s.turn(delta, transport="ws", socket="c")
    assert Reason.INTERNAL_ERROR == s.last.reason
    sent = s.core.log[-1].body["input"]
    assert [user("one"), user("x")] == [i for i in sent if i.get("role") == "user"]
    assert len(sent) == 2 + len(events[-1]["response"]["output"])


async def test_a_fault_in_reading_a_request_lets_it_through_as_it_came(monkeypatch, caplog):
    def fails(*_):
        raise AssertionError("secret of the client")

    monkeypatch.setattr("engine.driver.split", fails)
    s = stack()
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert FIRST == s.core.log[-1].body
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == (s.last.mode, s.last.reason)
    assert "AssertionError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("transport", ["sse", "ws"])
@pytest.mark.parametrize("named", [5, True, ["resp_1"], {"id": "resp_1"}])
async def test_an_anchor_that_is_no_text_reaches_the_upstream_and_is_never_left_out(
    transport, named
):
    s = stack()
    await s.turn({**FIRST, "previous_response_id": named}, transport=transport)
    assert named == s.core.log[-1].body["previous_response_id"]


async def test_a_fault_in_what_is_known_costs_a_full_reading_and_nothing_else(monkeypatch, caplog):
    def fails(*_):
        raise AssertionError("secret of the client")

    s = stack()
    body = await warm(s)
    monkeypatch.setattr("engine.driver.known", fails)
    await s.turn(body)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)
    assert "AssertionError" in caplog.text


@pytest.mark.parametrize("transport", ["sse", "http", "ws"])
async def test_a_fault_in_tidying_up_is_not_the_clients(transport, monkeypatch, caplog):
    def fails(*_):
        raise AssertionError("secret of the client")

    s = stack()
    monkeypatch.setattr("engine.sessions.Sessions.trim", fails)
    events = await s.turn({**FIRST, "stream": transport != "http"}, transport=transport)
    ended = events[-1] if transport == "http" else events[-1]["response"]
    assert "completed" == ended["status"]
    assert Status.COMPLETED == s.last.status
    assert "AssertionError" in caplog.text


@pytest.mark.parametrize("continuation", ["websocket", "store", "off"])
async def test_a_fault_after_a_request_was_sent_sends_it_no_second_time(
    continuation, monkeypatch, caplog
):
    def fails(*_):
        raise AssertionError("secret of the client")

    s = stack(Policy(continuation=continuation))
    monkeypatch.setattr("engine.relay.Relay.respond", fails)
    answer = await s.answer(FIRST)
    assert (502, 1) == (answer.status, len(s.core.log))
    assert [("internal_error", Status.ERROR, 1)] == [
        (f.error_code, f.status, f.attempts) for f in s.facts
    ]
    assert "secret" not in caplog.text + answer.body.decode()


async def test_a_second_fault_in_letting_a_request_through_is_told_as_one(monkeypatch, caplog):
    def fails(*_, **__):
        raise AssertionError("secret of the client")

    s = stack()
    monkeypatch.setattr("engine.over_socket.stage", fails)
    monkeypatch.setattr(s.driver._http, "unchanged", fails)
    answer = await s.answer(FIRST)
    assert (502, []) == (answer.status, s.core.log)
    assert [("internal_error", Status.ERROR)] == [(f.error_code, f.status) for f in s.facts]
    assert 2 == caplog.text.count("AssertionError")
    assert "secret" not in caplog.text + answer.body.decode()
