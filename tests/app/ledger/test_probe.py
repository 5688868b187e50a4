import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from app.ledger.database import open_engine
from app.ledger.probe import NO_ANSWER, PATIENCE, Probe, Reading
from app.ledger.rows import to_ms
from tests.support.clock import START, ManualClock

GOOD = Reading(readable=True, since=None, error=None)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def probe(engine: Engine, clock):
    made = Probe(engine, clock, every=0.01)
    yield made
    made.close()


def move(engine: Engine, *, away: bool) -> None:
    """Take the table away, or bring it back."""
    old, new = ("turns", "elsewhere") if away else ("elsewhere", "turns")
    with engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")


def test_before_it_has_asked_nothing_is_wrong(probe):
    assert probe.state() == GOOD


def test_a_ledger_that_can_be_read_is_good(probe):
    probe.ask()
    assert probe.state() == GOOD


def test_it_tells_since_when_it_cannot_be_read_until_it_can_again(engine, probe, clock, caplog):
    move(engine, away=True)
    for _ in range(3):
        probe.ask()
        clock.advance(2)
    reading = probe.state()
    assert (False, to_ms(START)) == (reading.readable, reading.since)
    assert reading.error in ("OperationalError", "ProgrammingError")
    move(engine, away=False)
    probe.ask()
    assert probe.state() == GOOD
    assert 1 == caplog.text.count("the ledger cannot be read (")


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_file_that_was_deleted_is_noticed_although_others_have_it_open(engine, probe):
    probe.ask()
    Path(engine.url.database).rename(f"{engine.url.database}.moved")
    probe.ask()
    assert not probe.state().readable


@dataclass
class Gate:
    """Holds up the next question in the driver until it is opened."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def hold(self, _cursor, statement, *_):
        if statement.startswith("SELECT"):
            self.reached.set()
            assert self.opened.wait(60)


def test_silence_counts_as_refusal_after_a_while(probe, clock):
    gate = Gate()
    event.listen(probe._engine, "do_execute", gate.hold)
    asking = threading.Thread(target=probe.ask)
    asking.start()
    assert gate.reached.wait(10)
    assert probe.state() == GOOD
    clock.advance(PATIENCE)
    assert Reading(readable=False, since=to_ms(START), error=NO_ANSWER) == probe.state()
    gate.opened.set()
    asking.join()
    assert probe.state() == GOOD


def test_pages_that_hold_every_connection_do_not_make_it_unreadable(engine, clock):
    busy = open_engine(engine.url)
    held = [busy.connect() for _ in range(15)]
    probe = Probe(busy, clock)
    probe.ask()
    assert probe.state() == GOOD
    probe.close()
    for connection in held:
        connection.close()
    busy.dispose()


def test_it_asks_by_itself_until_it_is_closed(engine, probe):
    asked = threading.Semaphore(0)
    event.listen(probe._engine, "do_execute", lambda *_: asked.release())
    probe.start()
    assert all(asked.acquire(timeout=10) for _ in range(3))
    probe.close()
    assert not probe._thread.is_alive()
