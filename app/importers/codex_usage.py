"""Which ``token_count`` lines of a rollout are requests, and what each of these used.

Such a line holds what the whole session has used so far and what the last request used. About half
of them repeat the line before with other rate limits. Counters fall where the history was replaced
and where a session was taken up again; a line that was overtaken by another one shows figures that
were there before.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from app.importers.importer import Vector
from app.importers.json_lines import count
from engine.model import Usage, UsageState

_NAMES = (
    ("input_tokens", "prompt_tokens", "input"),
    ("cached_input_tokens", "cache_read_input_tokens", "cached_tokens"),
    ("cache_write_input_tokens",),
    ("output_tokens", "completion_tokens", "output"),
    ("reasoning_output_tokens", "reasoning_tokens"),
    ("total_tokens",),
)


class Figures(NamedTuple):
    """What one object of usage says; None is what it does not say."""

    input: int | None = None
    cached: int | None = None
    written: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None

    @property
    def told(self) -> bool:
        return self.input is not None

    @property
    def nothing(self) -> bool:
        """A provider that reports no usage is written down as zeros."""
        return not any(self)

    @property
    def vector(self) -> Vector:
        return tuple(value or 0 for value in self)

    def usage(self) -> Usage:
        if self.nothing:
            return Usage()
        return Usage(
            input_tokens=self.input,
            cached_tokens=self.cached,
            cache_write_tokens=self.written,
            output_tokens=self.output,
            reasoning_tokens=self.reasoning,
            total_tokens=self.total,
            state=UsageState.REPORTED,
        )


def figures(value: Any) -> Figures:
    """The figures of a usage object, under any of the names that they have had."""
    if not isinstance(value, Mapping):
        return Figures()
    return Figures(*(_first(value, names) for names in _NAMES))


def _first(value: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        said = value.get(name)
        if type(said) is int and 0 <= said < 2**63:  # as it nearly always is
            return said
        found = count(said)
        if found is not None:
            return found
    return None


class Request(NamedTuple):
    usage: Figures
    key: tuple[int, ...]
    """What makes this line this request of its session, in every copy of it."""
    vector: Vector
    """The figures as they stand in the line, for comparison with another file."""


class No(Enum):
    REPEATED = "repeats a count that was there before"
    NOTHING = "tells of no request"


@dataclass(slots=True)
class Counter:
    """The ``token_count`` lines of one file, in their order."""

    _before: Any = None
    """What the line before said."""
    _total: Figures | None = None
    _seen: set[Vector] = field(default_factory=set)
    _marked: bool = False
    _run: int = 0
    """Counts how often the counters began anew."""
    _times: Tally[Vector] = field(default_factory=Tally)

    def mark(self) -> None:
        """The history was replaced, or the session was taken up again: counters may fall."""
        self._marked = True

    def meet(self, info: Any) -> Request | No:
        if not isinstance(info, Mapping):
            return No.NOTHING
        if info == self._before:
            return No.REPEATED
        self._before = info
        total, last = (figures(info.get(f"{name}_token_usage")) for name in ("total", "last"))
        vector = total.vector + last.vector
        if last.input == 0 and not last.output:
            return No.NOTHING  # the estimate after a compaction
        if total.told:
            return self._by_total(total, last, vector)
        if not last.told:
            return No.NOTHING
        self._times[vector] += 1
        return Request(last, (-1, self._times[vector], *last.vector), vector)

    def _by_total(self, total: Figures, last: Figures, vector: Vector) -> Request | No:
        before, begins = self._total, total.vector == last.vector
        if before is not None and total.vector == before.vector:
            if not (self._marked and begins and vector not in self._seen):
                return No.REPEATED
            self._begin_anew()
        elif self._marked and before is not None and _fell(before, total):
            self._begin_anew()
            before = Figures()
        elif vector in self._seen:
            return No.REPEATED
        elif before is not None and _fell(before, total):
            if not last.told:
                return No.NOTHING  # overtaken: what it counted is in what came before
            if begins:
                self._begin_anew()
        self._marked = False
        self._total = total
        self._seen.add(vector)
        used = last if last.told else _difference(before, total)
        return Request(used, (self._run, *vector), vector)

    def _begin_anew(self) -> None:
        self._run += 1
        self._seen.clear()


def _fell(before: Figures, now: Figures) -> bool:
    pairs = ((before.input, now.input), (before.output, now.output), (before.total, now.total))
    return any(was is not None and is_now is not None and is_now < was for was, is_now in pairs)


def _difference(before: Figures | None, now: Figures) -> Figures:
    """What was used between two totals; the first total of a session is its first request's.

    Unknown where the counters began anew at nobody knows what.
    """
    if before is None:
        return now
    if not before.told:
        return Figures()
    assert now.input is not None
    assert before.input is not None
    used = now.input - before.input

    def part(was: int | None, is_now: int | None) -> int | None:
        if is_now is None:
            return None
        if was is None or is_now >= was:
            return is_now - (was or 0)
        return is_now if is_now <= used else None  # this counter alone began anew, at 0

    return Figures(used, *(part(*pair) for pair in zip(before[1:], now[1:], strict=True)))
