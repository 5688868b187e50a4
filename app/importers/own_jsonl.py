"""The JSON Lines that Warmline itself has written (``warmline export --format jsonl``, API)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from app.importers.importer import Importer, Item, Remark, Skipped
from app.importers.json_lines import first_records, records
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


def recognizes(head: bytes) -> bool:
    """Whether one of the first lines is an object with a turn's id and start."""
    return any(found.keys() >= IDENTIFYING for found in first_records(head))


def read(lines: Iterable[Line]) -> Iterator[Item]:
    unknown: set[str] = set()
    for found in records(lines):
        if isinstance(found, Skipped):
            yield found
            continue
        number, given = found
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
            yield Skipped(number, bad.reason, bad.column)


def left_out(names: list[str]) -> str:
    """What is told of columns that this version does not know."""
    shown = ", ".join(repr(name[:64]) for name in names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"Columns that this version does not know are left out: {shown}{more}."


def _evidence(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        raise BadCell(name, "is no JSON object")
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise BadCell(name, "is nested too deeply") from None
    return evidence_of(name, text)


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
