from __future__ import annotations

from itertools import product
from typing import Any

from sqlalchemy import Engine

from app.analysis import witnesses
from app.analysis.causes import cause_of
from app.analysis.lookup import COMPARED
from app.analysis.remedies import needed
from app.analysis.verdicts import LOSSES, NO_REWRITE
from app.analysis.waste import loss_of
from app.ledger import economics
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.queries import some
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.reported import judged, some_turns
from tests.support.rows import START_MS, make_row


def lost(engine: Engine, view: Filter) -> list[tuple[str, int | None]]:
    with reading(engine) as connection:
        found = economics.lost(connection, view, LOSSES, COMPARED)
        return [(row.turn_id, gap) for row, gap in found]


def warm(engine: Engine, view: Filter) -> dict[str, list[float]]:
    with reading(engine) as connection:
        return dict(economics.warm(connection, view, LOSSES))


def passing(engine: Engine, view: Filter) -> list[tuple[str, bool]]:
    with reading(engine) as connection:
        found = economics.passing(connection, view, "history_rewrite", NO_REWRITE)
        return [(row.turn_id, row.selected) for row in found]


def turn(name: str, at: int, verdict: str = "hit", **changes: Any) -> Any:
    """A turn of one second that begins ``at`` so many seconds."""
    began = START_MS + at * 1_000
    times = {"started_at": began, "ended_at": began + 1_000}
    return judged(verdict, "proven", 0, 9, turn_id=name, **(times | changes))


def test_lost_are_losses_and_breaks_with_the_pause_before_what_was_compared(engine: Engine):
    broken = {"reason": "prefix_mismatch", "mode": "ws_full"}
    write_rows(engine, [
        turn("first", 0, "idle", **broken), turn("hit", 9), turn("loss", 20, "persistent"),
        turn("break", 21, **broken),
        turn("seen", 90, reason="continuation_off", shadow_reason="non_input_fields_changed"),
        turn("other", 40, "idle", session="b"), turn("failed", 95, "idle", status="failed"),
        turn("compaction", 93, None, kind="compaction"), turn("late", 99, **broken),
    ])  # fmt: skip
    # What failed, or was of another kind, has kept no cache alive.
    assert [
        ("first", None), ("loss", None), ("break", 0), ("seen", 68_000), ("other", None),
        ("late", 8_000),
    ] == lost(engine, everything())  # fmt: skip
    narrow = everything().narrow("reason", "prefix_mismatch")
    assert [("first", None), ("break", 0), ("late", 8_000)] == lost(engine, narrow)


def test_the_pause_is_that_of_the_chain_where_there_are_several(engine: Engine):
    broken = {"reason": "prefix_mismatch", "mode": "ws_full"}
    write_rows(engine, [
        turn("main", 0, chain="main"), *(turn(f"s{at}", at, chain="side") for at in (50, 99)),
        turn("back", 101, chain="main", **broken), turn("new", 105, chain="new", **broken),
        turn("moved", 110, "identity_change", chain="main"),
    ])  # fmt: skip
    assert [("back", 100_000), ("new", 3_000), ("moved", 8_000)] == lost(engine, everything())


def test_lost_turns_hold_all_that_is_asked_of_them(engine: Engine):
    """As whole rows would answer it."""
    told = {"diverged_class": "edited", "changed_fields": "tools,model", "evidence": '{"index": 3}'}
    others = [
        turn(f"{verdict}-{reason}", at, verdict, reason=reason, fallback_reason="closed", **told)
        for at, (verdict, reason) in enumerate(product(sorted(LOSSES), [*sorted(COMPARED), "ok"]))
    ]
    write_rows(engine, [*some_turns(), *others])
    with reading(engine) as connection:
        found = list(economics.lost(connection, everything(), LOSSES, COMPARED))
    whole = {row.turn_id: row for row in some(engine, [row.turn_id for row, _ in found])}
    assert len(found) == len(whole) == 3 + len(others)
    for row, gap in found:
        assert answers(whole[row.turn_id], gap) == answers(row, gap)


def answers(row: TurnRow, gap: int | None) -> tuple[Any, ...]:
    lost = row.cache_verdict in LOSSES
    return needed(row, gap), loss_of(row, None), lost and (cause_of(row), witnesses.layer_of(row))


def test_warm_are_the_turns_of_the_window_in_sessions_that_lost_something(engine: Engine):
    full = {"mode": "ws_full"}
    write_rows(engine, [
        turn("a", 0, "idle", ttft_ms=1.0), turn("b", 1, ttft_ms=30.0, **full),
        turn("c", 2, "shortfall", ttft_ms=20.0), turn("d", 3, None, ttft_ms=10.0),
        turn("cold", 4, "cold_start", ttft_ms=2.0, **full), turn("no", 5, ttft_ms=None),
        turn("failed", 6, status="failed", ttft_ms=3.0), turn("e", 7, session="b", ttft_ms=4.0),
    ])  # fmt: skip
    # Where nothing is asked for, no session is looked up: nearly all have lost something.
    assert {"key-session-a": [10.0, 20.0, 30.0], "key-b": [4.0]} == warm(engine, everything())
    # What a view is about is not what its turns are measured by.
    assert {"key-session-a": [10.0, 20.0, 30.0]} == warm(
        engine, everything().narrow("verdict", "idle")
    )
    assert {} == warm(engine, everything().narrow("verdict", "hit"))


def test_sessions_with_a_rewritten_history_pass_whole_and_in_their_order(engine: Engine):
    write_rows(engine, [
        turn("a2", 2, None, kind="compaction"), turn("a3", 3), turn("a1", 1),
        turn("b2", 5, "history_rewrite", session="b"), turn("b1", 4, session="b"),
        turn("c1", 6, session="c", epoch_reset_reason="summarize"),
        turn("d1", 7, session="d", epoch_reset_reason="turn_count"), turn("e1", 8, session="e"),
    ])  # fmt: skip
    assert [(name, True) for name in ("b1", "b2", "c1", "a1", "a2", "a3")] == passing(
        engine, everything()
    )
    assert [("b1", False), ("b2", True)] == passing(
        engine, everything().narrow("verdict", "history_rewrite")
    )
    # What is unknown to a condition is not selected.
    write_rows(
        engine, [make_row(turn_id="b3", session="b", model=None, started_at=START_MS + 9_000)]
    )
    some = everything().narrow("session", "b").narrow("model", "gpt-5.6-sol")
    assert [("b1", True), ("b2", True), ("b3", False)] == passing(engine, some)
