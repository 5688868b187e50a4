"""Whole conversations: what the provider holds is always what the client sent and was answered."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.conversations import Conversations

SEEDS = range(50)
TURNS_PER_SEED = 44


async def test_two_thousand_random_turns_leave_no_transcript_different_and_no_reason_wrong():
    turns, modes, faults = 0, Counter(), []
    for seed in SEEDS:
        run = Conversations(seed)
        for _ in range(TURNS_PER_SEED):
            await run.step()
        turns += run.report.turns
        modes += run.report.modes
        faults += [f"seed {seed}, {fault}" for fault in run.report.faults]
    assert [] == faults
    assert turns >= 2000
    assert modes["ws_incremental"] > turns / 3
    assert modes["ws_full"] > 0


@pytest.mark.parametrize("seed", [1000, 1001])
async def test_each_turn_leaves_exactly_one_row(seed):
    run = Conversations(seed)
    for _ in range(60):
        await run.step()
    ids = [facts.turn_id for facts in run.stack.facts]
    assert len(ids) == len(set(ids)) == run.report.turns
