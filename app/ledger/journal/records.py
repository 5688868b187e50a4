"""The lines of a journal: one record each, with a checksum, so that a torn one is seen.

``["h", version, first, columns]`` opens a segment: the number of the first end in it, and the
columns of its ends, so that a later version reads what an older one has left. ``["b", …]`` is a
turn that has begun, ``["e", …]`` the row of one that has ended, ``["s", n]`` says that all ends
before number ``n`` are in the database, ``["u", ids]`` that of the turns begun before it only these
are still under way. Ends are numbered over all segments of a process, from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from app.ledger.rows import COLUMNS, TurnRow
from engine.model import Status, UsageState

VERSION = 1
PROCESS_ENDED = "process_ended"
"""``error_code`` of a turn whose process ended before it did."""

_values = attrgetter(*COLUMNS)
_encode = msgspec.json.Encoder(decimal_format="string").encode
_decode = msgspec.json.Decoder(list[Any]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What is known of a turn when its request has come in. Times are milliseconds."""

    turn_id: str
    started_at: int
    source: str
    kind: str
    session: str | None
    session_key: str
    root_session: str | None
    turn_group: str | None
    tenant: str
    client: str | None
    client_version: str | None
    client_transport: str | None
    gateway_version: str | None
    upstream: str
    model: str | None

    def row(self, ended_at: int) -> TurnRow:
        """The row of a turn of which nothing more will ever be known."""
        known = {part.name: getattr(self, part.name) for part in fields(self)}
        unknown = dict.fromkeys(name for name in COLUMNS if name not in known)
        return TurnRow(
            **{
                **unknown,
                **known,
                "ended_at": max(ended_at, self.started_at),
                "recorded_at": ended_at,
                "status": Status.ERROR.value,
                "error_code": PROCESS_ENDED,
                "eligible": False,
                "usage_state": UsageState.MISSING.value,
            }
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """The row of a turn that has ended, and which end of its process it is."""

    row: TurnRow
    number: int


@dataclass(frozen=True, slots=True)
class Settled:
    """All ends before this number are in the database."""

    before: int


@dataclass(frozen=True, slots=True)
class UnderWay:
    """Of the turns that began before this record, those that had not ended."""

    turn_ids: frozenset[str]


Record: TypeAlias = Begun | Ended | Settled | UnderWay


class NewerVersionError(Exception):
    """The segment was written by a later version, which alone can read it."""


class Line(NamedTuple):
    """A record, and where it stands in its segment."""

    record: Record
    offset: int
    length: int


_BEGUN = tuple(part.name for part in fields(Begun))
_begun_values = attrgetter(*_BEGUN)


def header(first: int) -> bytes:
    return _line(["h", VERSION, first, COLUMNS])


def begun(start: Begun) -> bytes:
    return _line(["b", *_begun_values(start)])


def ended(row: TurnRow) -> bytes:
    return _line(["e", *_values(row)])


def settled(before: int) -> bytes:
    return _line(["s", before])


def under_way(turn_ids: Iterable[str]) -> bytes:
    return _line(["u", list(turn_ids)])


def _line(values: Any) -> bytes:
    text = _encode(values)
    return b"%08x %s\n" % (crc32(text), text)


class Reader:
    """Reads the lines of one segment, whose first is its header."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._next = 0
        self.torn = 0
        """Lines that could not be read: the last one of a process that was killed, as a rule."""

    def lines(self, data: bytes) -> Iterator[Line]:
        at = 0
        while at < len(data):
            end = data.find(b"\n", at)
            length = (len(data) if end < 0 else end + 1) - at
            record = self.record(data[at : at + length])
            if record is not None:
                yield Line(record, at, length)
            at += length

    def record(self, line: bytes) -> Record | None:
        """What a line says; None for a header, and for a line that is not whole.

        Raises ``NewerVersionError``.
        """
        try:
            kind, *values = _checked(line)
            match kind:
                case "h":
                    self._open(*values)
                    return None
                case "b":
                    return Begun(**dict(zip(_BEGUN, values, strict=True)))
                case "e":
                    self._next += 1
                    return Ended(self._row(values), self._next - 1)
                case "s":
                    return Settled(int(values[0]))
                case "u":
                    return UnderWay(frozenset(values[0]))
                case _:
                    raise ValueError("no such record")
        except (ValueError, TypeError, LookupError, ArithmeticError):
            self.torn += 1
            return None

    def _open(self, version: int, *values: Any) -> None:
        if version > VERSION:
            raise NewerVersionError
        self._next, self._columns = values

    def _row(self, values: list[Any]) -> TurnRow:
        given = dict(zip(self._columns, values, strict=True))
        known: dict[str, Any] = {name: given.get(name) for name in COLUMNS}
        cost = known["cost_usd"]
        known["cost_usd"] = None if cost is None else Decimal(cost)
        return TurnRow(**known)


def _checked(line: bytes) -> list[Any]:
    """The values of a line. Raises ``ValueError`` where it is not whole."""
    if line[8:9] != b" " or not line.endswith(b"\n"):
        raise ValueError("the line is not whole")
    text = line[9:-1]
    if int(line[:8], 16) != crc32(text):
        raise ValueError("the line is not as it was written")
    return _decode(text)
