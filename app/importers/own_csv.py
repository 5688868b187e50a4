"""The CSV that Warmline itself has written, raw or guarded (``warmline export``, API)."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from app.importers.csv_cells import count_cell, header, milliseconds_cell, text_cell, words
from app.importers.importer import Importer, Item, NotReadable, Remark, Skipped
from app.importers.lines import BOM, LIMIT, Line
from app.importers.own_jsonl import left_out
from app.importers.own_row import (
    IDENTIFYING,
    BadCell,
    Value,
    evidence_of,
    flag_of,
    kinds,
    missing_columns,
    money_of,
    row_of,
    time_of,
)

csv.field_size_limit(LIMIT)
"""A cell of another tool's dump may hold a whole conversation, which nobody reads then."""
_MOST_LINES = 100
"""Lines of one record: a cell may hold line breaks, but a quote that nobody closes must not take
the rest of the file with it."""


def recognizes(head: bytes) -> bool:
    """Whether the first line names a turn's id and start among its columns."""
    first = head.removeprefix(BOM).split(b"\n", 1)[0]
    return first.lstrip()[:1] not in (b"{", b"[") and words(first) >= IDENTIFYING


def read(lines: Iterable[Line]) -> Iterator[Item]:
    source = iter(lines)
    names = header(next(source, Line(1, b"")), IDENTIFYING)
    missing = missing_columns(names)
    if missing:
        raise NotReadable(
            f"It lacks columns that every turn needs: {', '.join(missing)}. "
            "Export it again with them, or without --columns."
        )
    unknown = [name for name in names if name not in _READ]
    if unknown:
        yield Remark(left_out(unknown))
    known = [(place, name, _READ[name]) for place, name in enumerate(names) if name in _READ]
    for number, record in records(source):
        if isinstance(record, str):
            yield Skipped(number, record)
        elif len(record) != len(names):
            yield Skipped(number, f"has not {len(names)} cells as the first line has")
        else:
            try:
                yield row_of(_values(record, known))
            except BadCell as bad:
                yield Skipped(number, bad.reason, bad.column)


def _values(record: list[str], known: list[tuple[int, str, Value]]) -> dict[str, Any]:
    return {name: of(name, record[place]) for place, name, of in known if record[place]}


def records(source: Iterator[Line]) -> Iterator[tuple[int, list[str] | str]]:
    """Cells by the number of the line where they begin, or why there are none.

    A record goes on in the next line where a quote is still open, which is where the number of
    quotes is odd. If none of the next lines closes it, it is the quote that is wrong, and the
    record is its first line alone.
    """
    ahead: deque[Line] = deque()
    while (line := ahead.popleft() if ahead else next(source, None)) is not None:
        if line.too_long:
            yield line.number, "is too long"
        elif not line.data.strip():
            continue
        else:
            group = _group(line, ahead, source)
            if group is None:
                yield line.number, "has a quote that is not closed" if line.whole else _TORN
            elif not group[-1].whole:
                yield line.number, _TORN
            else:
                yield line.number, _cells(group)


def named(
    names: Sequence[str], source: Iterator[Line]
) -> Iterator[tuple[int, dict[str, str]] | Skipped]:
    """Records whose cells are those of ``names``, by the number of the line where they begin."""
    for number, cells in records(source):
        if isinstance(cells, str):
            yield Skipped(number, cells)
        elif len(cells) != len(names):
            yield Skipped(number, f"has not {len(names)} cells as the first line has")
        else:
            yield number, dict(zip(names, cells, strict=True))


def _group(first: Line, ahead: deque[Line], source: Iterator[Line]) -> list[Line] | None:
    """The lines of a record; None where a quote in the first of them stays open."""
    group = [first]
    quotes = first.data.count(b'"')
    while quotes % 2:
        following = None
        if len(group) < _MOST_LINES:
            following = ahead.popleft() if ahead else next(source, None)
        if following is None or following.too_long:
            back = group[1:] if following is None else [*group[1:], following]
            ahead.extendleft(reversed(back))
            return None
        group.append(following)
        quotes += following.data.count(b'"')
    return group


_TORN = "has no end: the file was cut, or is being written"


def _cells(group: list[Line]) -> list[str] | str:
    try:
        text = b"\n".join(line.data for line in group).decode()
        return next(csv.reader([text], strict=True))
    except UnicodeDecodeError:
        return "is not UTF-8"
    except (csv.Error, StopIteration):
        return "is no CSV"


def _flag(name: str, text: str) -> bool:
    return flag_of(name, {"true": True, "false": False}.get(text.lower(), text))


_READ = kinds(
    time=time_of,
    count=count_cell,
    milliseconds=milliseconds_cell,
    money=money_of,
    flag=_flag,
    text=text_cell,
) | {"evidence": evidence_of}

CSV = Importer("csv", "Warmline's CSV", recognizes, read)
