"""CSV out of SQLite: the cells of each row as text that its own ``printf`` joined.

Between cells stands a separator that ordinary text does not hold. Where a row has another number of
them than it should, a text held one, and the row is read anew by its number, value by value.
Numbers with a fraction come as they are: SQLite writes fewer digits than they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, literal_column, null, select

from app.ledger.csv_export import write_csv
from app.ledger.exporting_lines import has_odd_cell, in_parts, line_writer
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.queries import selection
from app.ledger.rows import BOOL_COLUMNS, DECIMAL_COLUMNS, FLOAT_COLUMNS, TIME_COLUMNS, money

c = turns.c
SEPARATOR = "\x1f"
ARGUMENTS = 50
"""How many values one ``printf`` takes; SQLite's bound may be 100."""
ROWS = 1_000
_Record = tuple[int, str]
_Form = Callable[[Sequence[Any]], Sequence[str]]


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

    parts, forms = joined(columns)
    with connection.execute(selection(view, c.id, *parts)) as result:
        cursor: Any = result.cursor  # the driver's own: its plain tuples are enough
        while rows := cursor.fetchmany(ROWS):
            numbers, *values = zip(*rows, strict=True)
            shown = [form(some) for form, some in zip(forms, values, strict=True)]
            texts = map(SEPARATOR.join, zip(*shown, strict=True))
            yield len(rows), in_parts(list(zip(numbers, texts, strict=True)), ready, exact)


def joined(columns: Sequence[str]) -> tuple[list[ColumnElement[Any]], list[_Form]]:
    """The columns in few expressions, neighbours in one text and fractions alone; and what makes
    text of the values of each."""
    found: list[ColumnElement[Any]] = []
    forms: list[_Form] = []
    for kind, group in groupby(columns, _kind):
        names = list(group)
        cells = [_cell(name) for name in names]
        if kind is not _as_it_is:
            found += cells
            forms += [kind] * len(cells)
            continue
        for at in range(0, len(cells), ARGUMENTS):
            some = cells[at : at + ARGUMENTS]
            # An unknown value is nothing to printf, where || would make the whole text unknown.
            found.append(func.printf(SEPARATOR.join(["%s"] * len(some)), *some))
            forms.append(kind)
    return found, forms


def _kind(name: str) -> _Form:
    if name in FLOAT_COLUMNS:
        return _floats
    return _decimals if name in DECIMAL_COLUMNS else _as_it_is


def _as_it_is(values: Sequence[Any]) -> Sequence[str]:
    return values


def _floats(values: Sequence[Any]) -> Sequence[str]:
    return ["" if value is None else repr(value) for value in values]


def _decimals(values: Sequence[Any]) -> Sequence[str]:
    return ["" if value is None else money(Decimal(str(value))) for value in values]


def _cell(name: str) -> ColumnElement[Any]:
    """A column as ``csv_export`` writes it, its guard aside."""
    column = c[name]
    if name in TIME_COLUMNS:
        return func.strftime("%Y-%m-%dT%H:%M:%fZ", column / literal_column("1000.0"), "unixepoch")
    if name in BOOL_COLUMNS:
        return case((column.is_(None), null()), (column, "true"), else_="false")
    return column
