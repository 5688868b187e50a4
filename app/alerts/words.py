"""What alerts say in plain words: numbers, readings, times, causes. Pure.

Messages, the page and the API use the same sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from app.alerts.rules import Rule, duration
from app.alerts.signals import CATALOGUE, Confidence, Lack, Reading, Signal, SignalInfo, Weight
from app.alerts.states import GONE_AFTER, Cause
from app.charts.chart import count, percent

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
    "\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
"""Control characters, those that nobody sees or that turn the direction of writing, and halves of
characters."""
_TINY = 1e-9
CUT = " … (cut)"


def clean(text: str) -> str:
    """In one line and printable: names come from requests and imports, and may hold anything."""
    return _UNPRINTABLE.sub("\ufffd", text)


def cut(text: str, most: int) -> str:
    """At most so many characters; where something was taken away, the end says so."""
    if len(text) <= most:
        return text
    return text[: most - len(CUT)] + CUT if most > 3 * len(CUT) else text[: most - 1] + "…"


def label_text(labels: Mapping[str, str], most: int = 1_000) -> str:
    """``model=gpt-6-sol, client=codex``; empty for a rule that does not group."""
    return ", ".join(f"{name}={cut(clean(value), most)}" for name, value in labels.items())


def amount(signal: Signal, value: float | None, beside: float | None = None) -> str:
    """``30 %``, ``2,350 ms`` or ``12,000 tokens``.

    A rate that differs from ``beside``, but would look the same, gets more digits: nobody should
    read that 20 % is above 20 %.
    """
    if value is None or not math.isfinite(value):
        return "unknown"
    unit = CATALOGUE[signal].unit
    shown = _shown(value, unit)
    if beside is None or beside == value or shown != _shown(beside, unit):
        return shown
    scale = 100 if unit == "ratio" else 1
    digits = next((n for n in range(4, 17) if f"{value:.{n}g}" != f"{beside:.{n}g}"), 17)
    exact = f"{float(f'{value * scale:.{digits}g}'):,}".removesuffix(".0")
    return f"{exact} {'%' if unit == 'ratio' else unit}"


def _shown(value: float, unit: str) -> str:
    if unit == "ratio":
        return percent(value)
    if unit == "tokens" and value == 1:
        unit = "token"
    return f"{value:,.0f} {unit}" if value >= 10 or value == int(value) else f"{value:g} {unit}"


def threshold(rule: Rule) -> str:
    return amount(rule.signal, rule.threshold)


def recovery(rule: Rule) -> str:
    """``at 10 % or below``: where the value has to be for the alert to end."""
    side = "below" if CATALOGUE[rule.signal].rises else "above"
    return f"at {amount(rule.signal, rule.recover)} or {side}"


def reading_sentence(rule: Rule, reading: Reading) -> str:
    """The value, what it was made of, what of it is proven, and what it is compared with."""
    if reading.lack is Lack.NO_ROWS:
        return "No turn was recorded in the window."
    info = CATALOGUE[rule.signal]
    if reading.value is None:
        reason = {
            Lack.NOTHING_COUNTS: f"{count(reading.measure.rows, 'turn')} recorded, no {info.whole}",
            Lack.ALL_UNKNOWN: f"of {count(reading.measure.unknown, 'turn')} it is not known",
        }.get(reading.lack or Lack.NOTHING_COUNTS, "nothing counts")
        return f"{info.title} unknown ({reason}), threshold {threshold(rule)}."
    value = amount(rule.signal, reading.value, rule.threshold)
    parts = [_counts(rule, info, reading)]
    if rule.confidence is Confidence.WILSON and _proves_something(info, reading.bound):
        side = "least" if info.rises else "most"
        bound = amount(rule.signal, reading.bound, rule.threshold)
        parts.append(f"at {side} {bound} is proven")
    if reading.measure.unknown:
        parts.append(f"{reading.measure.unknown:,} more unknown")
    sentence = f"{info.title} {value} ({'; '.join(parts)}), threshold {threshold(rule)}."
    if reading.lack is Lack.TOO_FEW:
        sentence += f" Too few to judge by: {rule.min_turns:,} are needed."
    return sentence


def _proves_something(info: SignalInfo, bound: float | None) -> bool:
    """At least 0 % and at most 100 % are true of every rate; the bound is computed in floats."""
    if bound is None:
        return False
    return bound > _TINY if info.rises else bound < 1 - _TINY


def _counts(rule: Rule, info: SignalInfo, reading: Reading) -> str:
    measure = reading.measure
    if info.unit != "ratio":
        return f"{measure.turns:,} {_singular(info.whole, measure.turns)}"
    if rule.weight is Weight.TURNS:
        return f"{measure.part:,} of {measure.whole:,} {_singular(info.whole, measure.whole)}"
    turns = "turns" if rule.signal is Signal.CACHED_RATIO else info.whole
    return (
        f"{measure.part:,} of {measure.whole:,} input tokens, "
        f"in {measure.turns:,} {_singular(turns, measure.turns)}"
    )


def _singular(words: str, number: int) -> str:
    return re.sub(r"\bturns\b", "turn", words, count=1) if number == 1 else words


def moment(ms: int) -> str:
    """``2027-01-15 08:00:00 UTC``."""
    return f"{_stamp(ms)} UTC"


def window(start: int, end: int) -> str:
    """``2027-01-15 07:45:00 to 08:00:00 UTC``: the day once where it is the same."""
    first, last = _stamp(start), _stamp(end)
    if first[:10] == last[:10]:
        last = last[11:]
    return f"{first} to {last} UTC"


def _stamp(ms: int) -> str:
    return (_EPOCH + timedelta(milliseconds=ms)).strftime("%Y-%m-%d %H:%M:%S")


def span(ms: int) -> str:
    """``45 s``, ``12 min``, ``3 h 5 min``, ``2 d 4 h``: the two largest units."""
    seconds = max(0, ms) // 1_000
    shown = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, seconds = divmod(seconds, length)
        if number:
            shown.append(f"{number} {unit}")
        elif shown:
            break
    return " ".join(shown[:2]) or "less than 1 s"


def ending(rule: Rule, cause: Cause | None, *, absence: bool = False) -> str:
    """Why an alert ended."""
    match cause:
        case Cause.CLEARED | Cause.STAYED_CLEAR if absence:
            return "Turns are recorded again."
        case Cause.CLEARED:
            return f"It recovered: the value is {recovery(rule)}."
        case Cause.STAYED_CLEAR:
            lasting = duration(rule.keep_firing_for)
            return f"It recovered: the value has been {recovery(rule)} for {lasting}."
        case Cause.GONE:
            return (
                f"No rows any more: no turn was recorded in the window at {GONE_AFTER} "
                "evaluations in a row. Whether it recovered is not known."
            )
        case Cause.ABSENT:
            return "No rows any more, which this rule takes for well."
        case Cause.EDITED:
            return "The rule was edited, and no longer watches this."
        case Cause.PAUSED:
            return "The rule was paused. Whether it recovered is not known."
        case Cause.DELETED:
            return "The rule was deleted. Whether it recovered is not known."
        case _:
            return "It no longer holds."
