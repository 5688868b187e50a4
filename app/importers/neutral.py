"""The neutral format: what any tool's log can be turned into in one line, as NDJSON or as CSV.

Strict about what a column holds, lenient about which columns are there. ``input`` counts what was
read from the cache and what was written to it, as the ledger does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from app.importers.csv_cells import count_cell, header, milliseconds_cell, text_cell, words
from app.importers.foreign import row_of
from app.importers.importer import Importer, Item, Remark, Skipped
from app.importers.json_lines import first_records, records
from app.importers.lines import BOM, Line
from app.importers.own_csv import named
from app.importers.own_jsonl import left_out
from app.importers.own_row import BadCell, count_of, milliseconds_of, text_of, time_of
from app.ledger.rows import TurnRow
from engine.model import Kind, Mode, Status, Usage, UsageState

NAME = "neutral"
_IDENTIFYING = frozenset({"t", "input"})
_SECONDS_LIMIT = 10**11
"""Epoch seconds of the year 5138: a greater number is of milliseconds."""

TEXTS = {
    "chain": "chain",
    "session": "session",
    "root": "root_session",
    "turn": "turn_group",
    "model": "model",
    "upstream": "upstream",
    "effort": "reasoning_effort",
    "tier": "service_tier",
    "client": "client",
    "client_version": "client_version",
    "mode": "mode",
    "reason": "reason",
    "reset": "epoch_reset_reason",
    "changed_fields": "changed_fields",
    "response_id": "response_id",
    "prev_response_id": "previous_response_id",
    "cache_key": "prompt_cache_key",
    "miss_reason": "provider_miss_reason",
    "kind": "kind",
    "status": "status",
    "error": "error_code",
}
"""Columns of the format that hold a text, and the ledger's of the same meaning."""
COUNTS = {
    "input": "input_tokens",
    "cached": "cached_tokens",
    "cache_write": "cache_write_tokens",
    "cache_write_long": "cache_write_long_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_tokens",
    "http_status": "http_status",
}
TIMES = {"ttft_ms": "ttft_ms", "duration_ms": "duration_ms"}
COLUMNS = ("t", "id", *TEXTS, *COUNTS, *TIMES)
_WORDS: dict[str, frozenset[str]] = {
    "mode": frozenset(Mode),
    "kind": frozenset(Kind),
    "status": frozenset(Status),
}


def recognizes(head: bytes) -> bool:
    """Whether the first line, or one of the first objects, has ``t`` and ``input``."""
    if any(found.keys() >= _IDENTIFYING for found in first_records(head)):
        return True
    first = head.removeprefix(BOM).split(b"\n", 1)[0]
    return first.lstrip()[:1] not in (b"{", b"[") and words(first) >= _IDENTIFYING


def read(lines: Iterable[Line]) -> Iterator[Item]:
    source = iter(lines)
    first = next(source, Line(1, b""))
    whole = chain([first], source)
    is_json = not first.data.strip() or first.data.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")
    yield from _json(whole) if is_json else _csv(first, source)


def _json(lines: Iterable[Line]) -> Iterator[Item]:
    told = set(COLUMNS)
    for found in records(lines):
        if isinstance(found, Skipped):
            yield found
            continue
        number, given = found
        if not told.issuperset(given):
            yield Remark(left_out(sorted(given.keys() - told)))
            told.update(given)
        yield _row_or_skip(number, given, _OF_JSON)


def _csv(first: Line, source: Iterator[Line]) -> Iterator[Item]:
    names = header(first, _IDENTIFYING)
    unknown = sorted(set(names) - set(COLUMNS))
    if unknown:
        yield Remark(left_out(unknown))
    for record in named(names, source):
        if isinstance(record, Skipped):
            yield record
        else:
            number, cells = record
            given = {name: cell for name, cell in cells.items() if cell}
            yield _row_or_skip(number, given, _OF_CSV)


Value = Callable[[str, Any], Any]


def _row_or_skip(
    number: int, given: Mapping[str, Any], of: Mapping[str, Value]
) -> TurnRow | Skipped:
    try:
        return _row({name: value for name, value in _values(given, of) if value is not None})
    except BadCell as bad:
        return Skipped(number, bad.reason, bad.column)


def _values(given: Mapping[str, Any], of: Mapping[str, Value]) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        if value is not None and value != "" and name in of:
            yield name, of[name](name, value)


def _row(values: dict[str, Any]) -> TurnRow:
    """The row with these values, which are of their columns' types. Raises ``BadCell``."""
    if "t" not in values:
        raise BadCell("t", "is missing")
    for name, allowed in _WORDS.items():
        if name in values and values[name] not in allowed:
            raise BadCell(name, f"is none of {', '.join(sorted(allowed))}")
    if values.get("cached", 0) > values.get("input", values.get("cached", 0)):
        raise BadCell("cached", "is more than input, which has to count it, too")
    talk = values.get("chain") or values.get("session")
    known = {TEXTS[name]: value for name, value in values.items() if name in TEXTS}
    known |= {TIMES[name]: value for name, value in values.items() if name in TIMES}
    figures = {COUNTS[name]: value for name, value in values.items() if name in COUNTS}
    known["http_status"] = figures.pop("http_status", None)
    known["session"] = values.get("session") or talk
    known["chain"] = talk
    return row_of(
        NAME,
        _identity(values, talk),
        started_at=values["t"],
        usage=Usage(**figures, state=UsageState.REPORTED) if figures else Usage(),
        **known,
    )


def _identity(values: Mapping[str, Any], talk: str | None) -> tuple[str | None, ...]:
    """What makes a record this one: its id, the provider's, or else all that it says."""
    if "id" in values:
        return ("id", talk, values["id"])
    if "response_id" in values:
        return ("response", talk, values["response_id"])
    return ("values", *(_told(values.get(name)) for name in COLUMNS))


def _told(value: Any) -> str | None:
    return None if value is None else str(value)


def _time(name: str, value: Any) -> int:
    """ISO 8601 with an offset, or epoch seconds."""
    if isinstance(value, str):
        return time_of(name, value)
    if not milliseconds_of(name, value) < _SECONDS_LIMIT:
        raise BadCell(name, "is no time in epoch seconds: divide milliseconds by 1000")
    return round(float(value) * 1000)


def _cell_time(name: str, cell: str) -> int:
    try:
        seconds = float(cell)
    except ValueError:
        return time_of(name, cell)
    return _time(name, seconds)


_OF_JSON: dict[str, Value] = {
    "t": _time,
    "id": text_of,
    **dict.fromkeys(TEXTS, text_of),
    **dict.fromkeys(COUNTS, count_of),
    **dict.fromkeys(TIMES, milliseconds_of),
}
_OF_CSV: dict[str, Value] = {
    "t": _cell_time,
    "id": text_cell,
    **dict.fromkeys(TEXTS, text_cell),
    **dict.fromkeys(COUNTS, count_cell),
    **dict.fromkeys(TIMES, milliseconds_cell),
}

NEUTRAL = Importer(NAME, "the neutral NDJSON or CSV", recognizes, read)
