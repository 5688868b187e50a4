from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, event, text

from app.ledger.announcing import CHANNEL, Announcement, Announcer
from tests.support.rows import make_row


@pytest.fixture
def hearing(engine: Engine):
    """Gives what was announced so far, as a second process hears it."""
    pooled = engine.raw_connection()
    connection: Any = pooled.driver_connection
    connection.autocommit = True
    connection.execute(f"LISTEN {CHANNEL}")

    def heard() -> list[Announcement]:
        connection.execute("SELECT 1")
        found = list(connection.notifies(timeout=0))
        return [msgspec.json.decode(one.payload, type=Announcement) for one in found]

    yield heard
    pooled.invalidate()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_rows_are_announced_with_their_commit_and_not_before(engine: Engine, hearing):
    announcer = Announcer()
    with engine.begin() as connection:
        announcer.announce(connection, [make_row(turn_id="a"), make_row(turn_id="b")])
        assert [] == hearing()
    assert [Announcement(announcer.origin, ["a", "b"])] == hearing()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_what_is_not_written_is_not_announced(engine: Engine, hearing):
    with engine.connect() as connection:
        Announcer().announce(connection, [make_row()])
        connection.rollback()
    assert [] == hearing()
    with engine.begin() as connection:
        Announcer().announce(connection, [])
    assert [] == hearing()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_many_rows_with_long_ids_are_announced_in_parts(engine: Engine, hearing):
    turn_ids = [f'{number}-"é' * 30 for number in range(300)]
    with engine.begin() as connection:
        Announcer().announce(connection, [make_row(turn_id=turn_id) for turn_id in turn_ids])
    heard = hearing()
    assert len(heard) > 1
    assert turn_ids == [turn_id for one in heard for turn_id in one.turns]


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_greeting_announces_nothing(engine: Engine, hearing):
    announcer = Announcer()
    announcer.greet(engine)
    assert [Announcement(announcer.origin, [])] == hearing()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_database_of_one_process_is_asked_for_nothing(engine: Engine):
    asked: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    announcer = Announcer()
    with engine.begin() as connection:
        connection.execute(text("SELECT 1"))
        announcer.announce(connection, [make_row(turn_id="a")])
    assert ["BEGIN", "SELECT 1"] == asked


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_what_a_process_wrote_lately_is_remembered_within_a_bound(engine: Engine, monkeypatch):
    monkeypatch.setattr("app.ledger.announcing._REMEMBERED", 10)
    announcer = Announcer()
    with engine.begin() as connection:
        for number in range(100):
            announcer.announce(connection, [make_row(turn_id=str(number))])
            assert announcer.wrote(str(number))
    kept = [number for number in range(100) if announcer.wrote(str(number))]
    assert list(range(100 - len(kept), 100)) == kept
    assert 10 <= len(kept) <= 20


def test_no_two_processes_have_one_name():
    assert Announcer().origin != Announcer().origin
