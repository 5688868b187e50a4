from collections import Counter

import pytest
from sqlalchemy import Engine, text

from app.ledger import breaks
from app.ledger.breaks import Decision
from app.ledger.database import reading
from app.ledger.models import BROKEN
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000
EDGES = (0, START_MS + HOUR, 2**50)


def test_a_group_is_told_by_session_and_bucket(engine: Engine):
    known = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
    starts = {"a": (0, 1, 2 * HOUR), "b": (3 * HOUR,)}
    write_rows(
        engine,
        [
            make_row(started_at=START_MS + at, session=name, **known)
            for name, each in starts.items()
            for at in each
        ],
    )
    with reading(engine) as connection:
        found = breaks.sessions(connection, everything(), EDGES, "f1")
    assert [Counter({"key-a": 2}), Counter({"key-a": 1, "key-b": 1})] == found


def test_breaks_of_one_session_count_once_an_hour(engine: Engine):
    known = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
    now = START_MS - START_MS % HOUR + 101 * HOUR - 1
    ago = {"a": (1, 2, 59, 61, 24 * 60), "b": (1, 24 * 60 + 59, 47 * 60 + 59, 48 * 60), "c": (-1,)}
    write_rows(
        engine,
        [
            make_row(started_at=now - minutes * 60_000, session=name, **known)
            for name, all_minutes in ago.items()
            for minutes in all_minutes
        ],
    )
    with reading(engine) as connection:
        assert {"f1": [3, 3]} == breaks.days(connection, now, 2)
        assert {} == breaks.days(connection, now, 2, "f2")


def test_pages_of_a_group_hold_each_break_once(engine: Engine):
    known = {"mode": "ws_full", "reason": "prefix_mismatch"}
    rows = [make_row(started_at=START_MS + number // 2, **known) for number in range(7)]
    write_rows(engine, [*rows, make_row(fingerprint="f1", **known)])
    found, cursor = [], None
    with reading(engine) as connection:
        while True:
            page = breaks.page(
                connection, everything(), "reason:prefix_mismatch", limit=2, cursor=cursor
            )
            found += page.rows
            cursor = page.next_cursor
            if cursor is None:
                break
    assert [row.turn_id for row in rows[::-1]] == [row.turn_id for row in found]


def test_the_last_decision_counts(engine: Engine):
    first, second = (Decision(word, 5, None, "operator") for word in ("resolved", "open"))
    breaks.decide(engine, "f1", first)
    breaks.decide(engine, "f2", Decision("muted", 6, 7, "operator"))
    breaks.decide(engine, "f1", second)
    with reading(engine) as connection:
        assert {"f1": second, "f2": Decision("muted", 6, 7, "operator")} == breaks.decisions(
            connection
        )


def test_the_last_turns_of_a_view_are_generations_or_breaks_of_a_group(engine: Engine):
    broken = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
    rows = [make_row(started_at=START_MS + number) for number in range(3)]
    rows[0] = make_row(started_at=START_MS, **broken)
    write_rows(engine, [*rows, make_row(kind="warmup"), make_row(status="failed")])
    with reading(engine) as connection:
        last = breaks.newest(connection, everything(), ["turn_id"], limit=2)
        of_group = breaks.newest(connection, everything(), ["turn_id"], limit=2, group="f1")
    assert [row.turn_id for row in rows[:0:-1]] == [row.turn_id for row in last]
    assert [rows[0].turn_id] == [row.turn_id for row in of_group]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_breaks_are_found_by_their_index(engine: Engine):
    asked = f"SELECT count(*) FROM turns WHERE {BROKEN} AND started_at > 5"
    with reading(engine) as connection:
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN {asked}")).all()
    assert any("ix_turns_broken" in str(step) for step in plan)
