"""The one filter grammar of pages, API, exports and alerts (docs/ledger.md, "Filters").

A filter is a half-open window of time, values per dimension, and a text. ``parse`` reads it from
a query string and refuses what it does not know; ``Filter.to_query`` writes it back, so that a
link made from a filter means that filter. What it selects is in ``conditions``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.errors import BadParameterError
from app.ledger.rows import iso, to_ms
from engine.model import Kind, Mode, Status

DIMENSIONS: tuple[str, ...] = (
    "model",
    "upstream",
    "tenant",
    "client",
    "session",
    "root",
    "chain",
    "mode",
    "reason",
    "eligible",
    "status",
    "kind",
    "source",
    "fingerprint",
    "changed_fields",
    "fallback_reason",
    "cache",
    "verdict",
    "grade",
    "turn_id",
    "break",
)
UNKNOWN = "unknown"
UNJUDGED = "unjudged"
CACHE_CLASSES = ("hit", "partial", "miss", UNKNOWN)
CLOSED: Mapping[str, tuple[str, ...]] = {
    "mode": (*Mode, UNKNOWN),
    "eligible": ("true", "false"),
    "status": tuple(Status),
    "kind": tuple(Kind),
    "cache": CACHE_CLASSES,
}
"""Dimensions whose values are all known; the others take any word: imports bring their own."""
_NONE = {"verdict": UNJUDGED, "grade": UNJUDGED}
PARAMETERS = ("from", "to", "tz", "by", *DIMENSIONS, "q")
DEFAULT_RANGE = "now-24h"
VALUE_LIMIT = 512
VALUES_LIMIT = 200
LISTED = 40
"""So many turns may be named one by one in an address."""

By = Literal["started", "recorded"]
Values = Mapping[str, tuple[str, ...]]
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_RELATIVE = re.compile(r"now(?:-(\d{1,9})([smhdw]))?")
_OFFSET_WITHOUT_PLUS = re.compile(r"[ ](?=\d{2}:?\d{2}$)")
_EARLIEST = to_ms(datetime(1970, 1, 1, tzinfo=UTC).timestamp())
_LATEST = to_ms(datetime(9000, 1, 1, tzinfo=UTC).timestamp())
_FIRST = to_ms(datetime(2, 1, 2, tzinfo=UTC).timestamp())
"""What has a date in every zone does not begin before."""


@dataclass(frozen=True, slots=True)
class Filter:
    """``start <= time < end``, in epoch milliseconds; several values of a dimension are either-or,
    several dimensions all apply."""

    start: int
    end: int
    tz: str = "UTC"
    by: By = "started"
    include: Values = field(default_factory=dict)
    exclude: Values = field(default_factory=dict)
    q: str | None = None
    start_text: str | None = None
    """``from`` as it was asked for, so that a link to ``now-6h`` stays relative."""
    end_text: str | None = None

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.tz)

    @property
    def follows_now(self) -> bool:
        """The window ends at the moment of asking."""
        return self.end_text is None or self.end_text == "now"

    def window(self, start: int, end: int) -> Filter:
        """The same filter over another, fixed window."""
        return replace(self, start=start, end=end, start_text=iso(start), end_text=iso(end))

    def before(self) -> Filter:
        """The same filter over the time just before, which is as long as dates reach so far."""
        return self.window(max(self.start - (self.end - self.start), _FIRST), self.start)

    def narrow(self, dimension: str, *values: str) -> Filter:
        """The same filter with exactly these values of a dimension; none lifts it."""
        if dimension not in DIMENSIONS:
            raise ValueError(f"{dimension} is no dimension")
        include = {name: kept for name, kept in self.include.items() if name != dimension}
        exclude = {name: kept for name, kept in self.exclude.items() if name != dimension}
        if values:
            include[dimension] = values
        return replace(self, include=include, exclude=exclude)

    def to_pairs(self) -> list[tuple[str, str]]:
        """Parameters that ``parse`` reads back as this filter."""
        pairs: list[tuple[str, str]] = []
        if self.start_text is not None:
            pairs.append(("from", self.start_text))
        if self.end_text is not None:
            pairs.append(("to", self.end_text))
        if self.tz != "UTC":
            pairs.append(("tz", self.tz))
        if self.by != "started":
            pairs.append(("by", self.by))
        for name in DIMENSIONS:
            pairs += [(name, _escape(value)) for value in self.include.get(name, ())]
            pairs += [(name, "!" + value) for value in self.exclude.get(name, ())]
        if self.q is not None:
            pairs.append(("q", self.q))
        return pairs

    def to_query(self) -> str:
        return urlencode(self.to_pairs())


def none_of(dimension: str) -> str:
    """The value of rows that have none: ``unknown``, but where that is what a row may have."""
    return _NONE.get(dimension, UNKNOWN)


def note(turns: list[str], turn_id: str) -> None:
    """Keep the id of a turn, as long as ``only`` may name them all."""
    if len(turns) <= LISTED:
        turns.append(turn_id)


def only(turns: list[str]) -> dict[str, list[str]] | None:
    """The values that select just these turns; None where there are none, or too many."""
    return {"turn_id": turns} if 0 < len(turns) <= LISTED else None


def parse(
    parameters: Mapping[str, str] | Iterable[tuple[str, str]],
    *,
    now: float,
    default_from: str = DEFAULT_RANGE,
    also: Iterable[str] = (),
) -> Filter:
    """Read a filter.

    ``parameters`` are name-value pairs, names may repeat; ``now`` is in epoch seconds;
    ``default_from`` stands in for a missing ``from``; names in ``also`` belong to the caller and
    are skipped. A blank value is as good as none (forms send blank fields). Anything else that
    cannot be read raises ``BadParameterError``.
    """
    given = _collect(parameters, frozenset(also))
    tz = _single(given, "tz") or "UTC"
    zone = read_zone(tz)
    start_text, end_text = _single(given, "from"), _single(given, "to")
    start = read_instant("from", start_text or default_from, zone, now)
    end = read_instant("to", end_text or "now", zone, now)
    if start >= end:
        raise BadParameterError(
            "from",
            f"from ({start_text or default_from}) is not before to ({end_text or 'now'}).",
            "The window holds from and ends before to.",
        )
    by = _single(given, "by") or "started"
    if by not in ("started", "recorded"):
        raise _unknown_value("by", by, ("started", "recorded"))
    include: dict[str, tuple[str, ...]] = {}
    exclude: dict[str, tuple[str, ...]] = {}
    for name in DIMENSIONS:
        values = given.get(name, [])
        if len(values) > VALUES_LIMIT:
            raise BadParameterError(name, f"{name} has more than {VALUES_LIMIT} values.")
        kept = tuple(dict.fromkeys(_unescape(value) for value in values if value[0] != "!"))
        left_out = tuple(dict.fromkeys(value[1:] for value in values if value[0] == "!"))
        for value in (*kept, *left_out):
            _check(name, value)
        if kept:
            include[name] = kept
        if left_out:
            exclude[name] = left_out
    return Filter(
        start=start,
        end=end,
        tz=tz,
        by="recorded" if by == "recorded" else "started",
        include=include,
        exclude=exclude,
        q=_single(given, "q"),
        start_text=start_text,
        end_text=end_text,
    )


def _collect(
    parameters: Mapping[str, str] | Iterable[tuple[str, str]], also: frozenset[str]
) -> dict[str, list[str]]:
    pairs = parameters.items() if isinstance(parameters, Mapping) else parameters
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in also:
            continue
        if name not in PARAMETERS:
            near = difflib.get_close_matches(name, PARAMETERS, 1)
            raise BadParameterError(
                name,
                f"There is no filter {name[:64]!r}.",
                f"Did you mean {near[0]}?" if near else f"Filters are {', '.join(PARAMETERS)}.",
            )
        if len(value) > VALUE_LIMIT:
            raise BadParameterError(
                name, f"A value of {name} is longer than {VALUE_LIMIT} characters."
            )
        if "\x00" in value:
            raise BadParameterError(name, f"A value of {name} holds a NUL character.")
        if value.strip():
            given.setdefault(name, []).append(value)
    return given


def _single(given: dict[str, list[str]], name: str) -> str | None:
    values = given.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise BadParameterError(name, f"{name} is given {len(values)} times.", "Give it once.")
    return values[0]


def read_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name; ``BadParameterError`` (``tz``) where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadParameterError(
            "tz",
            f"tz is not a time zone: {name[:64]!r}.",
            "Use a name of the IANA database, e.g. Europe/Berlin or UTC.",
        ) from None


def read_instant(name: str, text: str, zone: ZoneInfo, now: float) -> int:
    """Epoch milliseconds of ``now-6h`` or ISO 8601; without an offset, local time of the zone.

    ``name`` is the parameter that a ``BadParameterError`` tells.
    """
    text = text.strip()
    relative = _RELATIVE.fullmatch(text)
    if relative is not None:
        amount, unit = relative.groups()
        ago = 0 if amount is None else int(amount) * _UNITS[unit]
        instant = to_ms(now) - ago * 1_000
    else:
        # A "+" that was not encoded arrives as a space.
        try:
            moment = datetime.fromisoformat(_OFFSET_WITHOUT_PLUS.sub("+", text))
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=zone)
            instant = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            raise BadParameterError(
                name,
                f"{name} is not a time: {text[:64]!r}.",
                "Use ISO 8601 (2026-11-01T12:00:00Z) or now, now-15m, now-6h, now-7d.",
            ) from None
    if not _EARLIEST <= instant <= _LATEST:
        raise BadParameterError(
            name, f"{name} is out of range: {text[:64]!r}.", "Use a time after 1970."
        )
    return instant


def _check(name: str, value: str) -> None:
    if not value.strip():
        raise BadParameterError(name, f"{name} excludes nothing.", f"Write {name}=!value.")
    allowed = CLOSED.get(name)
    if allowed is not None and value not in allowed:
        raise _unknown_value(name, value, allowed)


def _unknown_value(name: str, value: str, allowed: tuple[str, ...]) -> BadParameterError:
    return BadParameterError(
        name, f"{name} cannot be {value[:64]!r}.", f"It is one of {', '.join(allowed)}."
    )


def _escape(value: str) -> str:
    r"""A value that begins with ``!`` is written ``\!`` so that it does not exclude."""
    return "\\" + value if value[:1] in ("!", "\\") else value


def _unescape(value: str) -> str:
    return value[1:] if value[0] == "\\" else value
