"""The measures of a rule: what was counted in its window, at every instant of a stretch of time.

One grouped query cuts the stretch into buckets as long as the rule's ``every``; windows are sums
of whole buckets that slide on by one. The live evaluation, the preview and the backtest all read
here, so that the same rows give the same measures. What a rate counts is decided by
``app.ledger.cells`` and ``app.ledger.summary``, as on every page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Label, func, select

from app.alerts import ordered
from app.alerts.groups import GroupKey, key_of
from app.alerts.rules import Rule
from app.alerts.signals import Measure, Signal, Weight
from app.errors import AppError
from app.ledger.cells import Cell, read_cells
from app.ledger.conditions import COLUMN_OF, generation, where
from app.ledger.filters import UNKNOWN, Filter
from app.ledger.models import turns
from app.ledger.summary import ERRORS
from engine.model import Status

c = turns.c
MAX_SAMPLES = 5_000_000
"""Of a stretch; they are held in memory, where each takes some 40 bytes."""
_Counts = tuple[int, int, int, int]
"""``part``, ``whole``, ``turns`` and ``unknown`` of a ``Measure``."""
_NOTHING: _Counts = (0, 0, 0, 0)
_Also = Sequence[int]
"""The values of the aggregates in ``_ALSO``."""


def instants(rule: Rule, after: int, until: int) -> range:
    """When the rule is evaluated: the instants t with ``after < t <= until``, in epoch ms."""
    step = rule.every * 1_000
    return range((after // step + 1) * step, until + 1, step)


def windows(
    engine: Engine, rule: Rule, first: int, last: int
) -> Iterator[tuple[int, dict[GroupKey, Measure]]]:
    """Every instant from ``first`` to ``last``, both included, with the measure of each group that
    has rows in the window ``[t - delay - window, t - delay)``.

    All rows are read before this returns. Raises ``ValueError`` for bounds (epoch milliseconds)
    that are no instants of the rule, and ``AppError`` (422) for more samples than ``MAX_SAMPLES``.
    """
    step, whole, delay = rule.every * 1_000, rule.window * 1_000, rule.delay * 1_000
    if first % step or last % step:
        raise ValueError("a rule is evaluated at multiples of its step only")
    times = range(first, last + 1, step)
    # A single instant needs no finer cut than its window.
    length = whole if len(times) == 1 else step
    stretch = _Stretch(rule, first - delay - whole, length)
    end = last - delay
    if times and end > 0:
        # The filter's grammar knows no time before 1970, and the ledger no such row.
        stretch.read(engine, rule.view(max(stretch.start, 0), end))
    return stretch.slide(times, whole // length)


class _Stretch:
    """What was counted in consecutive buckets, by their number, and by group."""

    def __init__(self, rule: Rule, start: int, length: int) -> None:
        self.start = start
        """Where bucket 0 begins, and the first window: no row that is read lies before it, so
        that no division has to round a negative number, which databases do differently."""
        self._length = length
        self._rule = rule
        self._groups: list[Label[Any]] = [
            c[COLUMN_OF[name]].label(f"alert_{name}") for name in rule.group_by
        ]
        self._keys: dict[tuple[Any, ...], GroupKey] = {}
        self._counts: dict[int, dict[GroupKey, list[int]]] = {}
        """``rows``, then ``_Counts``."""
        self._samples: dict[int, dict[GroupKey, list[float]]] = {}

    def read(self, engine: Engine, view: Filter) -> None:
        with engine.connect() as connection:
            self._read_cells(connection, view)
            if self._rule.signal is Signal.TTFT_P95:
                self._read_samples(connection, view)

    def _read_cells(self, connection: Connection, view: Filter) -> None:
        bucket = ((c.recorded_at - self.start) // self._length).label("alert_bucket")
        also = _ALSO.get(self._rule.signal, ())
        count, weight = _COUNTING[self._rule.signal], self._rule.weight
        after = 1 + len(self._groups)
        for values, cell in read_cells(connection, view, by=[bucket, *self._groups], also=also):
            counted = count(cell, weight, values[after:])
            self._add(values[0], self._key(values[1:after]), cell.turns, counted)

    def _read_samples(self, connection: Connection, view: Filter) -> None:
        query = select(c.recorded_at, c.ttft_ms, *self._groups).where(
            where(view), generation, c.ttft_ms.is_not(None)
        )
        for place, (instant, sample, *group) in enumerate(connection.execute(query), 1):
            if place > MAX_SAMPLES:
                raise AppError(
                    "backtest_too_large",
                    f"There are more than {MAX_SAMPLES:,} times to the first token in this time.",
                    "Choose a shorter time or window, or a filter.",
                    status=422,
                )
            number, key = (instant - self.start) // self._length, self._key(tuple(group))
            self._samples.setdefault(number, {}).setdefault(key, []).append(sample)
            self._add(number, key, 0, (0, 0, 1, 0))

    def _key(self, values: tuple[Any, ...]) -> GroupKey:
        key = self._keys.get(values)
        if key is None:
            named = (UNKNOWN if value is None else value for value in values)
            key = key_of(dict(zip(self._rule.group_by, named, strict=True)))
            self._keys[values] = key
        return key

    def _add(self, number: int, key: GroupKey, rows: int, counted: _Counts) -> None:
        counts = self._counts.setdefault(number, {}).setdefault(key, [0] * 5)
        for place, value in enumerate((rows, *counted)):
            counts[place] += value

    def slide(self, times: range, width: int) -> Iterator[tuple[int, dict[GroupKey, Measure]]]:
        """The sums of ``width`` buckets, those of the first instant from bucket 0 on."""
        sums = _Sums()
        for number in range(width - 1):
            sums.enter(self._counts.get(number, {}), self._samples.get(number, {}))
        for number, instant in enumerate(times):
            entering, leaving = number + width - 1, number - 1
            sums.enter(self._counts.get(entering, {}), self._samples.get(entering, {}))
            sums.leave(self._counts.pop(leaving, {}), self._samples.pop(leaving, {}))
            yield instant, sums.measures()


class _Sums:
    """Sums over a window, by group; exact, because only whole numbers are added and taken off."""

    def __init__(self) -> None:
        self._counts: dict[GroupKey, list[int]] = {}
        self._samples: dict[GroupKey, list[float]] = {}
        self._measures: dict[GroupKey, Measure] = {}
        self._changed: set[GroupKey] = set()

    def enter(
        self, counts: Mapping[GroupKey, list[int]], samples: Mapping[GroupKey, list[float]]
    ) -> None:
        self._count(counts, 1)
        for key, values in samples.items():
            ordered.add(self._samples.setdefault(key, []), values)

    def leave(
        self, counts: Mapping[GroupKey, list[int]], samples: Mapping[GroupKey, list[float]]
    ) -> None:
        self._count(counts, -1)
        for key, values in samples.items():
            ordered.remove(self._samples[key], values)

    def _count(self, counts: Mapping[GroupKey, list[int]], sign: int) -> None:
        for key, values in counts.items():
            sums = self._counts.setdefault(key, [0] * 5)
            for place, value in enumerate(values):
                sums[place] += sign * value
            self._changed.add(key)

    def measures(self) -> dict[GroupKey, Measure]:
        for key in self._changed:
            rows, part, whole, turns_, unknown = self._counts[key]
            if rows:
                samples = tuple(self._samples.get(key, ()))
                self._measures[key] = Measure(rows, part, whole, turns_, unknown, samples)
            else:
                self._measures.pop(key, None)
                del self._counts[key]
        self._changed.clear()
        return dict(self._measures)


def _share(cell: Cell, weight: Weight, *, in_part: bool, in_whole: bool) -> _Counts:
    """A rate of turns of known mode, or of the input tokens of those whose usage is known."""
    if not in_whole:
        return (0, 0, 0, cell.turns) if cell.generation and not cell.known else _NOTHING
    if weight is Weight.TURNS:
        return cell.turns if in_part else 0, cell.turns, cell.turns, 0
    without = cell.turns - cell.usage_turns
    return cell.input if in_part else 0, cell.input, cell.usage_turns, without


def _mismatches(cell: Cell, weight: Weight, _also: _Also) -> _Counts:
    return _share(cell, weight, in_part=cell.mismatch, in_whole=cell.eligible)


def _breaks(cell: Cell, weight: Weight, _also: _Also) -> _Counts:
    return _share(cell, weight, in_part=cell.broken, in_whole=cell.eligible)


def _incremental(cell: Cell, weight: Weight, _also: _Also) -> _Counts:
    return _share(cell, weight, in_part=cell.incremental, in_whole=cell.known)


def _cached(cell: Cell, _weight: Weight, _also: _Also) -> _Counts:
    if not cell.generation:
        return _NOTHING
    return cell.cached, cell.input, cell.usage_turns, cell.turns - cell.usage_turns


def _errors(cell: Cell, _weight: Weight, _also: _Also) -> _Counts:
    if cell.status == Status.CLIENT_CLOSED:
        return _NOTHING
    return cell.turns if cell.status in ERRORS else 0, cell.turns, cell.turns, 0


def _slow(cell: Cell, _weight: Weight, also: _Also) -> _Counts:
    """Turns are counted with their samples."""
    return (0, 0, 0, cell.turns - also[0]) if cell.generation else _NOTHING


def _missed(cell: Cell, _weight: Weight, also: _Also) -> _Counts:
    if not cell.generation:
        return _NOTHING
    tokens, known = also
    return tokens, 0, known, cell.turns - known


_COUNTING: Mapping[Signal, Callable[[Cell, Weight, _Also], _Counts]] = {
    Signal.MISMATCH_RATE: _mismatches,
    Signal.BREAK_RATE: _breaks,
    Signal.INCREMENTAL_RATE: _incremental,
    Signal.CACHED_RATIO: _cached,
    Signal.ERROR_RATE: _errors,
    Signal.TTFT_P95: _slow,
    Signal.MISSED_TOKENS: _missed,
}
_ALSO: Mapping[Signal, tuple[ColumnElement[int], ...]] = {
    Signal.TTFT_P95: (func.count(c.ttft_ms),),
    Signal.MISSED_TOKENS: (
        func.coalesce(func.sum(c.missed_tokens), 0),
        func.count(c.missed_tokens),
    ),
}
"""What the cells do not hold."""
