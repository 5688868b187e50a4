from decimal import Decimal

from sqlalchemy import Engine

from app.ledger import families
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_row

MINUTE = 60_000


def at(minute, session, **more):
    return make_row(started_at=START_MS + minute * MINUTE, session=session, **more)


def agent(minute, session, root, **more):
    return at(minute, session, root_session=root, **more)


def keys(engine: Engine, sort="recent", view=None):
    with reading(engine) as connection:
        found = families.families(connection, view or everything(), sort, limit=50)
    assert found.next is None
    assert found.count == len(found.page)
    return [(one.key, one.sub_agents, len(one.members)) for one in found.page]


def test_sub_agents_are_rolled_up_under_their_root(engine: Engine):
    write_rows(
        engine,
        [
            agent(0, "main", "main"),
            agent(1, "helper", "main"),
            agent(2, "other", "main"),
            at(3, "alone"),
            # of another tenant, whose root has the same name and no row here
            agent(4, "stray-2", "main", tenant="tenant-2"),
            agent(5, "stray-1", "main", tenant="tenant-2"),
        ],
    )
    assert [("key-stray-1", 1, 2), ("key-alone", 0, 1), ("key-main", 2, 3)] == keys(engine)
    flat = Filter(start=0, end=2**50, include={"root": ("main",)})
    assert [(key, 0, 1) for key in ("stray-1", "stray-2", "other", "helper", "main")] == [
        (key.removeprefix("key-"), *rest) for key, *rest in keys(engine, view=flat)
    ]
    later = Filter(start=START_MS + MINUTE, end=START_MS + 3 * MINUTE)
    assert [("key-main", 2, 2)] == keys(engine, view=later)


def test_sessions_come_in_the_order_that_is_wanted(engine: Engine):
    parted = {"mode": "ws_full", "reason": "prefix_mismatch"}
    write_rows(
        engine,
        [
            at(0, "a", **parted, missed_tokens=5),
            at(1, "a", **parted, missed_tokens=None),
            at(2, "a", cost_usd=Decimal(2)),
            at(3, "b", **parted, missed_tokens=9),
            at(4, "c", cost_usd=Decimal(3)),
        ],
    )
    expected = {
        "recent": "cba",
        "turns": "abc",
        "cost": "cab",
        "missed": "bac",
        "mismatches": "bac",
    }
    assert expected.keys() == families.SORTS.keys()
    assert expected == {
        sort: "".join(key[-1] for key, *_ in keys(engine, sort)) for sort in expected
    }


def test_pages_hold_each_family_once(engine: Engine):
    rows = [at(minute % 3, f"s{minute}") for minute in range(7)]
    write_rows(engine, [*rows, agent(1, "helper", "s1"), agent(2, "helper", "s1")])
    with reading(engine) as connection:
        whole = families.families(connection, everything(), "recent", limit=9)
        found, after = [], None
        while True:
            page = families.families(connection, everything(), "recent", limit=2, after=after)
            assert (7, 8, {}) == (page.count, page.sessions, page.idle)
            found += page.page
            if (after := page.next) is None:
                break
    assert whole.page == found
    assert ["key-s1", "key-s2", "key-s5"] == [one.key for one in found[:3]]


def test_a_session_that_is_idle_in_the_window_is_there_under_its_root(engine: Engine):
    write_rows(
        engine,
        [
            *(at(minute, "idle", model=f"m{minute}") for minute in (0, 30, 90)),
            *(agent(minute, "helper", "main") for minute in (1, 99)),
            at(60, "main"),
            *(agent(minute, "stray", "gone") for minute in (2, 98)),
            at(0, "before"),
            at(90, "after"),
        ],
    )
    view = Filter(start=START_MS + 40 * MINUTE, end=START_MS + 80 * MINUTE)
    assert [("key-main", 1, 2), ("key-idle", 0, 1), ("key-stray", 0, 1)] == keys(engine, view=view)
    assert ["key-main"] == [key for key, *_ in keys(engine, "turns", view)][:1]
    with reading(engine) as connection:
        found = families.families(connection, view, "recent", limit=50)
        assert families.head_of(connection, ("tenant-1", "main")) == "key-main"
        assert families.head_of(connection, ("tenant-1", "gone")) is None
    assert (3, 1, {"key-idle", "key-helper", "key-stray"}) == (
        found.count, found.sessions, set(found.idle)
    )  # fmt: skip
    assert 0 == sum(member.turns for member in found.page[1].members)
