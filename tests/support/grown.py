"""A log that is read while it is written, and read again when there is more of it."""

from __future__ import annotations

from collections.abc import Iterable

from app.importers.importer import Item, NotReadable, Read
from app.ledger.joining import joined
from app.ledger.rows import TurnRow
from tests.support.importing import lines_of


def rows_of(items: Iterable[Item]) -> dict[str, TurnRow]:
    """What a ledger has of these items, by id."""
    found: dict[str, TurnRow] = {}
    for item in items:
        if isinstance(item, TurnRow):
            before = found.get(item.turn_id)
            found[item.turn_id] = item if before is None else joined(before, item)
    return found


def differing(read: Read, data: bytes) -> list[int]:
    """Bytes after which a first reading changes what a reading of the whole leaves."""
    whole = rows_of(read(lines_of(data)))
    step = max(1, len(data) // 60)
    ends = [place + 1 for place, byte in enumerate(data) if byte == 10]
    return [
        cut
        for cut in sorted({*ends, *range(0, len(data), step)})
        if rows_of([*_readable(read, data[:cut]), *read(lines_of(data))]) != whole
    ]


def _readable(read: Read, data: bytes) -> list[Item]:
    try:
        return list(read(lines_of(data)))
    except NotReadable:
        return []
