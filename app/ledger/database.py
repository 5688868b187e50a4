"""Opening the database and bringing its schema up to date.

SQLite is the embedded default: write-ahead log, upgraded by itself when the service starts.
PostgreSQL may serve several machines, so that nobody upgrades it by accident: an outdated one is
refused with the command that does.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, func, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from app.errors import LedgerError
from app.keys import Keys
from app.ledger.models import ledger_facts
from app.paths import ALEMBIC

if TYPE_CHECKING:
    from alembic.config import Config

BUSY_TIMEOUT_MS = 10_000
_NETWORK = {
    "application_name": "warmline",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""Half a minute after which a server that fell silent is given up, instead of a quarter of an hour.
What the database's URL says beats it."""
_MIGRATING = 0x7761726D6C696E65
"""The number of the lock that whoever changes PostgreSQL's schema takes."""
WRITES = {"warmline_writes": True}
"""Execution options of a transaction that writes: it takes SQLite's write lock at once, because
a reader that turns writer half-way may be refused without any waiting."""


def read_url(database: str | URL) -> URL:
    """A database URL, or the path of an SQLite file, as the setting ``database`` takes them."""
    if isinstance(database, str) and "://" not in database:
        return URL.create("sqlite", database=str(Path(database).expanduser()))
    try:
        url = make_url(database)
    except (ArgumentError, ValueError):
        raise LedgerError(
            "bad_database", "The database URL cannot be read.", _FORMS
        ) from None  # the URL may hold a password, and SQLAlchemy's message quotes it
    backend = url.get_backend_name()
    if backend == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise LedgerError("bad_database", "The ledger needs an SQLite file.", _FORMS)
        return url.set(drivername="sqlite")
    if backend == "postgresql":
        if importlib.util.find_spec("psycopg") is None:
            raise LedgerError(
                "driver_missing",
                "PostgreSQL needs the package psycopg, which is not installed.",
                "Install it with: pip install 'warmline[postgresql]'",
            )
        return url.set(drivername="postgresql+psycopg")
    raise LedgerError("bad_database", f"The database {backend} is not supported.", _FORMS)


_FORMS = "Give a path, sqlite:///PATH or postgresql://USER@HOST/NAME."


def open_engine(database: str | URL) -> Engine:
    """An engine for reads and writes. Does not touch the schema."""
    return _engine(read_url(database))


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection whose reads all see the ledger at one moment."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


def migration_engine(database: str | URL) -> Engine:
    """An engine whose connections end with their use, and whose transactions write."""
    return _engine(read_url(database), poolclass=NullPool).execution_options(**WRITES)


def _engine(url: URL, **options: Any) -> Engine:
    if url.get_backend_name() == "postgresql":
        url = url.set(query={**_NETWORK, **url.query})
        # A pooled connection may be dead: the server was restarted, or a network forgot it.
        options |= {"pool_pre_ping": True, "isolation_level": "READ COMMITTED"}
    # Values stay out of logs and of the text of errors.
    engine = create_engine(url, hide_parameters=True, **options)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _on_sqlite_connect)
        event.listen(engine, "begin", _on_sqlite_begin)
    return engine


def _on_sqlite_connect(connection: Any, _record: Any) -> None:
    # The driver's own way opens transactions late and commits before DDL; ours begin with BEGIN.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    _write_ahead(cursor)
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    """Turn to write-ahead logging, which SQLite refuses at once, whatever the busy timeout, while
    somebody is about to write to a file that has not turned to it: a new one, opened by two."""
    until = monotonic() + BUSY_TIMEOUT_MS / 1_000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() > until:
                raise
            sleep(0.01)
        else:
            return


def _on_sqlite_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("warmline_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def upgrade(
    database: str | URL, *, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> str:
    """Bring the schema to this version and return its revision; creates an SQLite file and its
    directory if need be. Rows of a version without rollups are counted, with ``progress``.

    Several processes may do so at once: the first one takes the lock, the others find it done.
    """
    url = read_url(database)
    if url.database is not None and url.get_backend_name() == "sqlite":
        with _explained(url):
            Path(url.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    from app.ledger.rollups import rebuild as build  # noqa: PLC0415  (it opens transactions too)

    engine = migration_engine(url)
    try:
        with _explained(url), engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_MIGRATING)))
            _refuse_newer(connection)
            if _revision(connection) != _head():
                # Only here: it is 150 modules, which nobody needs whose schema is up to date.
                from alembic import command  # noqa: PLC0415

                command.upgrade(alembic_config(connection), "head")
            revision = _revision(connection) or ""
        with _explained(url):
            build.build_missing(engine, progress)
        return revision
    finally:
        engine.dispose()


def prepare(database: str | URL) -> Engine:
    """What the service does at start: upgrade SQLite, check PostgreSQL, and open it."""
    url = read_url(database)
    if url.get_backend_name() == "sqlite":
        upgrade(url)
        return open_engine(url)
    engine = open_engine(url)
    try:
        with _explained(url), engine.connect() as connection:
            _refuse_encoding(connection)
            _refuse_newer(connection)
            _refuse_outdated(connection)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextlib.contextmanager
def closing(engine: Engine) -> Iterator[Engine]:
    """Closes the ledger at the end. A database that fails meanwhile is a ``LedgerError``."""
    driver: Any = engine.dialect.loaded_dbapi
    try:
        yield engine
    except (SQLAlchemyError, driver.Error) as error:
        cause = getattr(error, "orig", None) or error
        # Other errors than these may quote what is in rows.
        known = isinstance(cause, driver.OperationalError) and str(cause).strip()
        said = known.splitlines()[0].rstrip(".") if known else type(cause).__name__
        raise LedgerError(
            "ledger_failed",
            f"The database has failed: {said}.",
            "Check that it runs, is not locked and has room, then run the command again.",
        ) from error
    finally:
        engine.dispose()


_LEAVE_KEY = text(
    "INSERT INTO ledger_facts (name, value) VALUES ('key_fingerprint', :value) "
    "ON CONFLICT (name) DO NOTHING"
)


def check_key(engine: Engine, keys: Keys) -> None:
    """Refuse a key other than the one the ledger's hashes were made with.

    The first process leaves the key's fingerprint in the database. With another key no session
    or tenant would ever meet its older rows, and gateways would not agree on who is who.
    """
    query = select(ledger_facts.c.value).where(ledger_facts.c.name == "key_fingerprint")
    with engine.connect().execution_options(**WRITES) as connection, connection.begin():
        connection.execute(_LEAVE_KEY, {"value": keys.fingerprint})
        known = connection.execute(query).scalar_one()
    if known != keys.fingerprint:
        raise LedgerError(
            "key_mismatch",
            "The key file is not the one this ledger was written with.",
            "Restore the key file from a backup or from another machine, or start a new ledger.",
        )


def alembic_config(connection: Connection) -> Config:
    """Alembic's configuration in code, so that a wheel needs no file for it."""
    from alembic.config import Config  # noqa: PLC0415  (see ``upgrade``)

    config = Config()
    config.set_main_option("script_location", str(ALEMBIC).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


@functools.cache
def _revisions() -> tuple[str, ...]:
    """What this version knows, newest first: the numbers that the names of its files begin with."""
    files = (ALEMBIC / "versions").glob("[0-9]*.py")
    return tuple(sorted((file.name.partition("_")[0] for file in files), reverse=True))


def _head() -> str:
    return _revisions()[0]


def _revision(connection: Connection) -> str | None:
    """None where there is no schema yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _refuse_encoding(connection: Connection) -> None:
    """Names may hold any character, and a row with one that cannot be stored would be lost."""
    encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
    if encoding != "UTF8":
        raise LedgerError(
            "bad_database",
            f"The database's encoding is {encoding}; the ledger needs UTF8.",
            "Make another one: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
        )


def _refuse_newer(connection: Connection) -> None:
    current = _revision(connection)
    if current is not None and current not in _revisions():
        raise LedgerError(
            "ledger_newer",
            f"The ledger was written by a newer version of Warmline (schema {current}).",
            "Install that version again; an older one must not write to it.",
        )


def _refuse_outdated(connection: Connection) -> None:
    revision = _revision(connection)
    if revision is None:
        raise LedgerError(
            "ledger_outdated",
            "The database is empty.",
            "Make its tables, with the same settings: warmline db upgrade",
        )
    if revision != _head():
        raise LedgerError(
            "ledger_outdated",
            "The database's schema is older than this version of Warmline.",
            "Stop the other processes that write to it, then run: warmline db upgrade",
        )


@contextlib.contextmanager
def _explained(url: URL) -> Iterator[None]:
    """Turn a driver's failure into an error that names the database, without its password."""
    shown = url.render_as_string(hide_password=True)
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        said = str(error.orig if isinstance(error, DBAPIError) else error)
        said = " ".join(said.split())
        said += "" if said.endswith((".", "?")) else "."
        raise LedgerError(
            "ledger_unusable", f"The database {shown} cannot be used: {said}", _CHECK
        ) from error


_CHECK = "Check that it exists, runs and is writable for this user (setting database)."
