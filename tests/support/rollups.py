"""The figures of rows in plain Python, to hold those of the rollups against."""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Self

from hypothesis import strategies as st
from sqlalchemy import Engine, func, select

from app.ledger import series, store
from app.ledger.cells import Cell, Continuity, Cost, TokenTotals
from app.ledger.conditions import SUCCEEDED, matcher
from app.ledger.database import WRITES, open_engine
from app.ledger.filters import Filter
from app.ledger.grounds import PRICED_BY
from app.ledger.models import turns
from app.ledger.rollups import break_tables, tables
from app.ledger.rollups.contribution import DAY, HOUR, LEVELS, MINUTE, QUARTER, key_of, sums_of
from app.ledger.rollups.distribution import Distribution
from app.ledger.rollups.read import CELLS
from app.ledger.rollups.rebuild import rebuild
from app.ledger.rows import TurnRow
from app.ledger.summary import Summary, summarize
from app.ledger.writer import write_rows
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
_close = st.builds(
    lambda place, minutes: FIRST + DAY + place + minutes * MINUTE,
    st.sampled_from([-2 * HOUR, -HOUR, 0]),
    st.sampled_from([0, 1, 2, 6]),
)
_ONE: dict[str, Any] = {
    "source": "gateway",
    "tenant": "a",
    "upstream": "a",
    "client": None,
    "model": "a",
}


@st.composite
def rows(draw: st.DrawFn) -> TurnRow:
    """A turn of sixty, within three days: the same one comes again now and then, with other
    values. Most fall into so few stretches and sessions that these have several each. Nobody has
    judged them: when a verdict is taken back is no rule of sums."""
    row = draw(ledger.rows)
    if draw(st.sampled_from([True, True, True, False])):
        start, whose = draw(_close), _ONE | {"session_key": draw(st.sampled_from("ab"))}
        if draw(st.booleans()):
            whose |= {"kind": "generation", "status": "completed", "eligible": True}
    else:
        start, whose = draw(instants), {}
    end = start + draw(st.integers(0, HOUR))
    return replace(
        row,
        turn_id=f"t{draw(st.integers(1, 60))}",
        started_at=start,
        ended_at=end,
        recorded_at=end,
        **(dict.fromkeys(("cache_verdict", "cache_grade", "missed_tokens")) | whose),
    )


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
def windows(draw: st.DrawFn, grid: int = 1) -> Filter:
    """All of a window."""
    start, end = sorted(draw(st.tuples(instants, instants)))
    start, end = start - start % grid, end - end % grid
    return Filter(start=start, end=max(end, start + grid))


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
    ordered = tuple(sorted(sessions, key=lambda found: (-found.turns, found.session_key)))
    return {
        "total": len(some),
        "count": len(names),
        "continuity": Continuity.of(_cells(some)),
        "tokens": TokenTotals.of(_cells(some)),
        "cost": Cost(
            nano_usd=_cost(some),
            priced=sum(row.cost_usd is not None for row in some),
            unpriced=sum(row.cost_usd is None and row.status in SUCCEEDED for row in some),
        ),
        "ttft": _ttft(some),
        "sessions": ordered,
        "first sessions": ordered[:2],
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
        "cost": whole.cost,
        "ttft": whole.ttft,
        "sessions": series.sessions(engine, view),
        "first sessions": series.sessions(engine, view, limit=2),
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
        priced=sum(row.cost_usd is not None for row in some),
        nano_usd=_cost(some),
    )


def _cost(some: Iterable[TurnRow]) -> int:
    return sum(int(row.cost_usd * 10**9) for row in some if row.cost_usd is not None)


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
    """A ledger that two gateways write to, and beside it the rows that it should hold or
    remember."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        other = open_engine(engine.url)
        self._writing = itertools.cycle(one.execution_options(**WRITES) for one in (engine, other))
        self._imports = itertools.count(1)
        self._close = other.dispose
        self.rows: dict[str, TurnRow] = {}
        self.gone: set[str] = set()
        """Of these, the ones that were deleted as too old: nothing can be changed in them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._close()

    def insert(self, some: list[TurnRow]) -> None:
        with next(self._writing).begin() as connection:
            new = store.insert_rows(connection, some)
        assert self._expect(some) == new

    def together(self, some: list[TurnRow]) -> None:
        """Two gateways at once, each with turns of its own."""
        halves = [[row for row in some if int(row.turn_id[1:]) % 2 == half] for half in (0, 1)]
        threads = [
            threading.Thread(target=write_rows, args=(next(self._writing), half), daemon=True)
            for half in halves
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._expect(some)

    def update(self, some: list[TurnRow]) -> None:
        last = {row.turn_id: row for row in self._there(some)}
        with next(self._writing).begin() as connection:
            store.update_rows(connection, list(last.values()))
        self.rows.update(
            {name: self._forgotten(row) for name, row in last.items() if name in self.rows}
        )

    def merge(self, some: list[TurnRow]) -> None:
        """The first turn that there is takes over what became of the second one."""
        known = self._there(some)
        if not known:
            return
        first = known[0]
        gone = next((row.turn_id for row in known if row.turn_id != first.turn_id), "none")
        with next(self._writing).begin() as connection:
            assert store.update_rows(connection, [first]) <= 1
            store.delete_rows(connection, turns.c.turn_id == gone)
        self.rows[first.turn_id] = self._forgotten(first)
        self.rows.pop(gone, None)

    def delete(self, some: list[TurnRow]) -> None:
        names = {row.turn_id for row in self._there(some)} | {"none"}
        with next(self._writing).begin() as connection:
            deleted = store.delete_rows(connection, turns.c.turn_id.in_(names))
        assert deleted == len(names & self.rows.keys())
        for name in names:
            self.rows.pop(name, None)

    def bring(self, some: list[TurnRow]) -> None:
        """An import: many rows of any time at once."""
        number = f"i{next(self._imports)}"
        brought = [replace(row, import_id=number) for row in some]
        write_rows(next(self._writing), brought, batch_size=5)
        self._expect(brought)

    def undo(self, _some: list[TurnRow]) -> None:
        """The last import that something is left of."""
        left = {row.import_id for row in self.rows.values() if row.import_id is not None}
        left -= {self.rows[name].import_id for name in self.gone}
        number = max(left, default="none")
        with next(self._writing).begin() as connection:
            store.delete_rows(connection, turns.c.import_id == number)
        self.rows = {name: row for name, row in self.rows.items() if row.import_id != number}

    def price(self, _some: list[TurnRow]) -> None:
        """All that have none: a nano-dollar for each token of their input."""

        def price(row: TurnRow) -> store.Price:
            given = row.input_tokens
            return store.Price(None if given is None else Decimal(given) / 10**9, "list_price")

        with next(self._writing).begin() as connection:
            store.put_prices(connection, price)
        for name, row in self.rows.items():
            if (row.cost_usd, row.price_note) == (None, None) and name not in self.gone:
                usd, note = price(row)
                self.rows[name] = replace(row, cost_usd=usd, price_note=note)

    def _forgotten(self, row: TurnRow) -> TurnRow:
        """A row with new values: the price that it had is that of other tokens, say."""
        old = self.rows[row.turn_id]
        same = (row.cost_usd, row.price_note) == (old.cost_usd, old.price_note)
        if not same or all(getattr(row, n) == getattr(old, n) for n in PRICED_BY):
            return row
        return replace(row, cost_usd=None, price_note=None)

    def rebuild(self, _some: list[TurnRow]) -> None:
        rebuild(next(self._writing))

    def _there(self, some: list[TurnRow]) -> list[TurnRow]:
        """The same as turns that there are."""
        names = sorted(self.rows.keys() - self.gone)
        return [
            replace(row, turn_id=names[int(row.turn_id[1:]) % len(names)]) for row in some if names
        ]

    def _expect(self, some: list[TurnRow]) -> list[TurnRow]:
        new = []
        for row in some:
            if row.turn_id not in self.rows:
                self.rows[row.turn_id] = row
                new.append(row)
        return new

    def stored(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that the rollups hold, in an order of their own."""
        held = (
            tables.cells, tables.sessions, tables.lives, tables.blocks, tables.shares,
            break_tables.sums, break_tables.sessions,
        )  # fmt: skip
        with self.engine.connect() as connection:
            return {
                table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
                for table in held
            } | {
                "times": sorted(
                    (*place, Distribution.read(ttft), Distribution.read(duration))
                    for *place, ttft, duration in connection.execute(select(tables.times))
                    if ttft or duration
                )
            }


def counted_in(engine: Engine) -> int:
    """How many turns the rollups count."""
    cells = tables.cells.c
    finest = (cells.detail == 1, cells.level == LEVELS[0])
    with engine.connect() as connection:
        found = connection.execute(select(func.sum(cells.turns)).where(*finest)).scalar_one()
    return int(found or 0)


def turns_in(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(turns)).scalar_one()
