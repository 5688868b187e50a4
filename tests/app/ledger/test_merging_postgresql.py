"""Several processes on one ledger merge the same calls, and gateways write meanwhile."""

import threading

import pytest
from sqlalchemy import Engine

from app.ledger import imports, merging
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
            imports.take(engine, "i", rows, Counts())
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
