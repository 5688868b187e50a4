"""The judge of the kills: what it must not let pass, and how its figures add up."""

import json
from types import SimpleNamespace

import pytest

from app.ledger.database import open_engine
from app.ledger.models import Base
from app.ledger.writer import write_rows
from tests.kills import add, next_seed
from tests.support.killing import verdict
from tests.support.rows import make_row

ANSWERED = make_row(turn_id="a", response_id="ra")
LOST = make_row(turn_id="b", status="error", error_code="process_ended", response_id=None)


def judged(tmp_path, rows, *, answered=(), begun=(), responses=(), uncounted=False):
    database = str(tmp_path / "ledger.sqlite3")
    engine = open_engine(database)
    Base.metadata.create_all(engine)
    write_rows(engine, rows)
    if uncounted:
        with engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM rollup_cells")
    engine.dispose()
    clients = SimpleNamespace(answered=set(answered), begun=set(begun), responses=set(responses))
    return verdict(database, clients)


def test_each_turn_once_is_sound(tmp_path):
    found = judged(tmp_path, [ANSWERED, LOST], answered="a", begun="ab", responses=["ra"])
    assert found.is_sound
    assert (2, 1, 2) == (found.rows, found.in_flight, found.counted)


@pytest.mark.parametrize(
    ("what", "rows", "seen"),
    [
        ("missing", [LOST], {"answered": "a"}),
        ("missing", [LOST], {"answered": "b"}),
        ("missing", [LOST], {"responses": ["ra"]}),
        ("unknown", [ANSWERED], {"begun": "b"}),
        ("double", [ANSWERED, make_row(turn_id="c", response_id="ra")], {}),
        ("odd", [make_row(error_code="process_ended")], {}),
    ],
)
def test_a_turn_that_is_lost_or_doubled_is_found(tmp_path, what, rows, seen):
    found = judged(tmp_path, rows, **seen)
    assert getattr(found, what)
    assert not found.is_sound


def test_a_row_that_the_rollups_do_not_count_is_found(tmp_path):
    assert not judged(tmp_path, [ANSWERED], answered="a", uncounted=True).is_sound


def test_figures_add_up_and_the_next_run_draws_other_moments(tmp_path, capsys):
    path = tmp_path / "state" / "kills.json"
    assert 1 == next_seed(path)
    for seed in (1, 2):
        add(path, seed, [SimpleNamespace(backend="sqlite", figures={"kills": 20, "missing": 0})])
    assert 3 == next_seed(path)
    assert 40 == json.loads(path.read_text())["sqlite, kills"]
    assert "sqlite, kills 40; sqlite, missing 0" in capsys.readouterr().out
