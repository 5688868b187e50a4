"""The figures of rows in plain Python, to hold those of the rollups against."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import Engine, func, select

from app.ledger import series, store
from app.ledger.cells import Cell, Continuity, TokenTotals
from app.ledger.conditions import matcher
from app.ledger.database import WRITES
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rollups import tables
from app.ledger.rollups.contribution import DAY, HOUR, QUARTER, key_of, sums_of
from app.ledger.rollups.distribution import Distribution
from app.ledger.rollups.read import CELLS
from app.ledger.rollups.rebuild import rebuild
from app.ledger.rows import TurnRow
from app.ledger.summary import Summary, summarize
from tests.support import ledger
from tests.support.rows import START_MS

FIRST = START_MS - START_MS % DAY - DAY
SPAN = 3 * DAY
instants = st.one_of(
    st.integers(FIRST, FIRST + SPAN),
    st.integers(0, SPAN // QUARTER).map(lambda n: FIRST + n * QUARTER),
    st.integers(0, SPAN // QUARTER).map(lambda n: FIRST + n * QUARTER - 1),
    st.integers(0, SPAN // HOUR).map(lambda n: FIRST + n * HOUR),
    st.integers(0, SPAN // DAY * 4).map(lambda n: FIRST + n * DAY // 4),
)
_whose = st.fixed_dictionaries(
    {
        "session_key": st.sampled_from("ab"),
        "source": st.just("gateway"),
        "tenant": st.just("a"),
        "upstream": st.just("a"),
        "client": st.none(),
        "model": st.just("a"),
    }
)
"""So few that stretches have several rows each."""
_close = st.integers(0, 12).map(lambda n: FIRST + DAY - 2 * HOUR + n * QUARTER // 2)
rows = st.builds(
    lambda row, start, name, wait, whose: replace(
        row,
        turn_id=f"t{name}",
        started_at=start,
        ended_at=start + wait,
        recorded_at=start + wait,
        **whose,
    ),
    ledger.rows,
    _close | _close | instants,
    st.integers(1, 30),
    st.integers(0, HOUR),
    _whose | _whose | st.just({}),
)
"""Over three days, of thirty turns: the same one comes again now and then, with other values."""


@st.composite
def filters(draw: st.DrawFn, grid: int = 1) -> Filter:
    """Any filter by start; with ``grid``, of dimensions of the rollups in a window on it."""
    drawn = draw(ledger.filters())
    start, end = sorted(draw(st.tuples(instants, instants)))
    if grid > 1:
        start, end = start - start % grid, end - end % grid
        drawn = replace(
            drawn,
            q=None,
            include={n: v for n, v in drawn.include.items() if n in CELLS},
            exclude={n: v for n, v in drawn.exclude.items() if n in CELLS},
        )
    return replace(drawn, by="started", start=start, end=max(end, start + grid))


@st.composite
def edges(draw: st.DrawFn, grid: int = 1) -> list[int]:
    found = sorted(draw(st.lists(instants, min_size=2, max_size=8)))
    return [edge - edge % grid for edge in found]


def expected_series(
    known: Iterable[TurnRow], view: Filter, cuts: Sequence[int]
) -> dict[str, tuple[Any, ...]]:
    buckets: list[list[TurnRow]] = [[] for _ in cuts[1:]]
    for row in _selected(known, view):
        if cuts[0] <= row.started_at < cuts[-1]:
            buckets[bisect_right(cuts, row.started_at) - 1].append(row)
    return {
        "continuity": tuple(Continuity.of(_cells(some)) for some in buckets),
        "tokens": tuple(TokenTotals.of(_cells(some)) for some in buckets),
        "ttft": tuple(_ttft(some) for some in buckets),
    }


def found_series(engine: Engine, view: Filter, cuts: Sequence[int]) -> dict[str, tuple[Any, ...]]:
    return {
        "continuity": series.continuity(engine, view, cuts),
        "tokens": series.tokens(engine, view, cuts),
        "ttft": series.ttft(engine, view, cuts),
    }


def expected_whole(known: Iterable[TurnRow], view: Filter) -> dict[str, Any]:
    some = _selected(known, view)
    names = {row.session_key for row in some}
    sessions = [
        _session(key, [row for row in some if row.session_key == key]) for key in sorted(names)
    ]
    return {
        "total": len(some),
        "count": len(names),
        "continuity": Continuity.of(_cells(some)),
        "tokens": TokenTotals.of(_cells(some)),
        "ttft": _ttft(some),
        "sessions": tuple(sorted(sessions, key=lambda found: (-found.turns, found.session_key))),
        "residency": sorted(
            (found.continuity.incremental, found.continuity.known) for found in sessions
        ),
    }


def found_whole(engine: Engine, view: Filter) -> dict[str, Any]:
    whole: Summary = summarize(engine, view)
    return {
        "total": whole.total,
        "count": whole.sessions,
        "continuity": whole.continuity,
        "tokens": whole.tokens,
        "ttft": whole.ttft,
        "sessions": series.sessions(engine, view),
        "residency": sorted(
            (part, of) for part, of, number in series.residency(engine, view) for _ in range(number)
        ),
    }


def _session(key: str, some: list[TurnRow]) -> series.SessionTotals:
    return series.SessionTotals(
        session_key=key,
        session=max((row.session for row in some if row.session is not None), default=None),
        turns=len(some),
        first_at=min(row.started_at for row in some),
        last_at=max(row.started_at for row in some),
        continuity=Continuity.of(_cells(some)),
        tokens=TokenTotals.of(_cells(some)),
    )


def _selected(known: Iterable[TurnRow], view: Filter) -> list[TurnRow]:
    matches = matcher(view)
    return [row for row in known if view.start <= row.started_at < view.end and matches(row)]


def _cells(some: Iterable[TurnRow]) -> list[Cell]:
    made = []
    for row in some:
        key = key_of(row)
        made.append(
            Cell(key.kind, key.status, key.mode, key.reason, key.eligible, key.cache, *sums_of(row))
        )
    return made


def _ttft(some: Iterable[TurnRow]) -> dict[str | None, Distribution]:
    samples: dict[str | None, list[float]] = {}
    for row in some:
        if row.ttft_ms is not None and _cells([row])[0].generation:
            samples.setdefault(row.mode, []).append(row.ttft_ms)
    return {mode: Distribution(values) for mode, values in samples.items()}


class Model:
    """A ledger, and beside it the rows that it should hold or remember."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writing = engine.execution_options(**WRITES)
        self.rows: dict[str, TurnRow] = {}

    def insert(self, some: list[TurnRow]) -> None:
        with self._writing.begin() as connection:
            new = store.insert_rows(connection, some)
        expected = []
        for row in some:
            if row.turn_id not in self.rows:
                self.rows[row.turn_id] = row
                expected.append(row)
        assert expected == new

    def update(self, some: list[TurnRow]) -> None:
        last = {row.turn_id: row for row in some}
        with self._writing.begin() as connection:
            store.update_rows(connection, list(last.values()))
        self.rows.update({name: row for name, row in last.items() if name in self.rows})

    def delete(self, some: list[TurnRow]) -> None:
        names = {row.turn_id for row in some}
        with self._writing.begin() as connection:
            deleted = store.delete_rows(connection, turns.c.turn_id.in_(names))
        assert deleted == len(names & self.rows.keys())
        for name in names:
            self.rows.pop(name, None)

    def rebuild(self, _some: list[TurnRow]) -> None:
        rebuild(self.engine)

    def stored(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that the rollups hold, in an order of their own."""
        with self.engine.connect() as connection:
            return {
                table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
                for table in (tables.cells, tables.sessions)
            } | {
                "times": sorted(
                    (*place, Distribution.read(ttft), Distribution.read(duration))
                    for *place, ttft, duration in connection.execute(select(tables.times))
                    if ttft or duration
                )
            }


def turns_in(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(turns)).scalar_one()
