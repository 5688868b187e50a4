from pathlib import Path

import pytest

from app.commands.logs import judged
from app.errors import LedgerError
from app.keys import load_or_create
from app.ledger import queries
from app.ledger.database import prepare
from app.ledger.writer import write_rows
from app.reporting.figures import Read
from app.settings import load
from tests.support.importing import ALL, as_csv
from tests.support.rows import make_row

PAST = 1_600_000_000_000


def settings(**more: str):
    return load(config=None, environ={}, flags={"database": "ledger.sqlite3"} | more)


def found(paths, **more: str):
    with judged(settings(**more), paths) as (engine, read):
        return queries.page(engine, ALL).rows, read


def test_without_a_path_the_ledger_is_read_and_judged():
    engine = prepare("ledger.sqlite3")
    write_rows(engine, [make_row(input_tokens=5_000, cached_tokens=0)])
    engine.dispose()
    (row,), read = found([])
    assert ("cold_start", Read()) == (row.cache_verdict, read)


def test_a_ledger_that_is_not_there_is_not_made_and_logs_are_asked_for():
    with pytest.raises(LedgerError, match="Give files or folders of logs"):
        found([])
    assert not Path("ledger.sqlite3").exists()


def test_files_are_read_and_judged_and_the_ledger_stays_as_it_is():
    Path("a.csv").write_bytes(
        as_csv([make_row(started_at=PAST, input_tokens=5_000, cached_tokens=0)])
    )
    (row,), read = found([Path("a.csv")])
    assert ("cold_start", 1) == (row.cache_verdict, read.files)
    assert not Path("ledger.sqlite3").exists()
    assert not Path("ledger.key").exists()


def test_where_names_are_hashed_it_is_with_the_key_of_the_ledger():
    keys = load_or_create(Path("mine.key"))
    Path("a.ndjson").write_text('{"t":1600000000,"session":"session-a","input":9}\n')
    named = {"key_file": "mine.key"}
    (row,), _ = found([Path("a.ndjson")], **named)
    assert "session-a" == row.session
    (row,), _ = found([Path("a.ndjson")], pseudonymize="true", **named)
    assert keys.pseudonym("session-a") == row.session
