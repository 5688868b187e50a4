from pathlib import Path

import pytest
from sqlalchemy import Engine

from app import purging
from app.ledger.journal.journal import Journal
from app.ledger.purging import Target, look
from app.ledger.writer import write_rows
from app.purging import Purged
from tests.support.clock import ManualClock
from tests.support.rollups import turns_in
from tests.support.rows import make_row


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_what_ended_processes_have_left_goes_too(engine: Engine, tmp_path: Path):
    left = Journal(tmp_path / "journal")
    left.end(make_row(session="s"))
    left.end(make_row(session="other"))
    left.close()
    assert purging.settle(engine, tmp_path / "journal", ManualClock())
    assert [] == list((tmp_path / "journal").iterdir())
    assert 1 == look(engine, Target(session="s")).rows
    assert Purged(1, 0, scrubbed=True) == purging.purge(engine, Target(session="s"))
    assert 1 == turns_in(engine)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_where_there_is_no_journal_none_is_made(engine: Engine, tmp_path: Path):
    assert purging.settle(engine, tmp_path / "journal", ManualClock())
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_tenant_goes_with_its_rows(engine: Engine):
    write_rows(engine, [make_row(tenant="a"), make_row(tenant="b")])
    assert Purged(1, 0, scrubbed=True) == purging.purge(engine, Target(tenant="a"))
    assert 1 == turns_in(engine)
