import pytest
from click.testing import CliRunner

from app.cli import main
from app.ledger import database
from app.ledger.database import open_engine, prepare
from app.ledger.writer import write_rows
from tests.support.commands import LEDGER, run
from tests.support.rollups import turns_in
from tests.support.rows import START_MS, make_row


@pytest.fixture(autouse=True)
def _two_tenants() -> None:
    engine = prepare(LEDGER)
    rows = [
        make_row(session="a", tenant="t"),
        make_row(session="a", tenant="t", started_at=START_MS + 60_000),
        make_row(session="b", tenant="u"),
    ]
    write_rows(engine, rows)
    engine.dispose()


def purge(*arguments: str, answer: str = ""):
    return CliRunner().invoke(main, ["purge", "--database", LEDGER, *arguments], input=answer)


def held() -> int:
    engine = open_engine(LEDGER)
    found = turns_in(engine)
    engine.dispose()
    return found


FOUND = "2 rows in 1 session of 1 tenant, 2027-01-15T08:00:00.000Z to 2027-01-15T08:01:00.000Z.\n"


def test_it_shows_what_there_is_and_asks():
    refused = purge("--session", "a", answer="n\n")
    assert (1, True, 3) == (refused.exit_code, refused.output.startswith(FOUND), held())
    done = purge("--session", "a", answer="y\n")
    assert (0, 1) == (done.exit_code, held())
    assert done.output.endswith("2 rows deleted.\n")


def test_it_does_not_ask_who_says_yes():
    result = purge("--tenant", "t", "--yes")
    assert (0, FOUND + "2 rows deleted.\n", 1) == (result.exit_code, result.output, held())


def test_it_deletes_what_was_before_a_time():
    result = purge(
        "--tenant", "t", "--before", "2027-01-15T09:01", "--tz", "Europe/Berlin", "--yes"
    )
    assert "1 row deleted.\n" == result.output.splitlines(keepends=True)[-1]
    assert 2 == held()
    assert "--before is not a time" in purge("--tenant", "t", "--before", "once").output
    unknown = purge("--tenant", "t", "--before", "now", "--tz", "Mars")
    assert "tz is not a time zone" in unknown.output


def test_nothing_to_delete_is_told():
    result = purge("--session", "nobody")
    assert (0, "There is nothing of it.\n0 rows deleted.\n") == (result.exit_code, result.output)


def test_a_file_that_others_keep_in_use_may_hold_traces(monkeypatch):
    monkeypatch.setattr(database, "BUSY_TIMEOUT_MS", 50)
    other = open_engine(LEDGER)
    with other.connect() as reader:
        reader.exec_driver_sql("SELECT * FROM turns").fetchone()
        result = purge("--session", "a", "--yes")
    other.dispose()
    assert (1, True, 1) == (result.exit_code, "Stop the service" in result.output, held())
    assert 0 == purge("--session", "a").exit_code


@pytest.mark.parametrize("arguments", [(), ("--session", "a", "--tenant", "t"), ("--session", "")])
def test_it_must_be_told_one_thing(arguments):
    result = purge(*arguments)
    assert (2, True) == (result.exit_code, "either --session or --tenant" in result.output)


def test_reading_makes_no_empty_ledger():
    result = run("purge", "--database", "none.sqlite3", "--session", "a")
    assert "There is no ledger at" in result.output
