"""What a rule is, and how one is read from the settings file, the page or the API.

A rule that cannot be understood is refused with the field at fault and what it may hold; nothing
is guessed. ``as_dict`` writes a rule in the form that ``parse`` reads (docs/alerts.md, "Rules").
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from app.alerts.signals import CATALOGUE, Confidence, Signal, Weight
from app.errors import AppError, BadParameterError
from app.ledger import filters
from app.ledger.filters import Filter
from app.ledger.rows import iso

GROUPINGS = ("model", "client", "upstream", "tenant")
LIVE = ("gateway", "embedded")
"""The ``source`` of turns as they happen. Imports and samples count only where a filter names
them."""
WHOLE_WINDOWS = 1_440
"""A window is at most so many evaluations long."""
_WINDOW_FIELDS = ("from", "to", "tz", "by")
_DURATION = re.compile(r"(\d{1,9})([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
WEEK = 7 * 86_400


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class NoData(StrEnum):
    """What a window without any row means."""

    NO_DATA = "no_data"
    """It is shown; an alert that fires ends after three such evaluations."""
    OK = "ok"
    """All is well."""
    ALERTING = "alerting"
    """It is a fault, as if the threshold were crossed."""
    KEEP_LAST = "keep_last"
    """Nothing changes."""


class BadRuleError(AppError):
    """``field`` is the part of the rule at fault."""

    def __init__(self, name: str, message: str, hint: str | None = None) -> None:
        super().__init__("bad_rule", message, hint, status=422)
        self.field = name

    def as_dict(self) -> dict[str, Any]:
        shape = super().as_dict()
        shape["error"]["field"] = self.field
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Durations are in whole seconds."""

    id: str
    name: str
    description: str = ""
    owner: str = ""
    enabled: bool = True
    severity: Severity = Severity.WARNING
    signal: Signal
    weight: Weight
    filter: str = ""
    """A query string of the ledger's filter grammar, without a window."""
    group_by: tuple[str, ...] = ()
    window: int = 900
    """A multiple of ``every``."""
    every: int = 60
    """Evaluations happen at the multiples of this since 1970."""
    delay: int = 10
    """The window ends so long before the evaluation: by then its rows are in the database."""
    threshold: float
    recover: float
    confidence: Confidence
    min_turns: int = 20
    pending_for: int = 0
    keep_firing_for: int = 0
    no_data: NoData = NoData.NO_DATA
    renotify_every: int = 0
    """0: never."""
    renotify_max: int = 10
    receivers: tuple[str, ...] = ()
    """Names."""
    labels: Mapping[str, str] = field(default_factory=dict)
    runbook_url: str = ""

    def view(self, start: int, end: int) -> Filter:
        """The rows of a window, in epoch milliseconds, by the time of their recording."""
        pairs = [
            *parse_qsl(self.filter),
            ("by", "recorded"),
            ("from", iso(start)),
            ("to", iso(end)),
        ]
        view = filters.parse(pairs, now=0.0)
        named = "source" in view.include or "source" in view.exclude
        return view if named else view.narrow("source", *LIVE)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; ``parse`` reads them back."""
        return {
            "name": self.name,
            "description": self.description,
            "owner": self.owner,
            "enabled": self.enabled,
            "severity": self.severity.value,
            "signal": self.signal.value,
            "weight": self.weight.value,
            "filter": self.filter,
            "group_by": list(self.group_by),
            "window": duration(self.window),
            "every": duration(self.every),
            "delay": duration(self.delay),
            "threshold": self.threshold,
            "recover": self.recover,
            "confidence": self.confidence.value,
            "min_turns": self.min_turns,
            "pending_for": duration(self.pending_for),
            "keep_firing_for": duration(self.keep_firing_for),
            "no_data": self.no_data.value,
            "renotify_every": duration(self.renotify_every),
            "renotify_max": self.renotify_max,
            "receivers": list(self.receivers),
            "labels": dict(self.labels),
            "runbook_url": self.runbook_url,
        }


def duration(seconds: int) -> str:
    """``15m``: the largest unit that divides it."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{seconds}s"


def read_duration(text: str) -> int | None:
    """``15m`` in seconds; None for what is no duration."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def parse(given: Mapping[str, Any], *, id: str, place: str = "the rule") -> Rule:  # noqa: A002
    """Read and check a rule. Raises ``BadRuleError``.

    ``given`` holds the fields of ``as_dict``; ``name``, ``signal`` and ``threshold`` are needed,
    every other has a default. ``place`` says in messages where the rule was written.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        check = FIELDS.get(name)
        if check is None:
            near = difflib.get_close_matches(name, FIELDS, 1)
            raise BadRuleError(
                name[:64],
                f"There is no field {name[:64]} in {place}.",
                f"Did you mean {near[0]}?" if near else f"Fields are {', '.join(FIELDS)}.",
            )
        try:
            values[name] = check(value)
        except BadParameterError as error:
            raise BadRuleError(name, f"{name} in {place}: {error.message}", error.hint) from None
        except ValueError as error:
            raise BadRuleError(name, f"{name} in {place} must be {error}.") from None
    for name in ("name", "signal", "threshold"):
        if name not in values:
            raise BadRuleError(name, f"{name} is missing in {place}.", _NEEDED[name])
    signal = CATALOGUE[values["signal"]]
    values.setdefault("weight", signal.weights[0])
    turns_are_counted = values["weight"] is Weight.TURNS
    values.setdefault("confidence", signal.confidences[0] if turns_are_counted else Confidence.RAW)
    values.setdefault("recover", values["threshold"])
    rule = Rule(id=id, **values)
    _check_together(rule, place)
    return rule


_NEEDED = {
    "name": "Give it one; it stands in every message.",
    "signal": f"It is one of {', '.join(Signal)}.",
    "threshold": "The rule fires beyond it.",
}


def _check_together(rule: Rule, place: str) -> None:
    info = CATALOGUE[rule.signal]

    def refuse(name: str, message: str, hint: str | None = None) -> None:
        raise BadRuleError(name, f"{name} in {place}: {message}", hint)

    if rule.weight not in info.weights:
        refuse("weight", f"{rule.signal} cannot be weighted by {rule.weight}.")
    if rule.confidence is Confidence.WILSON and (
        rule.weight is Weight.TOKENS or Confidence.WILSON not in info.confidences
    ):
        refuse(
            "confidence",
            "wilson needs a rate of turns.",
            "Use raw: tokens and times are no independent trials.",
        )
    for name in ("threshold", "recover"):
        value = getattr(rule, name)
        if info.unit == "ratio" and value > 1:
            refuse(name, f"{rule.signal} lies between 0 and 1.", "Write 20 % as 0.2.")
    if info.unit == "ratio" and rule.threshold == (1 if info.rises else 0):
        side = "above 1" if info.rises else "below 0"
        refuse("threshold", f"no {rule.signal} lies {side}, so the rule would never fire.")
    beyond = rule.recover > rule.threshold if info.rises else rule.recover < rule.threshold
    if beyond:
        side = "at most" if info.rises else "at least"
        refuse("recover", f"it must be {side} the threshold of {rule.threshold:g}.")
    if rule.window % rule.every:
        refuse(
            "window",
            f"{duration(rule.window)} is no multiple of every ({duration(rule.every)}).",
            "Windows are put together of whole steps.",
        )
    if rule.window > WHOLE_WINDOWS * rule.every:
        refuse(
            "window",
            f"{duration(rule.window)} is more than {WHOLE_WINDOWS} times every "
            f"({duration(rule.every)}).",
            "Evaluate less often or watch a shorter window.",
        )


def _text(longest: int, *, least: int = 0) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        wanted = f"a text of {least} to {longest} characters in one line"
        if not isinstance(value, str) or not least <= len(value.strip()) <= longest:
            raise ValueError(wanted)
        if not is_one_line(value):
            raise ValueError(wanted)
        return value.strip()

    return check


def is_one_line(text: str) -> bool:
    """No control character and no end of a line; nor half of a character (``\\ud800``), which no
    database and no message can hold."""
    return not any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in text)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")  # noqa: TRY004  (one kind of error for all fields)
    return value


def _one_of(kind: type[StrEnum]) -> Callable[[Any], StrEnum]:
    def check(value: Any) -> StrEnum:
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"one of {', '.join(kind)}") from None

    return check


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number of 0 or more")  # noqa: TRY004
    if not 0 <= value < 1e15:  # nor nan; and before math, which huge integers overflow
        raise ValueError("a number of 0 or more")
    return float(value)


def _whole(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return check


def _seconds(least: int, most: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        wanted = f"a duration from {duration(least)} to {duration(most)}, such as 90s, 15m or 6h"
        if isinstance(value, str):
            value = read_duration(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(wanted)
        return value

    return check


def _filter(value: Any) -> str:
    """Checked, and written the one way in which the grammar writes it."""
    if not isinstance(value, str) or not is_one_line(value):
        raise ValueError("a filter such as model=gpt-6-sol&client=codex_exec")
    pairs = parse_qsl(value.strip().removeprefix("?"), keep_blank_values=True)
    if value.strip() and not pairs:
        raise ValueError("a filter such as model=gpt-6-sol&client=codex_exec")
    for name, _ in pairs:
        if name in _WINDOW_FIELDS:
            raise BadParameterError(
                name, f"{name} has no place here.", "The rule's own window decides the time."
            )
    view = filters.parse(pairs, now=86_400.0)
    return Filter(0, 1, include=view.include, exclude=view.exclude, q=view.q).to_query()


def _groupings(value: Any) -> tuple[str, ...]:
    wanted = f"a list of different ones of {', '.join(GROUPINGS)}"
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise ValueError(wanted)  # noqa: TRY004
    if any(name not in GROUPINGS for name in value) or len(set(value)) < len(value):
        raise ValueError(wanted)
    return tuple(name for name in GROUPINGS if name in value)


def _names(value: Any) -> tuple[str, ...]:
    wanted = "a list of names of receivers"
    if not isinstance(value, list | tuple) or len(value) > 20:
        raise ValueError(wanted)
    for name in value:
        if not isinstance(name, str) or not 1 <= len(name.strip()) <= 100 or not is_one_line(name):
            raise ValueError(wanted)
    return tuple(dict.fromkeys(name.strip() for name in value))


def _labels(value: Any) -> dict[str, str]:
    wanted = "at most 20 short texts by name; names are of letters, digits and _"
    if not isinstance(value, Mapping) or len(value) > 20:
        raise ValueError(wanted)
    for name, text in value.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
            raise ValueError(wanted)
        if not isinstance(text, str) or len(text) > 200 or not is_one_line(text):
            raise ValueError(wanted)
    return dict(sorted(value.items()))


def _link(value: Any) -> str:
    wanted = "a URL with http:// or https:// and without credentials"
    if not isinstance(value, str) or len(value) > 1_000 or not is_one_line(value):
        raise ValueError(wanted)
    if re.search(r"[\s<>\"]", value):
        raise ValueError(wanted)
    if value:
        try:
            parts = urlsplit(value)
            known = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            raise ValueError(wanted) from None
        if not known or "@" in parts.netloc:
            raise ValueError(wanted)
    return value


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "name": _text(100, least=1),
    "description": _text(1_000),
    "owner": _text(100),
    "enabled": _flag,
    "severity": _one_of(Severity),
    "signal": _one_of(Signal),
    "weight": _one_of(Weight),
    "filter": _filter,
    "group_by": _groupings,
    "window": _seconds(1, WEEK),
    "every": _seconds(1, 86_400),
    "delay": _seconds(0, 3_600),
    "threshold": _number,
    "recover": _number,
    "confidence": _one_of(Confidence),
    "min_turns": _whole(1, 1_000_000),
    "pending_for": _seconds(0, WEEK),
    "keep_firing_for": _seconds(0, WEEK),
    "no_data": _one_of(NoData),
    "renotify_every": _seconds(0, 4 * WEEK),
    "renotify_max": _whole(1, 1_000),
    "receivers": _names,
    "labels": _labels,
    "runbook_url": _link,
}
