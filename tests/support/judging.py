"""Rows of one session, for properties of verdicts."""

from __future__ import annotations

from hypothesis import strategies as st

from app.ledger.rows import TurnRow
from tests.support.rows import START_MS, make_row

_given = st.sampled_from([500, 2_000, 9_000, 12_000, 20_000, 40_000])
_cached = st.sampled_from([0, 0, 1_001, 1_024, 4_608, 8_960, 11_904, 19_968, 39_936])


@st.composite
def session_rows(draw: st.DrawFn, most: int = 12) -> list[TurnRow]:
    """Rows of one session in any order: parallel chains, branches, resets, what tells nothing."""
    rows = []
    at = START_MS
    for number in range(draw(st.integers(0, most))):
        at += draw(st.sampled_from([0, 500, 3_000, 40_000, 400_000, 4_000_000]))
        given = draw(_given)
        source, mode, reason = draw(
            st.sampled_from(
                [
                    ("gateway", "ws_incremental", "ok"),
                    ("gateway", "ws_full", "connection_lost"),
                    ("gateway", "ws_full", "no_baseline"),
                    ("gateway", "ws_full", "prefix_mismatch"),
                    ("import:log", None, None),
                ]
            )
        )
        rows.append(
            make_row(
                turn_id=f"t{number}",
                session="s",
                source=source,
                mode=mode,
                reason=reason,
                started_at=at,
                ended_at=at + draw(st.sampled_from([0, 500, 5_000, 100_000])),
                kind=draw(st.sampled_from(["generation"] * 6 + ["compaction", "warmup"])),
                status=draw(st.sampled_from(["completed"] * 6 + ["failed"])),
                chain=draw(st.sampled_from([None, None, "a", "b"])),
                response_id=draw(st.sampled_from([None, f"r{number}"])),
                previous_response_id=draw(
                    st.sampled_from([None, None, f"r{number - 1}", f"r{number - 2}"])
                ),
                epoch_reset_reason=draw(st.sampled_from([None] * 6 + ["summarize", "turn_count"])),
                model=draw(st.sampled_from(["gpt-5.6-sol"] * 5 + ["gpt-5.1"])),
                input_tokens=given,
                cached_tokens=min(given, draw(_cached)),
                fingerprint=None,
            )
        )
    return draw(st.permutations(rows))
