"""CSV out of SQLite: the rows as text that its own ``printf`` joined.

A cell separator is put between the cells that no ordinary text holds. Where a row has another
number of them than it should, the row is read anew by its number, value by value: a text held one,
or a number has digits that SQLite would not write as Python does, and says so with one too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, case, cast, func, literal_column, null, select
from sqlalchemy import Text as SqlText

from app.ledger.csv_export import write_csv
from app.ledger.exporting_lines import has_odd_cell, in_parts, line_writer
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.queries import selection
from app.ledger.rows import BOOL_COLUMNS, DECIMAL_COLUMNS, FLOAT_COLUMNS, TIME_COLUMNS

c = turns.c
SEPARATOR = "\x1f"
_MARK = literal_column("char(31)", SqlText)
_ARGUMENTS = 50
"""How many values one ``printf`` takes; SQLite's bound may be 100."""
ROWS = 1_000
_Record = tuple[int, str]


def csv_lines(
    connection: Connection, view: Filter, columns: Sequence[str], *, raw: bool
) -> Iterator[tuple[int, bytes]]:
    """The rows of a view, oldest first: how many, and their lines."""
    separators = len(columns) - 1
    line = line_writer(columns, raw=raw)

    def ready(records: Sequence[_Record]) -> bytes | None:
        lines = ("\n".join([text for _, text in records]) + "\n").encode()
        if (
            not separators  # an unknown cell alone is written otherwise
            or lines.count(b"\x1f") != separators * len(records)
            or lines.count(b"\n") != len(records)
            or b"," in lines
            or b'"' in lines
            or b"\r" in lines
        ):
            return None
        lines = lines.replace(b"\x1f", b",")
        return None if has_odd_cell(lines, raw=raw) else lines.replace(b"\n", b"\r\n")

    def exact(record: _Record) -> bytes:
        number, text = record
        cells = text.split(SEPARATOR)
        if len(cells) == len(columns):
            return line(cells)
        values = connection.execute(select(*(c[name] for name in columns)).where(c.id == number))
        _header, found = write_csv([[tuple(values.one())]], columns=columns, raw=raw)
        return found

    query = selection(view, c.id, _joined([_cell(name) for name in columns]))
    with connection.execute(query) as result:
        for records in result.partitions(ROWS):
            yield len(records), in_parts([tuple(record) for record in records], ready, exact)


def _joined(cells: Sequence[ColumnElement[str]]) -> ColumnElement[str]:
    parts = [cells[at : at + _ARGUMENTS] for at in range(0, len(cells), _ARGUMENTS)]
    # An unknown value is nothing to printf, where || would make the whole row unknown.
    joined = [func.printf(SEPARATOR.join(["%s"] * len(part)), *part) for part in parts]
    whole: ColumnElement[str] = joined[0]
    for part in joined[1:]:
        whole = whole.concat(_MARK).concat(part)
    return whole


def _cell(name: str) -> ColumnElement[str]:
    """A column as ``csv_export`` writes it, its guard aside."""
    column = c[name]
    if name in TIME_COLUMNS:
        return func.strftime("%Y-%m-%dT%H:%M:%fZ", column / literal_column("1000.0"), "unixepoch")
    if name in BOOL_COLUMNS:
        return case((column.is_(None), null()), (column, "true"), else_="false")
    if name in FLOAT_COLUMNS:
        # Fifteen digits are all that SQLite writes; these numbers have fewer.
        short = (func.round(column, 3) == column) & (func.abs(column) < literal_column("1e9"))
        return case((column.is_(None), null()), (short, cast(column, SqlText)), else_=_MARK)
    if name in DECIMAL_COLUMNS:
        short = (func.round(column, 9) == column) & (func.abs(column) < literal_column("1e6"))
        digits = func.rtrim(func.rtrim(func.printf("%.9f", column), "0"), ".")
        return case((column.is_(None), null()), (short, digits), else_=_MARK)
    return column
