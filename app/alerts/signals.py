"""What a rule can watch: how a window of the ledger becomes one number that can be judged.

A ``Measure`` is what was counted in a stretch of time; measures add up, so that a window is the
sum of its parts and the group ``other`` the sum of its members. A ``Reading`` is what a measure
says: a value, the value that the data *prove* (the Wilson bound), and, where there is too little
to say anything, why. A reading without a value is not 0 (docs/alerts.md, "Signals").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from app.analysis.continuity import wilson
from app.analysis.latency import percentile


class Signal(StrEnum):
    MISMATCH_RATE = "mismatch_rate"
    BREAK_RATE = "break_rate"
    INCREMENTAL_RATE = "incremental_rate"
    CACHED_RATIO = "cached_ratio"
    ERROR_RATE = "error_rate"
    TTFT_P95 = "ttft_p95"
    MISSED_TOKENS = "missed_tokens"


class Weight(StrEnum):
    """What a rate counts: turns, or the input tokens of these turns."""

    TURNS = "turns"
    TOKENS = "tokens"


class Confidence(StrEnum):
    WILSON = "wilson"
    """Fires on the bound of the 95 % interval: the rate that the turns prove."""
    RAW = "raw"


@dataclass(frozen=True, slots=True)
class SignalInfo:
    """A row of the catalogue; form, messages and documentation are made from it."""

    title: str
    unit: str
    """``ratio`` (0 to 1), ``ms`` or ``tokens``."""
    rises: bool
    """High is bad. Otherwise low is, and the rule fires below its threshold."""
    part: str
    """What the numerator counts, in words; the value itself where there is no ratio."""
    whole: str
    """What the denominator counts, in words; the turns behind the value where there is none."""
    weights: tuple[Weight, ...]
    """The weights it may be asked for; the first is the default."""
    confidences: tuple[Confidence, ...]
    """With the weight ``tokens`` only ``raw`` is possible: tokens are no independent trials."""


_BOTH = (Weight.TURNS, Weight.TOKENS)
_PROVEN = (Confidence.WILSON, Confidence.RAW)
_RAW = (Confidence.RAW,)

CATALOGUE: Mapping[Signal, SignalInfo] = {
    Signal.MISMATCH_RATE: SignalInfo(
        "Mismatch rate", "ratio", True, "prefix mismatches", "eligible turns", _BOTH, _PROVEN
    ),
    Signal.BREAK_RATE: SignalInfo(
        "Break rate", "ratio", True, "breaks", "eligible turns", _BOTH, _PROVEN
    ),
    Signal.INCREMENTAL_RATE: SignalInfo(
        "Incremental rate",
        "ratio",
        False,
        "incremental turns",
        "generation turns of known mode",
        _BOTH,
        _PROVEN,
    ),
    Signal.CACHED_RATIO: SignalInfo(
        "Cached ratio",
        "ratio",
        False,
        "cached input tokens",
        "input tokens",
        (Weight.TOKENS,),
        _RAW,
    ),
    Signal.ERROR_RATE: SignalInfo(
        "Error rate",
        "ratio",
        True,
        "failed turns",
        "turns whose client did not leave",
        (Weight.TURNS,),
        _PROVEN,
    ),
    Signal.TTFT_P95: SignalInfo(
        "Time to first token, 95th percentile",
        "ms",
        True,
        "95th percentile",
        "turns with a first token",
        (Weight.TURNS,),
        _RAW,
    ),
    Signal.MISSED_TOKENS: SignalInfo(
        "Missed tokens",
        "tokens",
        True,
        "missed tokens",
        "turns whose missed tokens are known",
        (Weight.TOKENS,),
        _RAW,
    ),
}


@dataclass(frozen=True, slots=True)
class Measure:
    """What was counted of the rows of a stretch of time. Measures of disjoint stretches add up."""

    rows: int = 0
    """All rows that the rule's filter selects, whatever they are."""
    part: int = 0
    """Numerator: turns or tokens. Of ``missed_tokens`` the sum itself."""
    whole: int = 0
    """Denominator: turns or tokens. 0 where the signal is no ratio."""
    turns: int = 0
    """Turns that the value rests on: the minimum of a rule counts these."""
    unknown: int = 0
    """Turns that would count, had the ledger known their mode, usage or time."""
    samples: tuple[float, ...] = ()
    """Times to first token in milliseconds, ascending; for ``ttft_p95`` only."""


def total(measures: Iterable[Measure]) -> Measure:
    """The measure of all the rows together."""
    parts = list(measures)
    return Measure(
        sum(part.rows for part in parts),
        sum(part.part for part in parts),
        sum(part.whole for part in parts),
        sum(part.turns for part in parts),
        sum(part.unknown for part in parts),
        tuple(sorted(sample for part in parts for sample in part.samples)),
    )


class Lack(StrEnum):
    """Why a window cannot be judged."""

    NO_ROWS = "no_rows"
    NOTHING_COUNTS = "nothing_counts"
    """There are rows, but none that the signal is about, such as an eligible turn."""
    ALL_UNKNOWN = "all_unknown"
    """There are such rows, but what is needed of them is unknown."""
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a window says. ``value`` is None where nothing was counted; ``lack`` says why a window
    cannot be judged, and a reading with a lack neither fires nor resolves anything."""

    measure: Measure
    value: float | None
    bound: float | None
    """The end of the Wilson interval that has to cross the threshold; the value itself with
    ``raw``."""
    lack: Lack | None


def read(signal: Signal, confidence: Confidence, minimum: int, measure: Measure) -> Reading:
    """``minimum`` is the number of turns below which nothing is judged."""
    value = _value(signal, measure)
    bound = value
    if value is not None and confidence is Confidence.WILSON:
        low, high = wilson(measure.part, measure.whole)
        bound = low if CATALOGUE[signal].rises else high
    return Reading(measure, value, bound, _lack(measure, value, minimum))


def _value(signal: Signal, measure: Measure) -> float | None:
    if not measure.turns:
        return None
    match CATALOGUE[signal].unit:
        case "ms":
            return percentile(measure.samples, 0.95)
        case "tokens":
            return float(measure.part)
        case _:
            return measure.part / measure.whole if measure.whole else None


def _lack(measure: Measure, value: float | None, minimum: int) -> Lack | None:
    if not measure.rows:
        return Lack.NO_ROWS
    if value is None:
        return Lack.ALL_UNKNOWN if measure.unknown else Lack.NOTHING_COUNTS
    return Lack.TOO_FEW if measure.turns < minimum else None
