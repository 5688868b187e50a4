"""A history recorded after a turn is checked, and a turn is one at a time (DESIGN 9)."""

from __future__ import annotations

import asyncio
import copy
import gc
from contextlib import aclosing

import pytest

from engine.errors import SessionBusy, SessionClosed
from engine.model import Status
from engine.testing import function_call, message, reasoning
from tests.support.embedded import (
    CONTINUED,
    REQUEST,
    Rig,
    drain,
    gave,
    looped,
    said,
    same_as_held,
    warm,
)

# --- record --------------------------------------------------------------------------------------


async def test_a_record_that_lacks_an_output_item_makes_the_answer_cold():
    rig = Rig([reasoning("gAAA", "why"), message("first")], "second")
    await rig.turn(said("one"))
    whole = list(rig.history)
    del rig.history[1]
    assert not rig.session.record(rig.history)
    rig.history = whole
    await rig.turn(said("two"))
    assert ("ws_full", "output_conflict") == rig.outcome
    assert [0, 1] == [sent.connection for sent in rig.upstream.sent]
    assert [True, False] == [connection.closed for connection in rig.upstream._connections]
    assert same_as_held(rig)
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome


async def test_a_record_that_lacks_what_the_next_turn_lacks_too_is_told_with_its_place():
    rig = Rig([reasoning("gAAA", "why"), message("first")], "second")
    await rig.turn(said("one"))
    del rig.history[1]
    assert not rig.session.record(rig.history)
    await rig.turn(said("two"))
    assert ("ws_full", "prefix_mismatch", 1) == (*rig.outcome, rig.last.evidence.index)


@pytest.mark.parametrize(
    "change",
    [
        lambda history: history.clear(),
        lambda history: history.pop(0),
        lambda history: history.pop(),
        lambda history: history.__setitem__(0, said("edited")),
        lambda history: history.insert(1, said("inserted")),
        lambda history: history[1].update(arguments='{"a":1}'),
        lambda history: history[1].update(call_id="other"),
        lambda history: history.append(history.pop(1)),
    ],
)
async def test_a_record_that_is_not_what_was_sent_and_answered_makes_the_answer_cold(change):
    rig = Rig([function_call("f", "a"), message("look")], "second")
    await rig.turn(said("one"))
    whole = copy.deepcopy(rig.history)
    change(rig.history)
    assert not rig.session.record(rig.history)
    rig.history = whole
    await rig.turn(gave("a"))
    assert ("ws_full", "output_conflict") == rig.outcome


async def test_a_record_may_hold_the_results_of_the_answers_calls_already():
    rig = Rig(function_call("f", "a"), "done")
    await rig.turn(said("one"))
    rig.history.append(gave("a"))
    assert rig.session.record(rig.history)
    await rig.turn()
    assert CONTINUED == rig.outcome


async def test_a_record_is_read_with_the_outputs_that_the_model_saw():
    rig = await looped("done")
    rig.history[2]["output"] = "moved"
    assert rig.session.record(rig.history)


async def test_without_a_record_the_next_turn_is_proven_all_the_same():
    rig = await warm()
    await rig.turn(said("two"))
    assert CONTINUED == rig.outcome


async def test_there_is_nothing_to_record_before_a_turn_was_answered():
    rig = Rig()
    assert not rig.session.record([said("one")])
    rig.session.send(REQUEST, [said("one")])
    assert not rig.session.record([said("one")])


# --- one turn at a time --------------------------------------------------------------------------


async def test_a_second_turn_while_one_is_under_way_is_refused():
    rig = await warm("second")
    history = [*rig.history, said("two")]
    async with aclosing(rig.session.send(REQUEST, history)) as events:
        await anext(events)
        for refused in (rig.session.send, lambda _, items: rig.session.record(items)):
            with pytest.raises(SessionBusy):
                refused(REQUEST, history)
        rest = await drain(events)
    assert "response.completed" == rest[-1]["type"]
    assert CONTINUED == rig.outcome
    assert 2 == len(rig.upstream.sent)


async def test_of_many_at_once_one_runs_and_the_others_are_told():
    rig = await warm(*map(str, range(5)))
    history = [*rig.history, said("two")]

    async def one():
        return await drain(rig.session.send(REQUEST, history))

    results = await asyncio.gather(*(one() for _ in range(5)), return_exceptions=True)
    assert 4 == sum(isinstance(result, SessionBusy) for result in results)
    assert CONTINUED == rig.outcome


async def test_a_turn_whose_last_event_was_seen_is_over():
    rig = await warm("second", "third")
    events = rig.session.send(REQUEST, [*rig.history, said("two")])
    async for event in events:
        if event["type"] == "response.completed":
            break
    rig.history += [said("two"), {"role": "assistant", "content": "second"}]
    assert rig.session.record(rig.history)
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome
    await events.aclose()
    await rig.turn(said("four"))
    assert CONTINUED == rig.outcome


async def test_a_turn_that_is_left_in_the_middle_is_not_continued():
    rig = await warm("second", "third")
    async for _ in rig.session.send(REQUEST, [*rig.history, said("two")]):
        break
    gc.collect()
    await rig.turn(said("three"))
    assert Status.CLIENT_CLOSED is rig.facts[1].status
    assert ("ws_full", "connection_lost", "after_cancel") == (
        *rig.outcome,
        rig.last.fallback_reason,
    )
    assert same_as_held(rig)


async def test_a_turn_that_was_never_begun_is_forgotten():
    rig = await warm()
    rig.session.send(REQUEST, [*rig.history, said("never")])
    await rig.turn(said("two"))
    assert CONTINUED == rig.outcome
    assert 2 == len(rig.facts) == len(rig.upstream.sent)


async def test_a_turn_that_is_cancelled_leaves_a_row_and_no_anchor():
    rig = await warm("second", "third")
    events = rig.session.send(REQUEST, [*rig.history, said("two")])
    await anext(events)
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert Status.CLIENT_CLOSED is rig.last.status
    await rig.turn(said("two"))
    assert ("ws_full", "after_cancel") == (rig.last.mode, rig.last.fallback_reason)


@pytest.mark.parametrize(
    ("request_", "items"),
    [
        ({"model": "m", "store": True}, [said("one")]),
        ({"model": {1, 2}}, [said("one")]),
        ({"model": "m"}, [said(object())]),
        ({"model": "m"}, "a string"),
    ],
)
async def test_a_request_that_cannot_be_sent_is_refused_and_changes_nothing(request_, items):
    rig = await warm()
    with pytest.raises((TypeError, ValueError)):
        rig.session.send(request_, items)
    await rig.turn(said("two"))
    assert CONTINUED == rig.outcome


async def test_a_closed_session_closes_its_connections_and_is_not_used_again():
    rig = await warm()
    late = rig.session.send(REQUEST, [*rig.history, said("late")])
    await rig.session.aclose()
    await rig.session.aclose()
    assert all(connection.closed for connection in rig.upstream._connections)
    with pytest.raises(SessionClosed):
        await drain(late)
    with pytest.raises(SessionClosed):
        rig.session.send(REQUEST, rig.history)
    with pytest.raises(SessionClosed):
        rig.session.record(rig.history)


async def test_closing_the_session_ends_a_turn_that_is_under_way():
    rig = await warm()
    events = rig.session.send(REQUEST, [*rig.history, said("two")])
    await anext(events)
    await rig.session.aclose()
    assert "response.failed" == (await drain(events))[-1]["type"]
    assert 2 == len(rig.facts)


async def test_leaving_its_context_closes_it():
    rig = Rig("hi")
    async with rig.session as entered:
        await rig.turn(said("one"))
    assert entered is rig.session
    assert rig.upstream._connections[0].closed
