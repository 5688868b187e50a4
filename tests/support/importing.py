"""Rows as they may be in a ledger, whole, and files made of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from sqlalchemy import Engine

from app.importers.identity import Identity
from app.importers.importer import Item, Read
from app.importers.lines import Line
from app.importers.run import Report, run
from app.keys import Keys
from app.ledger import queries
from app.ledger.csv_export import write_csv, write_jsonl
from app.ledger.filters import Filter
from app.ledger.rows import (
    BOOL_COLUMNS,
    COLUMNS,
    DECIMAL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    TIME_COLUMNS,
    TurnRow,
)
from engine.model import Kind, Mode, Reason, Status, UsageState
from tests.support.clock import ManualClock
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000
_JUDGED = ("cache_verdict", "cache_grade", "missed_tokens")
NOW = (START_MS + 30 * 24 * HOUR) / 1_000
IDENTITY = Identity(Keys(b"test" * 8))
_numbers = itertools.count()
_awkward = st.sampled_from(
    [
        "=1+1",
        "'=1",
        "''@x",
        "-",
        "'",
        "a,b",
        'say "x"',
        "two\nlines",
        "cr\r\nlf",
        "\tx",
        " =y",
        "é😀",
    ]
)
_text = st.one_of(
    st.sampled_from("abc"),
    _awkward,
    st.text(
        st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=9
    ),
)
_evidence = st.dictionaries(
    st.sampled_from(["index", "path", "class"]), st.integers(0, 9) | _text, max_size=3
).map(lambda found: json.dumps(found, ensure_ascii=False, separators=(",", ":")))
_names = st.lists(_text.map(lambda name: name.replace(",", "%2C")), min_size=1, max_size=3)


def _values() -> dict[str, st.SearchStrategy[Any]]:
    """A strategy for each column whose values hang on no other column."""
    of: dict[str, st.SearchStrategy[Any]] = dict.fromkeys(COLUMNS, st.none() | _text)
    of |= dict.fromkeys(INT_COLUMNS, st.none() | st.integers(0, 2**31 - 1))
    of |= dict.fromkeys(FLOAT_COLUMNS, st.none() | st.integers(0, 10**9).map(lambda n: n / 1_000))
    of |= dict.fromkeys(BOOL_COLUMNS, st.none() | st.booleans())
    of |= dict.fromkeys(
        DECIMAL_COLUMNS, st.none() | st.integers(0, 999).map(lambda n: Decimal(n) / 1000)
    )
    return {
        **of,
        "bytes_total": st.none() | st.integers(0, 2**40),
        "evidence": st.none() | _evidence,
        "changed_fields": st.none() | _names.map(",".join),
        "source": st.sampled_from(["gateway", "embedded", "import:x"]),
        "kind": st.sampled_from([str(kind) for kind in Kind]),
        "status": st.sampled_from([str(status) for status in Status]),
        "mode": st.none() | st.sampled_from([str(mode) for mode in Mode]),
        "reason": st.none() | st.sampled_from([str(reason) for reason in Reason]),
        "usage_state": st.sampled_from([str(state) for state in UsageState]),
        "eligible": st.booleans(),
        "session_key": st.sampled_from("kl"),
        "tenant": st.sampled_from("tu"),
        "upstream": _text,
        "input_tokens": st.none() | st.integers(0, 999),
        "cached_tokens": st.none() | st.integers(0, 999),
        "output_tokens": st.none() | st.integers(0, 99),
        "import_id": st.none(),
    }


_left = {"turn_id", "non_cached_tokens", "total_tokens", *TIME_COLUMNS}


def _row(values: dict[str, Any]) -> TurnRow:
    given, cached = values["input_tokens"], values["cached_tokens"]
    if given is not None and cached is not None:
        values["cached_tokens"] = min(given, cached)
    started_at = START_MS + values.pop("start")
    ended_at = started_at + values.pop("took")
    return make_row(
        turn_id=f"turn_{next(_numbers)}",
        started_at=started_at,
        ended_at=ended_at,
        recorded_at=ended_at + 7,
        **values,
    )


rows = st.fixed_dictionaries(
    {name: of for name, of in _values().items() if name not in _left}
    | {"start": st.integers(0, 30 * HOUR), "took": st.integers(0, HOUR)}
).map(_row)
"""Any row that a ledger may hold, over a good day, with figures that agree."""

_splice = st.tuples(
    st.integers(0, 4_000),
    st.integers(0, 60),
    st.sampled_from([b"", b'"', b"\n", b"\r\n", b",", b"\x00", b"\xff", b"-1", b"{", b"}", b"'="]),
)


def torn(data: bytes) -> st.SearchStrategy[bytes]:
    """A file of which some places were cut out, or hold something else."""

    def splice(changes: list[tuple[int, int, bytes]]) -> bytes:
        changed = data
        for place, gone, new in changes:
            at = place % len(data)
            changed = changed[:at] + new + changed[at + gone :]
        return changed

    return st.lists(_splice, min_size=1, max_size=4).map(splice)


ALL = Filter(start=0, end=START_MS + 365 * 24 * HOUR)


def as_csv(found: Sequence[TurnRow], columns: Sequence[str] = COLUMNS, **options: Any) -> bytes:
    chunk = [tuple(getattr(row, name) for name in columns) for row in found]
    return b"".join(write_csv([chunk], columns=columns, **options))


def as_jsonl(found: Sequence[TurnRow], columns: Sequence[str] = COLUMNS) -> bytes:
    chunk = [tuple(getattr(row, name) for name in columns) for row in found]
    return b"".join(write_jsonl([chunk], columns=columns))


def lines_of(data: bytes) -> list[Line]:
    """The lines of a file, as ``lines.split`` gives them."""
    parts = data.split(b"\n")
    whole = [Line(number, part) for number, part in enumerate(parts[:-1], 1)]
    return whole + ([Line(len(parts), parts[-1], whole=False)] if parts[-1] else [])


def read(reader: Read, data: bytes) -> list[Item]:
    return list(reader(lines_of(data)))


def imported(engine: Engine, *paths: Path, **options: Any) -> Report:
    given: dict[str, Any] = {"clock": ManualClock(now=NOW), "identity": IDENTITY, **options}
    return run(engine, paths, given.pop("clock"), **given)


def stored(engine: Engine) -> list[TurnRow]:
    """All rows, by their ids."""
    found: Iterable[TurnRow] = (
        TurnRow.of(values) for chunk in queries.stream(engine, ALL) for values in chunk
    )
    return sorted(found, key=lambda row: row.turn_id)


def unjudged(rows: Iterable[TurnRow]) -> list[TurnRow]:
    """Rows without verdicts, by their ids: what comes and goes has its session judged anew."""
    bare = (replace(row, **dict.fromkeys(_JUDGED)) for row in rows)
    return sorted(bare, key=lambda row: row.turn_id)
