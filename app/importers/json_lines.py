"""JSON objects, one a line, as most tools log: what each line is, or why it is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from app.importers.importer import Skipped
from app.importers.lines import BOM, Line

_object = msgspec.json.Decoder(dict[str, Any]).decode
_T = TypeVar("_T")
_HEAD = 10
"""Lines at the beginning of a file that tell its format."""


def records(lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, Any]] | Skipped]:
    """Each object with the number of its line; empty lines are nothing."""
    return decoded(lines, _object)


def decoded(
    lines: Iterable[Line], decode: Callable[[bytes], _T]
) -> Iterator[tuple[int, _T] | Skipped]:
    """The same with objects of another type; what that leaves out costs no memory."""
    for line in lines:
        data = line.data.removeprefix(BOM) if line.number == 1 else line.data
        if line.too_long:
            yield Skipped(line.number, "is too long")
        elif data.strip():
            try:
                yield line.number, decode(data)
            except (msgspec.DecodeError, RecursionError):
                ended = "is not one JSON object" if line.whole else "ends within its record"
                yield Skipped(line.number, ended)


def first_records(head: bytes) -> Iterator[dict[str, Any]]:
    """The objects among the first lines of a file that begins so."""
    for data in head.removeprefix(BOM).split(b"\n")[:_HEAD]:
        try:
            yield _object(data)
        except (msgspec.DecodeError, RecursionError):
            continue


# Values of logs that nobody promises anything about: what is not of its type is unknown.


def text(value: Any) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A whole number from 0 on, also where it is written as 3.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < 2**63 or value != int(value):
        return None
    return int(value)


def number(value: Any) -> float | None:
    """A number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 2**63 else None


def inner(value: Any) -> dict[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}
