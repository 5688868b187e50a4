import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.errors import AppError
from app.ledger.filters import Filter
from app.ledger.queries import count, is_empty, one, page, stream
from app.ledger.rows import COLUMNS, TurnRow
from app.ledger.writer import write_rows
from tests.support.ledger import everything, filters, rows
from tests.support.rows import START_MS, make_row

many = settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)


def all_pages(engine: Engine, view: Filter, limit: int) -> list[list[TurnRow]]:
    pages, cursor = [], None
    while True:
        found = page(engine, view, limit=limit, cursor=cursor)
        pages.append(list(found.rows))
        cursor = found.next_cursor
        if cursor is None:
            return pages


def streamed(engine: Engine, view: Filter, **options) -> list[tuple]:
    return [values for part in stream(engine, view, **options) for values in part]


def test_one_row_is_found_by_its_turn_id(engine: Engine):
    row = make_row()
    write_rows(engine, [row, make_row()])
    assert row == one(engine, row.turn_id)
    assert one(engine, "no such turn") is None


def test_a_new_ledger_is_empty(engine: Engine):
    assert is_empty(engine)
    assert 0 == count(engine, everything())
    assert ((), None) == (page(engine, everything()).rows, page(engine, everything()).next_cursor)
    assert [] == streamed(engine, everything())
    write_rows(engine, [make_row(started_at=0)])
    assert not is_empty(engine)


def test_pages_are_newest_first(engine: Engine):
    found = [make_row(started_at=START_MS + offset) for offset in (5, 1, 9)]
    write_rows(engine, found)
    assert [found[2], found[0], found[1]] == list(page(engine, everything()).rows)


def test_rows_of_one_instant_are_neither_lost_nor_shown_twice(engine: Engine):
    found = [make_row() for _ in range(1_200)]
    write_rows(engine, found)
    pages = all_pages(engine, everything(), 500)
    assert [500, 500, 200] == [len(rows) for rows in pages]
    assert found[::-1] == [row for rows in pages for row in rows]
    assert [row.values() for row in found] == streamed(engine, everything(), chunk=500)


def test_a_last_page_that_is_full_has_no_next(engine: Engine):
    write_rows(engine, [make_row() for _ in range(4)])
    assert [2, 2] == [len(rows) for rows in all_pages(engine, everything(), 2)]


def test_rows_that_arrive_while_paging_do_not_move_the_pages(engine: Engine):
    found = [make_row() for _ in range(4)]
    write_rows(engine, found)
    first = page(engine, everything(), limit=2)
    write_rows(engine, [make_row() for _ in range(3)])
    second = page(engine, everything(), limit=2, cursor=first.next_cursor)
    assert found[::-1] == [*first.rows, *second.rows]


@many
@given(st.lists(rows, max_size=15), filters(), st.integers(1, 4))
def test_pages_stream_and_count_hold_the_same_rows(holding, found, view, size):
    engine = holding(found)
    paged = [row for rows in all_pages(engine, view, size) for row in rows]
    assert count(engine, view) == len(paged)
    assert [row.values() for row in paged[::-1]] == streamed(engine, view, chunk=size)


def test_an_export_holds_what_was_there_when_it_began(engine: Engine):
    found = [make_row() for _ in range(5)]
    write_rows(engine, found)
    parts = stream(engine, everything(), columns=("turn_id",), chunk=2)
    seen = list(next(parts))
    write_rows(engine, [make_row(), make_row(started_at=START_MS + 1)])
    seen += [values for part in parts for values in part]
    assert [(row.turn_id,) for row in found] == seen


def test_a_stream_gives_the_columns_that_were_asked_for(engine: Engine):
    row = make_row(store=True)
    write_rows(engine, [row])
    assert [(row.started_at, True, row.turn_id)] == streamed(
        engine, everything(), columns=("started_at", "store", "turn_id")
    )
    assert [row.values()] == streamed(engine, everything(), columns=COLUMNS)


def test_a_stream_that_is_left_holds_nothing_up(engine: Engine):
    write_rows(engine, [make_row() for _ in range(5)])
    parts = stream(engine, everything(), chunk=2)
    next(parts)
    write_rows(engine, [make_row()])
    assert 0 == engine.pool.checkedout()
    parts.close()


def test_pages_by_recording_follow_its_order(engine: Engine):
    found = [
        make_row(started_at=START_MS + 1, recorded_at=START_MS + 2),
        make_row(started_at=START_MS, recorded_at=START_MS + 3),
    ]
    write_rows(engine, found)
    assert [[found[1]], [found[0]]] == all_pages(engine, everything("recorded"), 1)


@pytest.mark.parametrize(
    "cursor",
    ["", "?", "bm90IGEgY3Vyc29y", "MToyOjM", "é", "LTE6MQ", "OTk5OTk5OTk5OTk5OTk5OTk5OTk6MQ"],
)
def test_a_cursor_that_cannot_be_read_is_refused(engine: Engine, cursor: str):
    with pytest.raises(AppError) as caught:
        page(engine, everything(), cursor=cursor)
    assert "bad_cursor" == caught.value.code


@pytest.mark.parametrize("limit", [0, -1, 501])
def test_a_limit_beyond_its_bounds_is_refused(engine: Engine, limit: int):
    with pytest.raises(AppError, match="from 1 to 500") as caught:
        page(engine, everything(), limit=limit)
    assert 422 == caught.value.status
