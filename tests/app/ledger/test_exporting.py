import contextlib
import csv
import gzip
import io
import json
import sqlite3
import tracemalloc
import zlib
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, text, update
from sqlalchemy.exc import DBAPIError

from app.ledger import exporting, exporting_postgresql, exporting_sqlite
from app.ledger.csv_export import write_csv
from app.ledger.exporting import Wanted, export, packed
from app.ledger.facts import to_row
from app.ledger.models import turns
from app.ledger.queries import snapshot
from app.ledger.rows import (
    BOOL_COLUMNS,
    CLIENT_NAMES,
    COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TurnRow,
)
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_facts, make_row

NASTY = [
    "", " ", "=1+1", "+x", "-5", "@x", "\tx", "\rx", "\nx", " =1", "\u00a0=1", "\u2003@x", "\u3000+",
    "\x1f", "a\x1fb", "\x1f=1", 'a,"b"\nc', 'x",",y', 'a,"",b', '""', '"', ",", "\r\n", "a\r", "\\.",
    "\\", "\\N", "'=1", "''-", "'a", "é", "ünï", "日本", "かな", "😀", "NULL", "%s", "%(x)s", "a;b", "\u2028",
]  # fmt: skip
texts = st.sampled_from(NASTY) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6
)
floats = st.integers(0, 10**12).map(lambda n: n / 1_000) | st.floats(
    -1e14, 1e14, allow_nan=False, allow_subnormal=False
).map(lambda number: number + 0.0)
money = st.integers(0, 10**14).map(lambda n: Decimal(n).scaleb(-9))
_REQUIRED = {"turn_id", "source", "kind", "status", "session_key", "tenant", "upstream", "eligible",
             "usage_state"}  # fmt: skip


def values_of(name: str) -> st.SearchStrategy:
    if name in TIME_COLUMNS:
        return st.integers(START_MS, START_MS + 9_999)
    kind = (
        st.booleans() if name in BOOL_COLUMNS
        else st.integers(-5, 2**31 - 1) if name in INT_COLUMNS
        else floats if name in FLOAT_COLUMNS
        else texts if name in TEXT_COLUMNS
        else money
    )  # fmt: skip
    return kind if name in _REQUIRED else st.none() | kind


nasty_rows = st.lists(
    # Most cells are nothing, or each example would be one long draw.
    st.sets(st.sampled_from(COLUMNS), max_size=12).flatmap(
        lambda names: st.fixed_dictionaries({name: values_of(name) for name in sorted(names)})
    ),
    max_size=8,
).map(
    lambda found: [
        make_row(**(changes | {"turn_id": f"{changes.get('turn_id', 't')}{number}"}))
        for number, changes in enumerate(found)
    ]
)
columns = st.just(COLUMNS) | st.lists(
    st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True
).map(tuple)


CSV = Wanted()


def written(engine: Engine, wanted: Wanted = CSV, **options) -> bytes:
    return b"".join(export(engine, everything(), wanted, **options))


def cells(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))


def in_order(rows: Iterable[TurnRow]) -> list[TurnRow]:
    return sorted(rows, key=lambda row: row.started_at)


@settings(max_examples=50)
@given(found=nasty_rows, names=columns, raw=st.booleans())
@example(found=[make_row(session=text, model=text) for text in NASTY], names=COLUMNS, raw=False)
@example(found=[make_row(session=text) for text in NASTY], names=("session",), raw=False)
@example(found=[make_row(session=text) for text in NASTY], names=("session", "store"), raw=True)
@example(found=[make_row(turn_id=text) for text in NASTY], names=("turn_id", "store"), raw=False)
@example(
    found=[
        make_row(ttft_ms=number, started_at=START_MS + number_of)
        for number_of, number in enumerate(
            [
                0.0,
                1.0,
                420.0,
                0.1,
                0.001,
                1e-5,
                1e-7,
                1 / 3,
                123456.789,
                1e9,
                1e14 + 0.5,
                -2.5,
                1e20,
            ]
        )
    ],
    names=("ttft_ms", "started_at", "eligible"),
    raw=False,
)
@example(
    found=[
        make_row(cost_usd=Decimal(text))
        for text in ("0", "2", "100", "0.5", "1E-9", "0.000000001", "123.456789", "99999.999999999")
    ],
    names=("cost_usd", "ended_at"),
    raw=False,
)
def test_what_the_database_writes_is_what_python_would_write(holding, found, names, raw):
    engine = holding(found)
    expected = write_csv(
        [[tuple(getattr(row, name) for name in names) for row in in_order(found)]],
        columns=names,
        raw=raw,
    )
    assert b"".join(expected) == written(engine, Wanted(columns=names, raw=raw))


def test_rows_of_one_instant_are_each_there_once(engine: Engine):
    write_rows(engine, [make_row(turn_id=f"t{number}") for number in range(1_200)])
    found = [line["turn_id"] for line in cells(written(engine))]
    assert [f"t{number}" for number in range(1_200)] == found


FORMS = [
    CSV,
    Wanted(form="jsonl"),
    Wanted(pseudonym=str.upper),
]
each_form = pytest.mark.parametrize("wanted", FORMS, ids=["csv", "jsonl", "hashed"])


@each_form
def test_what_happens_during_an_export_is_not_in_it(engine: Engine, wanted: Wanted):
    # Each row fills a good part of what a server sends ahead.
    found = [
        make_row(turn_id=f"t{number}", evidence=json.dumps("x" * 8_000)) for number in range(600)
    ]
    write_rows(engine, found)
    before = written(engine, wanted)
    parts = export(engine, everything(), wanted)
    seen = next(parts)
    write_rows(engine, [make_row(), make_row(started_at=START_MS - 1)])
    seen += next(parts)
    with engine.begin() as connection:
        connection.execute(delete(turns).where(turns.c.turn_id == "t598"))
        connection.execute(update(turns).where(turns.c.turn_id == "t599").values(model="other"))
    seen += b"".join(parts)
    assert before == seen
    assert before != written(engine, wanted)


def test_the_header_comes_before_any_row_was_looked_for(engine: Engine, monkeypatch):
    def fail(*_args, **_options):
        raise AssertionError("not yet")

    monkeypatch.setattr(exporting, "_body", fail)
    for wanted, head in zip(FORMS, (b"turn_id,", b"", b"turn_id,"), strict=True):
        parts = export(engine, everything(), wanted)
        assert next(parts).startswith(head)
        parts.close()


def held(engine: Engine) -> int:
    """How many snapshots hold something up."""
    if engine.dialect.name == "sqlite":
        with contextlib.closing(sqlite3.connect(engine.url.database, timeout=0)) as connection:
            return connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    query = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"
    )
    with engine.connect() as connection:
        return connection.execute(query).scalar_one()


@each_form
def test_an_export_that_is_left_holds_nothing_up(engine: Engine, wanted: Wanted):
    write_rows(engine, [make_row(evidence=json.dumps("x" * 8_000)) for _ in range(2_000)])
    parts = export(engine, everything(), wanted)
    next(parts), next(parts)
    write_rows(engine, [make_row()])
    assert 0 == engine.pool.checkedout()
    assert 1 == held(engine)
    parts.close()
    assert 0 == held(engine)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_no_snapshot_can_write(engine: Engine):
    with snapshot(engine) as connection, pytest.raises(DBAPIError, match="read-only"):
        connection.execute(delete(turns))


@each_form
def test_memory_does_not_grow_with_the_file(engine: Engine, wanted: Wanted, monkeypatch):
    for module in (exporting, exporting_sqlite, exporting_postgresql):
        monkeypatch.setattr(module, "ROWS", 50)
    write_rows(engine, [make_row(turn_id="0", fallback_reason="x" * 3_000)])
    others = ", ".join(name for name in COLUMNS if name != "turn_id")
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO turns (turn_id, {others}) "
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) "
            f"SELECT CAST(i AS TEXT), {others} FROM n, turns WHERE turn_id = '0'"
        )
    tracemalloc.start()
    try:
        size = sum(map(len, export(engine, everything(), wanted)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 4_500_000
    assert peak < 2_500_000


def test_progress_tells_how_many_rows_are_written(engine: Engine, monkeypatch):
    write_rows(engine, [make_row() for _ in range(2_500)])
    for wanted in FORMS:
        told: list[int] = []
        written(engine, wanted, progress=told.append)
        assert [1_000, 2_000, 2_500] == told


def test_names_are_hashed_as_the_setting_would_hash_them(engine: Engine):
    names = dict.fromkeys(CLIENT_NAMES, "a name") | {"session": "=s"}
    facts = make_facts(**names)
    clear = to_row(facts, gateway_version=None)
    hashed = to_row(facts, gateway_version=None, pseudonymize=lambda name: f"<{name}>")
    assert {
        name for name in COLUMNS if getattr(clear, name) != getattr(hashed, name)
    } == CLIENT_NAMES
    write_rows(engine, [clear, make_row(session=None, started_at=clear.started_at + 1)])
    expected = [
        [getattr(hashed, name) for name in sorted(CLIENT_NAMES)],
        [None] * len(CLIENT_NAMES),
    ]
    wanted = Wanted(columns=tuple(sorted(CLIENT_NAMES)), pseudonym=lambda name: f"<{name}>")
    assert [[value or "" for value in row] for row in expected] == [
        list(line.values()) for line in cells(written(engine, wanted))
    ]
    lines = written(engine, replace(wanted, form="jsonl")).splitlines()
    assert expected == [list(json.loads(line).values()) for line in lines]


def test_hashed_names_are_guarded_and_other_cells_stay_as_they_are(engine: Engine):
    write_rows(engine, [make_row(session="s", model="=m", epoch=-1)])
    wanted = Wanted(columns=("session", "model", "epoch"), pseudonym=lambda name: f"={name}")
    assert b"session,model,epoch\r\n'=s,'=m,-1\r\n" == written(engine, wanted)


def test_a_byte_order_mark_comes_first_and_once(engine: Engine):
    write_rows(engine, [make_row()])
    for wanted in (Wanted(bom=True), Wanted(bom=True, pseudonym=str.upper)):
        data = written(engine, wanted)
        assert data.startswith(b"\xef\xbb\xbfturn_id,")
        assert 1 == data.count(b"\xef\xbb\xbf")


def test_json_lines_hold_what_the_api_shows(engine: Engine):
    found = [make_row(evidence='{"index":1}', changed_fields="a,b", cost_usd=Decimal("0.5"))]
    write_rows(engine, found)
    data = written(engine, Wanted(form="jsonl"))
    assert [row.as_dict() for row in found] == [json.loads(line) for line in data.splitlines()]


def test_a_packed_stream_can_be_read_while_it_grows():
    reader = zlib.decompressobj(31)
    parts = packed(iter([b"first", b"second"]))
    assert b"first" == reader.decompress(next(parts))
    assert b"second" == reader.decompress(next(parts))
    assert b"firstsecond" == gzip.decompress(b"".join(packed([b"first", b"second"])))
