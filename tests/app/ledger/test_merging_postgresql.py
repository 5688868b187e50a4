"""Several processes on one ledger merge the same calls, and gateways write meanwhile."""

import threading
from dataclasses import replace

import pytest
from sqlalchemy import Connection, Engine, text

from app.ledger import imports, merging, taking
from app.ledger.imports import Counts
from app.ledger.writer import write_rows
from tests.support.importing import stored
from tests.support.ledger import everything
from tests.support.rollups import expected_whole, found_whole
from tests.support.rows import START_MS, make_row

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
CALLS = 20


def both(source: str, number: int):
    name = f"s{number % 4}"
    return make_row(
        turn_id=f"{source}{number}",
        started_at=START_MS + number * 60_000,
        source=source,
        session=name,
        session_key=f"{source}-{name}",
        turn_group="t" if source != "gateway" else None,
    )


def test_whoever_comes_first_each_call_has_one_row_and_is_counted_once(engine: Engine):
    failures: list[BaseException] = []

    def gateway() -> None:
        for first in range(0, CALLS, 5):
            rows = [both("gateway", number) for number in range(first, first + 5)]
            write_rows(engine, rows)
            merging.merge(engine, {row.session for row in rows if row.session})

    def log() -> None:
        imports.begin(engine, "i", START_MS, [])
        for first in reversed(range(0, CALLS, 5)):
            rows = [both("import:codex", number) for number in range(first, first + 5)]
            taking.take(engine, "i", [rows], Counts())
            merging.merge_waiting(engine)

    def run(work) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in (gateway, log)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    merging.merge_waiting(engine)
    assert [] == failures
    found = stored(engine)
    assert [("gateway", "t")] * CALLS == [(row.source, row.turn_group) for row in found]
    assert expected_whole(found, everything()) == found_whole(engine, everything())
    assert (CALLS, 0) == merging.counted(engine, "i")
    assert (0, 0, CALLS) == (
        (undone := imports.undo(engine, "i")).rows,
        undone.kept,
        undone.parted,
    )
    assert [("gateway", None)] * CALLS == [(row.source, row.turn_group) for row in stored(engine)]


def test_an_import_that_learns_and_a_merge_do_not_wait_for_each_other(engine: Engine):
    imports.begin(engine, "i", START_MS, [])
    log = both("import:codex", 1)
    taking.take(engine, "i", [[log]], Counts())
    write_rows(engine, [both("gateway", 1)])
    failures: list[BaseException] = []

    def learn() -> None:
        try:
            more = [replace(log, ttft_ms=9e6), both("import:codex", 5)]
            taking.take(engine, "i", [more], Counts(), logged=True)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=learn, daemon=True)
    with engine.begin() as connection, engine.connect() as other:
        connection.exec_driver_sql(merging._LOCK)
        thread.start()
        until_one_waits(other)
        merging._join(connection, {log.turn_id: "gateway1"})
    thread.join(60)
    assert [] == failures
    merging.merge_waiting(engine)
    assert ["gateway1", "import:codex5"] == [row.turn_id for row in stored(engine)]


def until_one_waits(connection: Connection) -> None:
    """Until one of this database's processes waits for another one's lock."""
    query = text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    while not connection.execute(query).scalar_one():
        connection.rollback()  # another process: it tells nobody when it waits
