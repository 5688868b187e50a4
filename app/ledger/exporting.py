"""A view of the ledger as a stream of bytes, from one snapshot and in constant memory.

CSV is written by the database where it can be (``exporting_sqlite``, ``exporting_postgresql``), by
``csv_export`` where names are hashed, which the database has no key for.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import Connection, Engine

from app.ledger import csv_export, exporting_postgresql, exporting_sqlite
from app.ledger.filters import Filter
from app.ledger.queries import snapshot, stream_from
from app.ledger.rows import CLIENT_NAMES, COLUMNS

ROWS = 1_000
_GZIP = 31  # zlib's window bits for a gzip envelope
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a file is to be written."""

    form: Literal["csv", "jsonl"] = "csv"
    columns: tuple[str, ...] = COLUMNS
    raw: bool = False
    """CSV: no guard against formulas."""
    bom: bool = False
    """CSV: a byte order mark first."""
    pseudonym: Callable[[str], str] | None = None
    """What names that clients chose are replaced with."""

    def with_names_as(self, pseudonym: Callable[[str], str]) -> Wanted:
        return replace(self, pseudonym=pseudonym)


def export(
    engine: Engine,
    view: Filter,
    wanted: Wanted,
    *,
    progress: Callable[[int], None] = lambda _rows: None,
) -> Generator[bytes]:
    """The file of a view piece by piece, rows oldest first.

    The first piece is there as soon as the ledger was seen to answer, whatever is sought: the
    header of CSV, nothing of JSON Lines. From then on the file holds the ledger as it was at that
    moment. The snapshot ends with the iteration; who leaves early has to ``close`` it.
    ``progress`` is told how many rows were written so far.
    """
    done = 0
    with snapshot(engine) as connection:
        yield _head(wanted)
        for rows, data in _body(connection, view, wanted):
            yield data
            done += rows
            progress(done)


def packed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """gzip of a stream; what is there after each part can be read by then."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    for part in parts:
        yield packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def _head(wanted: Wanted) -> bytes:
    if wanted.form == "jsonl":
        return b""
    return next(csv_export.write_csv((), columns=wanted.columns, bom=wanted.bom))


def _body(connection: Connection, view: Filter, wanted: Wanted) -> Iterator[tuple[int, bytes]]:
    if wanted.form == "csv" and wanted.pseudonym is None:
        sqlite = connection.dialect.name == "sqlite"
        write = (exporting_sqlite if sqlite else exporting_postgresql).csv_lines
        yield from write(connection, view, wanted.columns, raw=wanted.raw)
        return
    for rows in stream_from(connection, view, columns=wanted.columns, chunk=ROWS):
        yield len(rows), _written(_hashed(rows, wanted), wanted)


def _written(rows: Rows, wanted: Wanted) -> bytes:
    if wanted.form == "jsonl":
        return b"".join(csv_export.write_jsonl([rows], columns=wanted.columns))
    _header, lines = csv_export.write_csv([rows], columns=wanted.columns, raw=wanted.raw)
    return lines


def _hashed(rows: Rows, wanted: Wanted) -> Rows:
    pseudonym = wanted.pseudonym
    if pseudonym is None:
        return rows
    named = [name in CLIENT_NAMES for name in wanted.columns]
    return [
        tuple(
            pseudonym(value) if is_name and value is not None else value
            for value, is_name in zip(row, named, strict=True)
        )
        for row in rows
    ]
