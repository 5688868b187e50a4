import pytest
from sqlalchemy import Engine, text

from app.ledger import sessions
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.models import SUB_AGENT
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_row

MINUTE = 60_000


def at(minute, session, **more):
    return make_row(started_at=START_MS + minute * MINUTE, session=session, **more)


def agent(minute, session, root, **more):
    return at(minute, session, root_session=root, **more)


def test_a_strip_has_the_last_turns_in_their_order(engine: Engine):
    rows = [at(minute, "a", model=f"m{minute}") for minute in range(5)]
    write_rows(engine, [*reversed(rows), at(9, "b", mode=None)])
    with reading(engine) as connection:
        found = sessions.strips(connection, everything(), ["key-a", "key-b"], limit=3)
    assert ["m2", "m3", "m4"] == [row.model for row in found["key-a"]]
    assert [None] == [row.mode for row in found["key-b"]]


def test_turns_of_a_session_come_by_pages_from_the_last_on(engine: Engine):
    # several at one instant: none is lost or comes twice at a page's end
    write_rows(engine, [at(minute // 3, "a", turn_id=f"t{minute}") for minute in range(8)])
    write_rows(engine, [at(0, "b")])
    cursor, pages, contexts = None, [], []
    with reading(engine) as connection:
        while True:
            found = sessions.turns_of(
                connection, everything(), "key-a", limit=3, context=2, cursor=cursor
            )
            pages.append([row.turn_id for row in found.rows])
            contexts.append([row.turn_id for row in found.context])
            if (cursor := found.next_cursor) is None:
                break
        none = sessions.turns_of(connection, Filter(start=0, end=1), "key-a", limit=3)
    assert [["t5", "t6", "t7"], ["t2", "t3", "t4"], ["t0", "t1"]] == pages
    assert [["t3", "t4"], ["t0", "t1"], []] == contexts
    assert ([], [], None) == (none.rows, none.context, none.next_cursor)


def test_what_a_turn_may_go_on_from_is_found_however_old(engine: Engine):
    rows = [at(minute, "a", response_id=f"r{minute}") for minute in range(6)]
    row = at(6, "a", previous_response_id="r1")
    write_rows(engine, [*rows, row, at(7, "a"), at(0, "b")])
    with reading(engine) as connection:
        found = sessions.around(connection, row, limit=2)
        assert {"r5", "r4", "r1"} == {one.response_id for one in found}
        assert (at_life := sessions.life(connection, "key-a")) is not None
        assert (START_MS, START_MS + 7 * MINUTE) == at_life[1:]
        assert sessions.life(connection, "nobody") is None


def test_the_sub_agents_of_a_root_come_with_their_latest_turn(engine: Engine):
    write_rows(engine, [agent(0, "x", "main"), agent(1, "x", "main"), agent(2, "y", "main")])
    with reading(engine) as connection:
        found = sessions.agents_of(connection, everything(), ("tenant-1", "main"), limit=5)
    assert [("y", 2), ("x", 1)] == [
        (row.session, (row.started_at - START_MS) // MINUTE) for row in found
    ]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_sub_agents_are_found_by_their_index_alone(engine: Engine):
    asked = f"SELECT session_key, root_session FROM turns WHERE {SUB_AGENT} AND started_at > 5"
    with reading(engine) as connection:
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN {asked}")).all()
    assert any("COVERING INDEX ix_turns_sub_agents" in str(step) for step in plan)
