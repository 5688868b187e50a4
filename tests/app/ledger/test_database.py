import contextlib
import itertools
import sqlite3
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from app.errors import LedgerError
from app.keys import Keys
from app.ledger import database
from app.ledger.database import (
    check_key,
    migration_engine,
    open_engine,
    prepare,
    read_url,
    upgrade,
)
from app.ledger.models import Base
from app.ledger.rows import COLUMNS


def test_a_path_is_an_sqlite_file():
    assert "sqlite:///ledger.sqlite3" == str(read_url("ledger.sqlite3"))
    assert "sqlite:////var/lib/w/ledger.sqlite3" == str(
        read_url("sqlite:////var/lib/w/ledger.sqlite3")
    )


def test_a_path_may_begin_with_the_home_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert "/home/somebody/l.sqlite3" == read_url("~/l.sqlite3").database


@pytest.mark.parametrize("database", ["sqlite://", "sqlite:///:memory:"])
def test_a_ledger_in_memory_is_refused_since_each_connection_would_see_its_own(database: str):
    with pytest.raises(LedgerError, match="needs an SQLite file"):
        read_url(database)


def test_other_databases_are_refused_by_name():
    with pytest.raises(LedgerError, match="mysql"):
        read_url("mysql://host/name")


def test_a_url_that_cannot_be_read_is_not_quoted_since_it_may_hold_a_password():
    with pytest.raises(LedgerError) as caught:
        read_url("postgresql://user:hunter2@host:port/name")
    assert "hunter2" not in str(caught.value)


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LedgerError, match=r"pip install 'warmline\[postgresql\]'"):
        read_url("postgresql://host/name")


def test_postgresql_is_spoken_to_through_psycopg(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert "postgresql+psycopg" == read_url("postgresql://host/name").drivername


def test_an_sqlite_ledger_is_created_with_its_directory(tmp_path: Path):
    path = tmp_path / "new" / "place" / "ledger.sqlite3"
    engine = prepare(path.as_posix())
    made = {*Base.metadata.tables, "alembic_version"}
    assert made == set(inspect(engine).get_table_names())
    assert {"turns", "ledger_facts"} < made
    assert ["id", *COLUMNS] == [column["name"] for column in inspect(engine).get_columns("turns")]
    engine.dispose()


def test_sqlite_runs_with_a_write_ahead_log_and_waits_when_busy(tmp_path: Path):
    engine = prepare(str(tmp_path / "ledger.sqlite3"))
    with engine.connect() as connection:
        settings = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout")
        ]
    engine.dispose()
    assert ["wal", 1, 10_000] == settings


def test_preparing_again_changes_nothing(tmp_path: Path):
    database = str(tmp_path / "ledger.sqlite3")
    prepare(database).dispose()
    before = (tmp_path / "ledger.sqlite3").read_bytes()
    prepare(database).dispose()
    assert before == (tmp_path / "ledger.sqlite3").read_bytes()


def test_a_new_file_that_somebody_is_about_to_write_is_waited_for(tmp_path: Path, monkeypatch):
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(database, "sleep", lambda _seconds: other.execute("COMMIT"))
    engine = open_engine(str(tmp_path / "ledger.sqlite3"))
    with engine.connect() as connection:
        assert "wal" == connection.exec_driver_sql("PRAGMA journal_mode").scalar()
    engine.dispose()
    other.close()


def test_a_new_file_that_stays_about_to_be_written_is_given_up(tmp_path: Path, monkeypatch):
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    slept = []
    monkeypatch.setattr(database, "monotonic", itertools.count(step=6).__next__)
    monkeypatch.setattr(database, "sleep", slept.append)
    engine = open_engine(str(tmp_path / "ledger.sqlite3"))
    with pytest.raises(OperationalError, match="locked"):
        engine.connect()
    assert len(slept) == 1
    engine.dispose()
    other.close()


def test_processes_that_start_at_once_upgrade_once(tmp_path: Path):
    database = str(tmp_path / "ledger.sqlite3")
    errors = []
    start = threading.Barrier(4)

    def run():
        start.wait()
        try:
            # Two alembic contexts cannot share a process; the lock is what is under test.
            engine = migration_engine(database)
            with engine.begin() as connection:
                connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS t (n)")
                seen = connection.exec_driver_sql("SELECT count(*) FROM t").scalar()
                connection.exec_driver_sql(f"INSERT INTO t VALUES ({seen})")
            engine.dispose()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine = open_engine(database)
    with engine.connect() as connection:
        numbers = connection.exec_driver_sql("SELECT n FROM t ORDER BY n").scalars().all()
    engine.dispose()
    assert [] == errors
    assert [0, 1, 2, 3] == numbers


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path):
    engine = migration_engine(str(tmp_path / "ledger.sqlite3"))
    with contextlib.suppress(RuntimeError), engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE half (n)")
        raise RuntimeError
    assert [] == inspect(engine).get_table_names()
    engine.dispose()


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path):
    database = str(tmp_path / "ledger.sqlite3")
    engine = prepare(database)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(LedgerError, match="newer version") as caught:
        prepare(database)
    assert "ledger_newer" == caught.value.code


def test_a_file_that_is_no_database_is_told_by_name(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at as one" * 20)
    with pytest.raises(LedgerError, match=r"notes\.txt") as caught:
        prepare(str(path))
    assert "ledger_unusable" == caught.value.code
    assert "cannot be used: file is not a database. Check that" in str(caught.value)


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be used"):
        upgrade(str(tmp_path / "file" / "ledger.sqlite3"))


def test_a_path_with_a_percent_sign_works(tmp_path: Path):
    prepare(str(tmp_path / "50%.sqlite3")).dispose()
    assert (tmp_path / "50%.sqlite3").exists()


def test_the_ledger_knows_the_key_it_was_written_with(tmp_path: Path):
    engine = prepare(str(tmp_path / "ledger.sqlite3"))
    check_key(engine, Keys(bytes(32)))
    check_key(engine, Keys(bytes(32)))
    with pytest.raises(LedgerError, match="not the one this ledger was written with"):
        check_key(engine, Keys(bytes(range(32))))
    with engine.connect() as connection:
        stored = (
            connection.execute(
                text("SELECT value FROM ledger_facts WHERE name = 'key_fingerprint'")
            )
            .scalars()
            .all()
        )
    engine.dispose()
    assert [Keys(bytes(32)).fingerprint] == stored


def test_values_stay_out_of_the_text_of_errors(tmp_path: Path):
    engine = open_engine(str(tmp_path / "ledger.sqlite3"))
    with engine.connect() as connection, pytest.raises(OperationalError) as caught:
        connection.execute(text("SELECT :value FROM nowhere"), {"value": "canary"})
    engine.dispose()
    assert "canary" not in str(caught.value)


def test_a_ledger_that_is_up_to_date_is_opened_without_the_library_that_migrates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    upgrade(str(tmp_path / "ledger.sqlite3"))
    monkeypatch.setitem(sys.modules, "alembic", None)
    prepare(str(tmp_path / "ledger.sqlite3")).dispose()
