"""Whole loops of an agent: what the provider holds is always what the agent meant it to."""

from __future__ import annotations

from collections import Counter

from tests.support.agent_loops import AgentLoop

SEEDS = range(60)
TURNS_PER_SEED = 20


async def test_random_agent_loops_leave_no_transcript_different_and_no_reason_wrong():
    modes, reasons, wrong, frozen = Counter(), Counter(), [], 0
    for seed in SEEDS:
        loop = AgentLoop(seed)
        for _ in range(TURNS_PER_SEED):
            await loop.step()
        await loop.session.aclose()
        modes, reasons, frozen = modes + loop.modes, reasons + loop.reasons, frozen + loop.frozen
        wrong += [f"seed {seed}, {what}" for what in loop.wrong]
    assert [] == wrong
    assert sum(modes.values()) == len(SEEDS) * TURNS_PER_SEED
    assert modes["ws_incremental"] > modes["ws_full"] > modes["http_full"] > 0
    assert frozen > 100
    for reason in ("epoch_reset", "prefix_mismatch", "output_conflict", "connection_lost"):
        assert reasons[reason] > 0
