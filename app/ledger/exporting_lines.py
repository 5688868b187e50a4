"""Lines of CSV from what a database wrote ready: checked by the block, made again where needed.

The database joins the cells of a row, which is several times as fast as Python's ``csv`` module.
Almost every block of rows can go out as it is; a few byte searches tell. Where they find something
odd the block is divided until the odd rows are alone; those go through ``csv`` cell by cell. The
searches may find too much, never too little: the file is that of ``csv_export.write_csv``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import TypeVar

from app.ledger.csv_export import guard
from app.ledger.rows import TEXT_COLUMNS

Record = TypeVar("Record")
_PARTS = 16

# Separators of cells and rows, quotes, and bytes with which a guarded cell may begin: formula
# characters, the guard's own mark, and the first byte of every blank, in UTF-8.
_SEPARATORS, _QUOTE = b",\n", b'"'
_ODD = b"=+-@'\t\r \v\f\x1c\x1d\x1e\x1f\xc2\xe1\xe2\xe3"
_KINDS = bytes.maketrans(
    bytes(range(256)),
    bytes(
        ord("s") if byte in _SEPARATORS
        else ord("q") if byte in _QUOTE
        else ord("o") if byte in _ODD
        else ord(".")
        for byte in range(256)
    ),
)  # fmt: skip


def has_odd_cell(lines: bytes, *, raw: bool) -> bool:
    """Whether a cell may need a guard, or is an empty text in quotes.

    ``lines`` are rows that end in LF, their cells quoted where they must be and without any LF.
    """
    quoted = _QUOTE in lines
    if raw and not quoted:
        return False
    kinds = b"s" + lines.translate(_KINDS)
    odd = not raw and (b"so" in kinds or (quoted and b"sqo" in kinds))
    return odd or (quoted and b"sqqs" in kinds)


def in_parts(
    records: Sequence[Record],
    ready: Callable[[Sequence[Record]], bytes | None],
    exact: Callable[[Record], bytes],
) -> bytes:
    """The lines of all records; ``ready`` gives None where one of them needs ``exact``."""
    if not records:
        return b""
    lines = ready(records)
    if lines is not None:
        return lines
    if len(records) == 1:
        return exact(records[0])
    size = -(-len(records) // _PARTS)
    return b"".join(
        in_parts(records[at : at + size], ready, exact) for at in range(0, len(records), size)
    )


def line_writer(columns: Sequence[str], *, raw: bool) -> Callable[[Sequence[str]], bytes]:
    """Makes one line, with CRLF, of cells that are not guarded yet; unknown ones are empty."""
    texts = [not raw and name in TEXT_COLUMNS for name in columns]
    buffer = io.StringIO(newline="")
    write = csv.writer(buffer, lineterminator="\r\n").writerow

    def line(cells: Sequence[str]) -> bytes:
        buffer.seek(0)
        buffer.truncate()
        write([guard(cell) if is_text else cell
               for cell, is_text in zip(cells, texts, strict=True)])  # fmt: skip
        return buffer.getvalue().encode()

    return line
