"""Whole conversations: what the provider holds is always what the client sent and was answered."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import virtual_time
from tests.support.conversations import Conversations
from tests.support.report import Report

SEEDS = range(50)
TURNS_PER_SEED = 44


def conversations(seed: int, steps: int) -> Conversations:
    run = Conversations(seed)

    async def go() -> Report:
        return await run.run(steps)

    virtual_time.run(go())
    return run


def test_two_thousand_random_turns_leave_no_transcript_different_and_no_reason_wrong():
    turns, modes, faults = 0, Counter(), []
    for seed in SEEDS:
        report = conversations(seed, TURNS_PER_SEED).report
        turns += report.turns
        modes += report.modes
        faults += [f"seed {seed}, {fault}" for fault in report.faults]
    assert [] == faults
    assert turns >= 2000
    assert modes["ws_incremental"] > turns / 3
    assert modes["ws_full"] > 0


@pytest.mark.parametrize("seed", [1000, 1001])
def test_each_turn_leaves_exactly_one_row(seed):
    run = conversations(seed, 60)
    ids = [facts.turn_id for facts in run.stack.facts]
    assert len(ids) == len(set(ids)) == run.report.turns
