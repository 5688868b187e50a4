"""What is different about opening PostgreSQL, and what a restart of it does to open connections."""

import threading

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from app.errors import LedgerError
from app.keys import Keys
from app.ledger.database import check_key, open_engine, prepare, upgrade
from app.ledger.models import Base
from tests.support import postgres


@pytest.fixture
def empty():
    """The URL of a database without any table."""
    server = postgres.server()
    name = server.create()
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def ledger():
    with postgres.server().ledger() as url:
        yield url


def test_an_outdated_database_is_refused_with_the_command_that_upgrades_it(empty: str):
    with pytest.raises(LedgerError, match="The database is empty") as caught:
        prepare(empty)
    assert "warmline db upgrade" in str(caught.value.hint)
    upgrade(empty)
    engine = prepare(empty)
    assert {*Base.metadata.tables, "alembic_version"} == set(inspect(engine).get_table_names())
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    engine.dispose()
    with pytest.raises(LedgerError, match="older than this version") as caught:
        prepare(empty)
    assert "warmline db upgrade" in str(caught.value.hint)


def test_processes_that_upgrade_at_once_wait_for_each_other(empty: str):
    """One lock holds the second one off until the first is done; here the test is the first."""
    done = threading.Event()
    engine = open_engine(empty)
    with engine.begin() as connection:
        connection.execute(text(f"SELECT pg_advisory_xact_lock({0x7761726D6C696E65})"))
        thread = threading.Thread(target=lambda: (upgrade(empty), done.set()))
        thread.start()
        waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        while not connection.execute(waiting).scalar_one():
            assert thread.is_alive()
        assert [] == inspect(connection).get_table_names()
    thread.join(30)
    assert done.is_set()
    engine.dispose()


def test_a_database_that_cannot_hold_every_character_is_refused():
    server = postgres.server()
    server.ask(
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'"
    )
    try:
        with pytest.raises(LedgerError, match="encoding is LATIN1"):
            prepare(server.url("latin"))
    finally:
        server.drop("latin")


def test_a_server_that_is_not_there_is_told_by_name_and_without_the_password():
    with pytest.raises(LedgerError, match="cannot be used") as caught:
        prepare("postgresql://somebody:canary@127.0.0.1:1/ledger")
    assert "127.0.0.1" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert "? Check that it exists" in str(caught.value)  # after a question of the driver


def test_the_ledger_knows_the_key_it_was_written_with(ledger: str):
    engine = prepare(ledger)
    check_key(engine, Keys(bytes(32)))
    check_key(engine, Keys(bytes(32)))
    with pytest.raises(LedgerError, match="not the one this ledger was written with"):
        check_key(engine, Keys(bytes(range(32))))
    engine.dispose()


def test_values_stay_out_of_the_text_of_errors(ledger: str):
    engine = open_engine(ledger)
    with engine.connect() as connection, pytest.raises(Exception, match="nowhere") as caught:
        connection.execute(text("SELECT CAST(:value AS text) FROM nowhere"), {"value": "canary"})
    engine.dispose()
    assert "canary" not in str(caught.value)


def test_after_a_restart_of_the_server_nobody_meets_a_dead_connection(ledger: str):
    server = postgres.server()
    engine = open_engine(ledger)
    with engine.connect() as first, engine.connect() as second:
        assert (
            2
            == first.execute(text("SELECT 1")).scalar() + second.execute(text("SELECT 1")).scalar()
        )
    server.stop()
    with pytest.raises(OperationalError):
        engine.connect()
    server.start()
    for _ in range(3):
        with engine.connect() as connection:
            assert 1 == connection.execute(text("SELECT 1")).scalar()
    engine.dispose()


def test_a_transaction_that_a_restart_ended_has_done_nothing(ledger: str):
    server = postgres.server()
    engine = open_engine(ledger)
    insert = text("INSERT INTO ledger_facts (name, value) VALUES (:name, 'x')")
    with engine.connect() as connection:
        connection.execute(insert, {"name": "one"})
        server.stop()
        server.start()
        with pytest.raises(OperationalError):
            connection.execute(insert, {"name": "two"})
    with engine.begin() as connection:
        names = text("SELECT name FROM ledger_facts WHERE value = 'x'")
        assert [] == connection.execute(names).all()
    engine.dispose()


def test_the_wait_for_a_silent_server_is_bounded_unless_the_url_says_otherwise(ledger: str):
    for given, expected in (("", "10"), ("&connect_timeout=3", "3")):
        engine = open_engine(ledger + given)
        _, options = engine.dialect.create_connect_args(engine.url)
        assert (expected, "30000") == (options["connect_timeout"], options["tcp_user_timeout"])
        engine.dispose()


def test_transactions_read_what_is_committed_whatever_the_database_s_default_is(ledger: str):
    """Whoever waits for a row's lock goes on with what the other one left, as on SQLite."""
    engine = open_engine(ledger + "&options=-c%20default_transaction_isolation%3Dserializable")
    with engine.connect() as connection:
        level = connection.execute(text("SHOW transaction_isolation")).scalar()
    engine.dispose()
    assert "read committed" == level
