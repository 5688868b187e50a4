"""A view of the ledger as a file: CSV by RFC 4180, or JSON Lines with the same columns.

CSV (docs/ledger.md, "Export"): comma, CRLF, quotes doubled, a header. Times are ISO 8601 in UTC
with milliseconds and ``Z``, booleans ``true`` and ``false``, money a plain decimal number. An
empty cell is unknown; 0 is a reported zero.

A spreadsheet runs text that begins like a formula. Unless ``raw`` is asked for, a ``'`` is put in
front of text cells that begin with ``= + - @``, TAB, CR or LF, blanks before them or not. Numbers
are never touched: a negative number stays one.
"""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from app.errors import BadParameterError
from app.ledger.rows import (
    BOOL_COLUMNS,
    COLUMNS,
    DECIMAL_COLUMNS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    as_json_object,
    iso,
    money,
)

SCHEMA_VERSION = 1
"""Sent as ``X-Ledger-Schema``; grows when a column changes its meaning, not when one is added."""
CSV_TYPE = "text/csv; charset=utf-8; header=present"
JSONL_TYPE = "application/x-ndjson; charset=utf-8"
_BOM = "\ufeff"
_needs_a_guard = re.compile(r"'*(?:[\t\r\n]|\s*[=+\-@])").match
"""Text with ``'`` in front of a formula already gets one more, so that each can be told again."""

_encode = msgspec.json.Encoder().encode

Form = Callable[[Sequence[Any]], Sequence[Any]]
Chunks = Iterable[Sequence[tuple[Any, ...]]]


def read_columns(text: str | None) -> tuple[str, ...]:
    """The parameter ``columns``: names joined by commas, in the order wanted; none means all."""
    if text is None or not text.strip():
        return COLUMNS
    names = tuple(name.strip() for name in text.split(","))
    for place, name in enumerate(names):
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, 1)
            raise BadParameterError(
                "columns",
                f"The ledger has no column {name[:64]!r}.",
                f"Did you mean {near[0]}?" if near else f"Columns are {', '.join(COLUMNS)}.",
            )
        if name in names[:place]:
            raise BadParameterError("columns", f"The column {name} is asked for twice.")
    return names


def file_name(start: int, end: int, ending: str) -> str:
    """``ledger_20261101T000000Z_20261102T000000Z.csv``, after the window of the view."""
    first, last = (iso(ms)[:19].replace("-", "").replace(":", "") + "Z" for ms in (start, end))
    return f"ledger_{first}_{last}.{ending}"


def write_csv(
    chunks: Chunks,
    *,
    columns: Sequence[str] = COLUMNS,
    raw: bool = False,
    bom: bool = False,
) -> Iterator[bytes]:
    """The file piece by piece; the header comes at once, then one piece per chunk of rows.

    ``chunks`` hold value tuples in the order of ``columns``, as ``queries.stream`` gives them.
    ``bom`` puts a byte order mark first, which Excel needs to recognise UTF-8.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(columns)
    yield ((_BOM if bom else "") + buffer.getvalue()).encode()
    forms = [_form(name, raw=raw) for name in columns]
    for chunk in chunks:
        buffer.seek(0)
        buffer.truncate()
        # Column by column: most need no change, and that is seen at once.
        shown = [
            values if form is None else form(values)
            for values, form in zip(zip(*chunk, strict=True), forms, strict=False)
        ]
        writer.writerows(zip(*shown, strict=True))
        yield buffer.getvalue().encode()


def write_jsonl(chunks: Chunks, *, columns: Sequence[str] = COLUMNS) -> Iterator[bytes]:
    """One JSON object a line, with the values of the API; one piece per chunk of rows."""
    names = tuple(columns)
    for chunk in chunks:
        lines = [_encode(as_json_object(names, values)) for values in chunk]
        yield b"\n".join([*lines, b""])


def guard(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return "'" + text if _needs_a_guard(text) else text


def unguard(cell: str) -> str:
    """The text that ``guard`` made this cell of."""
    return cell[1:] if cell.startswith("'") and _needs_a_guard(cell) else cell


def _guarded(values: Sequence[str | None]) -> Sequence[str | None]:
    if not any(_needs_a_guard(text) for text in set(values) if text is not None):
        return values
    return [None if text is None else guard(text) for text in values]


def _each(function: Callable[[Any], str]) -> Form:
    return lambda values: [None if value is None else function(value) for value in values]


def _form(name: str, *, raw: bool) -> Form | None:
    """How a column's values are written; None where the csv module already does it right."""
    if name in TIME_COLUMNS:
        return _each(iso)
    if name in BOOL_COLUMNS:
        return _each(lambda value: "true" if value else "false")
    if name in DECIMAL_COLUMNS:
        return _each(money)
    if name in TEXT_COLUMNS and not raw:
        return _guarded
    return None
