"""CSV out of PostgreSQL: by ``COPY``, with the same bytes that ``csv_export`` writes.

The server quotes as RFC 4180 wants it and ends rows with LF. Each of its messages is one row
(PostgreSQL's protocol, "CopyData"), so that a line break within a cell is never taken for an end.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import BigInteger as SqlBigInteger
from sqlalchemy import ColumnElement, Connection, case, cast, func, literal_column
from sqlalchemy import Text as SqlText

from app.ledger.exporting_lines import has_odd_cell, in_parts, line_writer
from app.ledger.filters import Filter
from app.ledger.inserting import translated
from app.ledger.models import turns
from app.ledger.queries import selection
from app.ledger.rows import BOOL_COLUMNS, DECIMAL_COLUMNS, FLOAT_COLUMNS, TIME_COLUMNS

c = turns.c
_LENGTH = len("1970-01-01T00:00:00.000")
ROWS = 1_000
BYTES = 1_000_000


def csv_lines(
    connection: Connection, view: Filter, columns: Sequence[str], *, raw: bool
) -> Iterator[tuple[int, bytes]]:
    """The rows of a view, oldest first: how many, and their lines."""
    line = line_writer(columns, raw=raw)

    def ready(records: Sequence[bytes]) -> bytes | None:
        if len(columns) == 1:  # an unknown cell alone is written otherwise
            return None
        lines = b"".join(records)
        # A cell with a line break is in quotes.
        broken = b'"' in lines and lines.count(b"\n") != len(records)
        if broken or has_odd_cell(lines, raw=raw):
            return None
        return lines.replace(b"\n", b"\r\n")

    def exact(record: bytes) -> bytes:
        text = io.StringIO(record[:-1].decode(), newline="")
        return line(next(csv.reader(text, strict=True), []) or [""])

    for records in _copied(connection, view, columns):
        yield len(records), in_parts(records, ready, exact)


def _copied(connection: Connection, view: Filter, columns: Sequence[str]) -> Iterator[list[bytes]]:
    query = selection(view, *(_cell(name) for name in columns))
    # Values are put into the text: COPY takes no parameters.
    compiled = query.compile(
        dialect=connection.dialect, compile_kwargs={"render_postcompile": True}
    )
    statement = f"COPY ({compiled}) TO STDOUT (FORMAT csv, ENCODING 'UTF8')"
    connection.exec_driver_sql("SET LOCAL extra_float_digits = 1")
    cursor: Any = connection.connection.cursor()
    records: list[bytes] = []
    size = 0
    with translated(connection, "COPY turns"), contextlib.closing(cursor):
        with cursor.copy(statement, compiled.params) as copy:
            for data in copy:
                record = bytes(data)
                records.append(record)
                size += len(record)
                if len(records) >= ROWS or size >= BYTES:
                    yield records
                    records, size = [], 0
        if records:
            yield records


def _cell(name: str) -> ColumnElement[Any]:
    """A column as ``csv_export`` writes it, its guard aside."""
    column = c[name]
    if name in TIME_COLUMNS:
        # As JSON it has its T, and with one microsecond more all of its milliseconds, for less
        # than to_char takes: what the server's process does is what an export waits for.
        return literal_column(
            "substr(to_json(timestamp '1970-01-01 00:00:00.000001' "
            f"+ {column} * interval '1 millisecond')::text, 2, {_LENGTH}) || 'Z'"
        )
    if name in BOOL_COLUMNS:
        return cast(column, SqlText)
    if name in FLOAT_COLUMNS:
        whole = (column == func.floor(column)) & (func.abs(column) < literal_column("1e16"))
        return case(
            (whole, cast(cast(column, SqlBigInteger), SqlText).concat(literal_column("'.0'"))),
            else_=cast(column, SqlText),
        )
    if name in DECIMAL_COLUMNS:
        return func.trim_scale(column)
    return column
