"""The JSON Lines that Warmline itself has written (``warmline export --format jsonl``, API)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from app.importers.importer import Importer, Item, Remark, Skipped
from app.importers.lines import Line
from app.importers.own_row import (
    IDENTIFYING,
    BadCell,
    count_of,
    evidence_of,
    flag_of,
    kinds,
    milliseconds_of,
    missing_columns,
    money_of,
    row_of,
    text_of,
    time_of,
)
from app.ledger.rows import COLUMNS

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_BOM = b"\xef\xbb\xbf"


def recognizes(head: bytes) -> bool:
    """Whether one of the first lines is an object with a turn's id and start."""
    for line in head.removeprefix(_BOM).split(b"\n")[:10]:
        try:
            if _decode(line).keys() >= IDENTIFYING:
                return True
        except (msgspec.DecodeError, RecursionError):
            continue
    return False


def read(lines: Iterable[Line]) -> Iterator[Item]:
    unknown: set[str] = set()
    for line in lines:
        data = line.data.removeprefix(_BOM) if line.number == 1 else line.data
        if line.too_long:
            yield Skipped(line.number, "is too long")
            continue
        if not data.strip():
            continue
        try:
            given = _decode(data)
        except (msgspec.DecodeError, RecursionError):
            ended = "is not one JSON object" if line.whole else "ends within its record"
            yield Skipped(line.number, ended)
            continue
        if not unknown.issuperset(given):
            new = sorted(given.keys() - unknown - _READ.keys())
            unknown |= given.keys()
            if new:
                yield Remark(left_out(new))
        try:
            missing = missing_columns(given)
            if missing:
                raise BadCell(missing[0], "is missing")
            yield row_of(
                {
                    name: None if value is None else _READ[name](name, value)
                    for name, value in given.items()
                    if name in _READ
                }
            )
        except BadCell as bad:
            yield Skipped(line.number, bad.reason, bad.column)


def left_out(names: list[str]) -> str:
    """What is told of columns that this version does not know."""
    shown = ", ".join(repr(name[:64]) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"Columns that this version does not know are left out: {shown}{more}."


def _evidence(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        raise BadCell(name, "is no JSON object")
    return evidence_of(name, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _names(name: str, value: Any) -> str:
    if not isinstance(value, list) or not value:
        raise BadCell(name, "is no list of names")
    if any("," in text_of(name, part) for part in value):
        raise BadCell(name, "holds a name with a comma")
    return text_of(name, ",".join(value))


_READ = kinds(
    time=time_of,
    count=count_of,
    milliseconds=milliseconds_of,
    money=money_of,
    flag=flag_of,
    text=text_of,
) | {"evidence": _evidence, "changed_fields": _names}
assert _READ.keys() == set(COLUMNS)

JSONL = Importer("jsonl", "Warmline's JSON Lines", recognizes, read)
