from dataclasses import replace

from sqlalchemy import Engine

from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.idle import spanning
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

MINUTE = 60_000
DAY = 24 * 60


def at(minute, session, **more):
    return make_row(started_at=START_MS + minute * MINUTE, session=session, **more)


def between(start, end, **more):
    return Filter(start=START_MS + start * MINUTE, end=START_MS + end * MINUTE, **more)


def idle(engine: Engine, view: Filter, but=()):
    with reading(engine) as connection:
        return {
            one.session_key: (
                (one.before - START_MS) // MINUTE, (one.after - START_MS) // MINUTE
            )
            for one in spanning(connection, view, but)
        }  # fmt: skip


ROWS = [
    *(at(minute, "a", model="x") for minute in (0, 3, 300)),
    *(at(minute, "b", model="y") for minute in (1, 100, 301)),
    *(at(minute, "c", model=("x", "y")[minute > 5]) for minute in (2, 302)),
    at(4, "d"),
    at(305, "e"),
]


def test_a_session_spans_what_lies_between_its_turns(engine: Engine):
    write_rows(engine, ROWS)
    assert {"key-a": (3, 300), "key-b": (1, 100), "key-c": (2, 302)} == idle(
        engine, between(50, 90)
    )
    # half-open: a turn at the end lies after the window, one at its start within it
    assert {"key-a": (3, 300), "key-c": (2, 302)} == idle(engine, between(150, 300), {"key-b"})
    assert {} == idle(engine, between(50, 400))
    assert {} == idle(engine, between(-90, -50))
    assert {} == idle(engine, replace(between(50, 90), by="recorded"))


def test_what_has_a_filter_spans_between_its_own_turns(engine: Engine):
    write_rows(engine, ROWS)
    of = {"include": {"model": ("x",)}}
    assert {"key-a": (3, 300)} == idle(engine, between(50, 90, **of))
    of = {"exclude": {"model": ("y",)}}
    assert {"key-a": (3, 300)} == idle(engine, between(50, 90, **of))


def test_hours_that_are_over_and_the_one_that_is_not_are_one(engine: Engine):
    """A later turn ends hours, and so do the lives of sessions."""
    write_rows(engine, ROWS)
    found = idle(engine, between(50, 90))
    write_rows(engine, [at(20 * DAY, "later")])
    assert found == idle(engine, between(50, 90))
    write_rows(engine, [at(20 * DAY + 1, "d")])
    assert found | {"key-d": (4, 20 * DAY + 1)} == idle(engine, between(50, 90))
    days = between(2 * DAY, 9 * DAY)
    assert {"key-d": (4, 20 * DAY + 1)} == idle(engine, days)
