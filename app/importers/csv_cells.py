"""What CSV holds, made into values: the names of its columns, and cells, which are all texts."""

from __future__ import annotations

import csv
import re

from app.importers.importer import NotReadable
from app.importers.lines import BOM, Line
from app.importers.own_row import BadCell, count_of, milliseconds_of, text_of
from app.ledger.csv_export import unguard


def words(line: bytes) -> set[str]:
    """The names of columns, also where something other than a comma is between them: ``header``
    says what to do then."""
    names = re.split("[,;\t]", line.decode("utf-8", "replace").replace('"', ""))
    return {name.strip() for name in names}


def header(line: Line, identifying: frozenset[str]) -> list[str]:
    """The names of the columns, with the identifying ones among them. Raises ``NotReadable``."""
    try:
        text = line.data.removeprefix(BOM).decode()
        names = next(csv.reader([text], strict=True), [])
    except (csv.Error, UnicodeDecodeError):
        raise NotReadable("Its first line cannot be read as CSV in UTF-8.") from None
    if not identifying <= set(names):
        raise NotReadable("Its columns are not separated by commas. Save it as CSV with commas.")
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise NotReadable(f"It has the column {twice[0][:64]!r} twice.")
    return names


# Each of these raises ``BadCell``.


def count_cell(name: str, cell: str) -> int:
    try:
        return count_of(name, int(cell) if cell.isascii() and cell.isdigit() else cell)
    except ValueError:  # Python makes no number of thousands of digits
        raise BadCell(name, "is below 0 or too great") from None


def milliseconds_cell(name: str, cell: str) -> float:
    try:
        return milliseconds_of(name, float(cell))
    except ValueError:
        raise BadCell(name, "is no number") from None


def text_cell(name: str, cell: str) -> str:
    return text_of(name, unguard(cell))
