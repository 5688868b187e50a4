"""When an embedded session begins anew from the agent's own history (DESIGN 4.6)."""

from __future__ import annotations

import pytest

from engine.embed import EPOCH_TURNS
from engine.errors import TurnFailed
from engine.model import Kind, Status
from engine.testing import Fail, function_call
from tests.support.embedded import (
    CONTINUED,
    FULL_FIRST,
    REQUEST,
    Rig,
    gave,
    looped,
    said,
    same_as_held,
    warm,
)


async def test_an_epoch_has_twenty_turns_unless_told_otherwise():
    rig = Rig()
    for n in range(EPOCH_TURNS + 2):
        await rig.turn(said(str(n)))
    full = [n for n, facts in enumerate(rig.facts) if facts.mode == "ws_full"]
    assert (20, [0, 20]) == (EPOCH_TURNS, full)
    reset = rig.facts[20]
    assert ("epoch_reset", "turn_count", 2, 1) == (
        reset.reason,
        reset.epoch_reset_reason,
        reset.epoch,
        reset.epoch_turn,
    )
    assert (1, 20) == (rig.facts[19].epoch, rig.facts[19].epoch_turn)
    assert same_as_held(rig)


async def test_an_epoch_has_as_many_turns_as_told():
    rig = Rig(epoch_turns=2)
    for n in range(4):
        await rig.turn(said(str(n)))
    assert ["no_baseline", "ok", "epoch_reset", "ok"] == [f.reason for f in rig.facts]


async def test_without_a_limit_no_epoch_ends_by_itself():
    rig = Rig(epoch_turns=0)
    for n in range(25):
        await rig.turn(said(str(n)))
    assert 1 == [f.mode for f in rig.facts].count("ws_full")


async def test_outputs_are_recorded_as_seen_up_to_the_end_of_their_epoch():
    rig = await looped(epoch_turns=2)
    rig.history[2]["output"] = "moved"
    assert rig.session.record(rig.history)  # the epoch's last turn
    await rig.turn(said("more"))
    assert ("turn_count", "moved") == (rig.last.epoch_reset_reason, rig.held[2]["output"])


async def test_summarizing_resets_at_once_and_says_so_once():
    rig = await warm()
    rig.session.reset_epoch("summarize")
    rig.history[:] = [said("a summary"), *rig.history[1:]]
    await rig.turn(said("two"))
    assert ("ws_full", "epoch_reset", "summarize") == (*rig.outcome, rig.last.epoch_reset_reason)
    assert same_as_held(rig)
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome


async def test_several_resets_before_a_turn_are_one():
    rig = await warm()
    for reason in ("summarize", "manual", "my own word"):
        rig.session.reset_epoch(reason)
    await rig.turn(said("two"))
    assert ("summarize", 2) == (rig.last.epoch_reset_reason, rig.last.epoch)
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome


async def test_a_reset_survives_a_turn_that_failed():
    rig = await warm(Fail(status=500), "second")
    rig.session.reset_epoch("summarize")
    with pytest.raises(TurnFailed):
        await rig.turn(said("two"))
    await rig.turn()
    assert ("epoch_reset", "summarize", Status.COMPLETED) == (
        rig.last.reason,
        rig.last.epoch_reset_reason,
        rig.last.status,
    )


async def test_a_reset_before_anything_was_sent_resets_nothing():
    rig = Rig()
    rig.session.reset_epoch("summarize")
    await rig.turn(said("one"))
    assert FULL_FIRST == rig.outcome


async def test_a_reset_during_a_turn_is_for_the_next_one():
    rig = Rig(function_call("f", "a"), "first", "second")
    await rig.turn(said("go"))
    rig.history.append(gave("a", "long"))
    async for event in rig.session.send(REQUEST, rig.history):
        if event["type"] == "response.created":
            rig.session.reset_epoch("summarize")
    assert CONTINUED == rig.outcome
    rig.history[2] = gave("a", "short")
    rig.history.append({"role": "assistant", "content": "first"})
    await rig.turn(said("two"))
    assert ("epoch_reset", "summarize") == (rig.last.reason, rig.last.epoch_reset_reason)
    assert same_as_held(rig)


async def test_the_age_of_a_connection_ends_its_epoch_and_its_frozen_outputs():
    rig = await looped()
    rig.history[2]["output"] = "now"
    rig.clock.advance(55 * 60)
    await rig.turn(said("more"))
    assert ("epoch_reset", "connection_age", 0) == (
        rig.last.reason,
        rig.last.epoch_reset_reason,
        rig.last.frozen_items,
    )
    assert same_as_held(rig)


async def test_while_a_younger_connection_goes_on_so_do_its_frozen_outputs():
    rig = Rig(function_call("f", "a"), "old chain", "young chain", "more")
    await rig.turn(said("go"))
    await rig.turn(gave("a", "seen"))
    rig.clock.advance(30 * 60)
    rig.history = rig.history[:3]
    await rig.turn(said("another way"))
    rig.history[2]["output"] = "moved"
    rig.clock.advance(30 * 60)
    await rig.turn(said("more"))
    assert (CONTINUED, 1, "seen") == (rig.outcome, rig.last.frozen_items, rig.held[2]["output"])


async def test_a_compaction_leaves_frozen_outputs_to_those_who_go_on_with_the_old_history():
    rig = await looped("compacted", "more")
    before = list(rig.history)
    await rig.turn({"type": "compaction_trigger"})
    assert (Kind.COMPACTION, False) == (rig.last.kind, rig.session.record(rig.history))
    rig.history = before
    rig.history[2]["output"] = "moved"
    await rig.turn(said("go on"))
    assert 1 == rig.last.frozen_items
    rig.session.reset_epoch("compaction")
    rig.history = [said("a summary")]
    await rig.turn()
    assert ("epoch_reset", "compaction") == (rig.last.reason, rig.last.epoch_reset_reason)
