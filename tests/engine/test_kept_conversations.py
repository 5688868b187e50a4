"""Whole conversations over kept responses: equal at the provider, and continued where possible."""

from __future__ import annotations

from collections import Counter

from tests.support.kept_conversations import KeptConversations

SEEDS = range(30)
TURNS_PER_SEED = 40


async def test_random_turns_leave_equal_transcripts_and_no_needless_full_one():
    modes, reasons, faults = Counter(), Counter(), []
    for seed in SEEDS:
        run = KeptConversations(seed)
        for _ in range(TURNS_PER_SEED):
            await run.step()
        modes += run.modes
        reasons += run.reasons
        faults += [f"seed {seed}, {fault}" for fault in run.faults]
    assert [] == faults
    assert modes["http_incremental"] > modes["http_full"] > 0
    assert {"http_incremental", "http_full"} == set(modes)
    assert {"ok", "previous_response_not_found", "prefix_mismatch", "store_unsupported"} <= set(
        reasons
    )
