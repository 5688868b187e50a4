from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.ledger import queries
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.newest import followed, newest
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_row

TIMES = (1, 2, 2, 2, 3, 5, 8, 8, 9)


ROWS = [
    make_row(
        turn_id=f"turn-{number}", started_at=START_MS + at, recorded_at=START_MS + 20 - at,
        session="ab"[number % 2], model="even" if at % 2 == 0 else "odd",
    )
    for number, at in enumerate(TIMES)
]  # fmt: skip


@pytest.fixture
def rows(engine: Engine):
    write_rows(engine, ROWS)


def told(engine: Engine, view, most):
    """From when a view is told, of how many rows of its window, and of how many of the view."""
    with reading(engine) as connection:
        found = newest(connection, view, most=most)
    return found.view.start - START_MS, found.rows, queries.count(engine, found.view)


def test_a_view_of_few_rows_is_whole(engine: Engine, rows):
    view = everything()
    with reading(engine) as connection:
        assert (view, None) == newest(connection, view, most=len(TIMES))
        assert (view, None) == newest(connection, view)


def test_of_many_rows_the_newest_are_told_and_those_of_one_instant_stay_together(
    engine: Engine, rows
):
    assert (8, 3, 3) == told(engine, everything(), 2)
    assert (8, 3, 3) == told(engine, everything(), 3)
    assert (5, 4, 4) == told(engine, everything(), 4)
    assert (2, 8, 8) == told(engine, everything(), 6)


def test_rows_that_have_to_be_read_count_also_where_the_view_leaves_them_out(engine: Engine, rows):
    assert (5, 4, 2) == told(engine, everything().narrow("model", "odd"), 4)
    # Those of a session are found without them.
    assert (3, 3, 3) == told(engine, everything().narrow("session", "a"), 3)
    assert (None, 5) == told(engine, everything().narrow("session", "a"), 5)[1:]


def test_of_one_session_fewer_turns_are_followed(engine: Engine, rows, monkeypatch):
    monkeypatch.setattr("app.ledger.newest.FOLLOWED", 3)
    with reading(engine) as connection:
        assert None is followed(connection, everything()).rows
        assert 3 == followed(connection, everything().narrow("session", "a")).rows


@settings(max_examples=20)
@given(most=st.integers(1, 10), end=st.integers(0, 10), by=st.sampled_from(["started", "recorded"]))
def test_it_is_told_of_the_newest_rows_there_are(holding, most, end, by):
    engine = holding(ROWS)
    view = Filter(START_MS, START_MS + 2 * end, by=by)
    times = sorted((20 - at if by == "recorded" else at) for at in TIMES)
    times = [at for at in times if at < 2 * end]
    expected = (0, None, len(times))
    if len(times) > most:
        some = [at for at in times if at >= times[-most]]
        expected = (some[0], len(some), len(some))
    assert expected == told(engine, view, most)
