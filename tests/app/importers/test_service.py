"""Stopping, starting anew and undoing; what comes of files is told in tests/app/web/test_imports.py."""

from __future__ import annotations

import json
import threading

import pytest

from app.errors import AppError
from app.importers import run as runs
from app.importers import service as services
from app.importers.service import Importing
from app.importers.uploads import Uploads
from app.ledger import imports
from app.ledger.database import prepare
from tests.support.clock import START, ManualClock
from tests.support.importing import IDENTITY, stored

ROWS = 30
LOG = b"".join(
    json.dumps({"t": START - 9_000 + n, "chain": "c", "id": f"r{n}", "input": n}).encode() + b"\n"
    for n in range(ROWS)
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    opened = prepare(str(tmp_path_factory.mktemp("ledger") / "ledger.db"))
    yield opened
    opened.dispose()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(runs, "BATCH", 10)


@pytest.fixture
def opening(engine, tmp_path):
    """What a start of the service makes; all are ended."""
    opened = []

    def new() -> Importing:
        made = Importing(engine, ManualClock(), IDENTITY, Uploads(tmp_path / "u", 10_000_000))
        opened.append(made)
        return made

    yield new
    for one in opened:
        one.close()


def sent(importing: Importing, content: bytes = LOG) -> services.Job:
    job = importing.begin()
    with importing.receiving(job.id, "a.jsonl", None) as write:
        write(content)
    return job


def after_the_first_batch(importing: Importing, monkeypatch, then) -> None:
    """Calls ``then`` in another thread, and goes on when it has returned."""
    called: list[threading.Thread] = []
    plain = importing._give_way

    def look(job: services.Job) -> None:
        if job.done and not called:
            called.append(threading.Thread(target=then))
            called[0].start()
            called[0].join()
        plain(job)

    monkeypatch.setattr(importing, "_give_way", look)


def test_a_service_that_stops_leaves_an_import_that_can_be_repeated_and_undone(
    engine, opening, monkeypatch
):
    importing = opening()
    job = sent(importing)
    after_the_first_batch(importing, monkeypatch, importing._stop.set)
    importing.start(job.id)
    importing.settle()
    importing.close()
    assert imports.INTERRUPTED == imports.one(engine, job.id).state
    taken = len(stored(engine))
    assert 0 < taken < ROWS
    assert [] == list(importing.uploads.root.iterdir())

    later = opening()
    again = sent(later)
    later.start(again.id)
    later.settle()
    assert ROWS == len(stored(engine))
    assert (ROWS - taken, taken) == (
        imports.one(engine, again.id).rows_new,
        imports.one(engine, again.id).rows_known,
    )
    for one in (job, again):
        later.undo(one.id)
    later.settle()
    assert [] == stored(engine)
    assert imports.UNDONE == imports.one(engine, job.id).state == later.job(again.id).state


def test_of_two_requests_that_start_an_import_one_does(engine, opening, monkeypatch):
    importing = opening()
    job = sent(importing)
    files = importing.uploads.files

    def meanwhile(import_id: str):
        monkeypatch.setattr(importing.uploads, "files", files)
        importing.start(import_id)
        return files(import_id)

    monkeypatch.setattr(importing.uploads, "files", meanwhile)
    with pytest.raises(AppError, match="no files any more"):
        importing.start(job.id)
    importing.settle()
    assert (imports.DONE, ROWS) == (job.state, len(stored(engine)))
    importing.undo(job.id)
    importing.settle()


def test_undoing_one_that_runs_stops_it_first(engine, opening, monkeypatch):
    importing = opening()
    job = sent(importing)
    after_the_first_batch(importing, monkeypatch, lambda: importing.undo(job.id))
    importing.start(job.id)
    importing.settle()
    importing.settle()  # the undoing came behind the first wait
    assert imports.UNDONE == job.state
    assert 0 < imports.one(engine, job.id).rows_new < ROWS
    assert [] == stored(engine)


def test_one_that_waits_is_forgotten_and_one_that_nobody_goes_on_with_is_given_up(opening):
    importing = opening()
    hold = threading.Event()
    importing._thread.submit(hold.wait, 10)
    waits = sent(importing)
    importing.start(waits.id)
    importing.undo(waits.id)
    hold.set()
    importing.settle()
    assert importing.job(waits.id) is None

    left = sent(importing)
    importing._clock.advance(services.IDLE_SECONDS + 1)
    importing.begin()
    assert importing.job(left.id) is None
    with pytest.raises(AppError):
        importing.start(left.id)


def test_an_import_that_ran_when_the_process_was_killed_was_interrupted(engine, opening):
    killed = opening()
    job = sent(killed)
    imports.begin(engine, job.id, 0, ["a.jsonl"])
    killed.uploads._own.close()  # as the kernel does it
    opening()
    assert imports.INTERRUPTED == imports.one(engine, job.id).state


def test_uploads_that_are_open_are_few(opening):
    importing = opening()
    for _ in range(services._UPLOADS):
        importing.begin()
    with pytest.raises(AppError) as refused:
        importing.begin()
    assert "busy" == refused.value.code
