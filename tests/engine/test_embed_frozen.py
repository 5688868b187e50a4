"""A tool output is, for the life of an epoch, the string that the model saw (DESIGN 4.5)."""

from __future__ import annotations

from contextlib import suppress

import pytest

from engine.errors import TurnFailed
from engine.testing import Fail, Lose, function_call
from tests.support.embedded import (
    CONTINUED,
    PLACEHOLDER,
    Rig,
    gave,
    looped,
    said,
    same_as_held,
)


async def test_metadata_that_moves_to_the_newest_result_breaks_nothing():
    rig = await looped(function_call("f", "b"), "done")
    rig.history[2]["output"] = '{"ok":1}'
    await rig.turn(gave("b", '{"ok":2,"_meta":{"now":2}}'))
    assert CONTINUED == rig.outcome
    assert 1 == rig.last.frozen_items
    assert [gave("b", '{"ok":2,"_meta":{"now":2}}')] == rig.upstream.sent[-1].body["input"]
    assert '{"ok":1,"_meta":{"now":1}}' == rig.held[2]["output"]
    assert '{"ok":1}' == rig.history[2]["output"]  # the agent's items are its own


async def test_a_full_turn_of_the_same_epoch_sends_what_the_model_saw():
    rig = await looped("x", "done")
    rig.history[2]["output"] = "changed"
    await rig.turn(said("more"), instructions="new")
    assert ("ws_full", "non_input_fields_changed", 1) == (*rig.outcome, rig.last.frozen_items)
    assert '{"ok":1,"_meta":{"now":1}}' == rig.upstream.sent[-1].body["input"][2]["output"]


@pytest.mark.parametrize("fault", [Fail(status=500), Fail(after=2), Lose(after=2), Lose(after=0)])
async def test_an_output_of_a_turn_that_failed_is_not_frozen(fault):
    rig = Rig(function_call("f", "a"), fault, "done")
    await rig.turn(said("go"))
    rig.history.append(gave("a", "tried first"))
    with suppress(TurnFailed):
        await rig.turn()
    rig.history[-1] = gave("a", "tried again")
    await rig.turn()
    assert "tried again" == rig.upstream.sent[-1].body["input"][-1]["output"]
    assert 0 == rig.last.frozen_items
    assert same_as_held(rig)


async def test_an_output_that_was_answered_over_http_is_frozen_too():
    rig = Rig(function_call("f", "a"), "done", "more")
    rig.upstream.refuse(times=4)
    await rig.turn(said("go"))
    await rig.turn(gave("a", "seen"))
    assert ("http_full", "ws_unavailable") == rig.outcome
    rig.history[2]["output"] = "changed"
    await rig.turn(said("more"))
    assert ("seen", 1) == (rig.held[2]["output"], rig.last.frozen_items)


async def test_a_new_epoch_sends_the_agents_own_outputs():
    rig = await looped("x", "done")
    rig.history[2]["output"] = "summary"
    rig.session.reset_epoch("summarize")
    await rig.turn(said("more"))
    assert ("epoch_reset", 0) == (rig.outcome[1], rig.last.frozen_items)
    assert same_as_held(rig)
    rig.history[2]["output"] = "changed"
    await rig.turn(said("yet more"))
    assert (CONTINUED, 1, "summary") == (rig.outcome, rig.last.frozen_items, rig.held[2]["output"])


async def test_placeholders_between_parallel_calls_break_no_chain():
    rig = Rig([function_call("f", "a"), function_call("f", "b")], "done", placeholder=PLACEHOLDER)
    await rig.turn(said("go"))
    start, a, b = rig.history
    filled = [start, a, gave("a", PLACEHOLDER), b, gave("b", PLACEHOLDER)]
    assert rig.session.record(filled)
    await rig.turn(gave("a", "1"), gave("b", "2"))
    assert CONTINUED == rig.outcome
    assert ["1", "2"] == [item["output"] for item in rig.upstream.sent[-1].body["input"]]


async def test_a_placeholder_that_was_sent_is_held_and_its_output_is_sent_in_full():
    calls = [function_call("f", "a"), function_call("f", "b")]
    rig = Rig(calls, "waiting", "done", placeholder=PLACEHOLDER)
    await rig.turn(said("go"))
    await rig.turn(gave("b", PLACEHOLDER), gave("a", "1"))
    assert [gave("a", "1"), gave("b", PLACEHOLDER)] == rig.upstream.sent[-1].body["input"]
    rig.history[3:5] = [gave("a", "1"), gave("b", "2")]
    await rig.turn(said("and now?"))
    assert ("ws_full", "prefix_mismatch", 0) == (*rig.outcome, rig.last.frozen_items)
    assert same_as_held(rig)


async def test_a_call_that_goes_on_waiting_breaks_no_chain():
    calls = [function_call("f", "a"), function_call("f", "b")]
    rig = Rig(calls, "waiting", "still waiting", placeholder=PLACEHOLDER)
    await rig.turn(said("go"))
    await rig.turn(gave("b", PLACEHOLDER), gave("a", "1"))
    assert rig.session.record(rig.history)
    for text in ("and now?", "and now??"):
        await rig.turn(said(text))
        assert CONTINUED == rig.outcome
        assert rig.session.record(rig.history)
    assert [gave("a", "1"), gave("b", PLACEHOLDER)] == rig.held[3:5]
