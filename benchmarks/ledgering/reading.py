"""What the panels of the overview take, from rollups and from rows by the best index for them."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock
from zoneinfo import ZoneInfo

from sqlalchemy import Engine

from app.analysis.buckets import cut
from app.ledger import series
from app.ledger.filters import Filter
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.rollups.state import RollupState
from app.ledger.summary import summarize
from benchmarks.ledgering.month import DAYS, END
from benchmarks.ledgering.result import Result, best_ms

ZONE = ZoneInfo("Europe/Berlin")
MS = {"sqlite": 25.0, "postgresql": 40.0}
"""A panel may take as long."""
FASTER = {"24 h": 15.0, "30 d": 300.0}
"""At ten million rows, than from the rows."""
GROWTH = 3.0
"""From a tenth of the rows."""
FULL = 10_000_000
COVERING = (
    "started_at, kind, status, mode, reason, eligible, usage_state, input_tokens, cached_tokens, "
    "cache_write_tokens, output_tokens, reasoning_tokens, session_key, session, ttft_ms"
)

Panel = Callable[[], object]


def views() -> dict[str, Filter]:
    # Not on the hour: the edges come from rows, as they do on a page that follows the time.
    now = END - 7 * 60_000 - 123
    return {
        "24 h": Filter(start=now - DAY, end=now),
        "30 d": Filter(start=now - (DAYS - 1) * DAY - 22 * HOUR, end=now),
    }


def panels(engine: Engine) -> dict[tuple[str, str], Panel]:
    return {
        (length, name): panel
        for length, view in views().items()
        for name, panel in _panels(engine, view).items()
    }


def _panels(engine: Engine, view: Filter) -> dict[str, Panel]:
    edges = cut(view.start, view.end, zone=ZONE, now=END).edges
    return {
        "summary": lambda: summarize(engine, view),
        "modes": lambda: series.modes(engine, view, edges),
        "mismatch": lambda: series.continuity(engine, view, edges),
        "tokens": lambda: series.tokens(engine, view, edges),
        "ttft": lambda: series.ttft(engine, view, edges),
        "sessions": lambda: sorted(series.residency(engine, view)),
        "sessions, top 20": lambda: series.sessions(engine, view, limit=20),
    }


def from_rollups(engine: Engine) -> dict[tuple[str, str], float]:
    """Milliseconds by length of the window and panel."""
    taken = {}
    for place, panel in panels(engine).items():
        panel()
        taken[place] = best_ms(panel, 15)
    return taken


def results(
    engine: Engine,
    rows: int,
    taken: dict[tuple[str, str], float],
    tenth: dict[tuple[str, str], float] | None,
    beside_rows: bool,
) -> list[Result]:
    """``taken`` and ``tenth`` are what a ledger and one with a tenth of its rows take."""
    name = engine.dialect.name
    known = {place: panel() for place, panel in panels(engine).items()} if beside_rows else {}
    by_rows = _from_rows(engine, known) if beside_rows else {}
    found = []
    for (length, panel), ms in taken.items():
        title = f"{name}, {rows:,} rows, {length}, {panel}"
        found.append(Result(title, ms, "ms", MS[name]))
        if tenth is not None:
            before = tenth[length, panel]
            found.append(Result(f"{title}: growth from a tenth", ms / before, "x", GROWTH))
        if beside_rows:
            ratio = FASTER[length] if rows >= FULL else None
            plain = by_rows[length, panel]
            found += [
                Result(f"{title}: rows by the covering index", plain, "ms"),
                Result(f"{title}: that much faster", plain / ms, "x", ratio, at_least=True),
            ]
    return found


def _from_rows(
    engine: Engine, known: dict[tuple[str, str], object]
) -> dict[tuple[str, str], float]:
    """The same figures counted from the rows; they are compared."""
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX IF EXISTS covering")
        connection.exec_driver_sql(f"CREATE INDEX covering ON turns ({COVERING})")
        connection.exec_driver_sql("ANALYZE")
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM turns")
    taken = {}
    try:
        with mock.patch.object(states, "read", return_value=RollupState(missing=True)):
            for place, panel in panels(engine).items():
                assert known[place] == panel(), f"{place} differs from the rows"
                taken[place] = best_ms(panel, 3 if place[0] == "24 h" else 1)
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP INDEX covering")
            if engine.dialect.name == "sqlite":
                # Users have no statistics: what is measured next is to have none either.
                connection.exec_driver_sql("DROP TABLE IF EXISTS sqlite_stat1")
    return taken
