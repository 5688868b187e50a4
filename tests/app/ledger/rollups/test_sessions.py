from sqlalchemy import Engine

from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rollups import sessions
from app.ledger.rollups.contribution import DAY, SESSION_SUMS
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY
WHOLE = Filter(start=DAWN, end=DAWN + 2 * DAY)


def write(engine: Engine) -> None:
    write_rows(
        engine,
        [
            *(make_row(session="a", started_at=DAWN + n) for n in range(3)),
            *(make_row(session="b", started_at=DAWN + n, mode="ws_full") for n in range(3)),
            make_row(session="c", kind="warmup", model="other"),
        ],
    )


def test_those_with_most_rows_come_first_and_only_as_many_as_are_wanted(engine: Engine):
    write(engine)
    with reading(engine) as connection:
        found = sessions.sums(connection, WHOLE, 2)
        assert found == sessions.sums(connection, WHOLE, None)[:2]
    assert ["key-a", "key-b"] == [session.session_key for session in found]
    assert 3 == dict(zip(SESSION_SUMS, found[1].sums, strict=True))["breaks"]


def test_sessions_are_counted_once_however_they_are_read(engine: Engine):
    write(engine)
    with reading(engine) as connection:
        assert 3 == sessions.count(connection, WHOLE)
        assert 3 == sessions.count(connection, WHOLE.window(DAWN + 1, DAWN + DAY - 1))
        assert 1 == sessions.count(connection, WHOLE.narrow("model", "other"))
        assert 2 == sessions.count(connection, WHOLE.narrow("kind", "generation"))


def test_how_much_was_continued_is_counted_by_pairs(engine: Engine):
    write(engine)
    with reading(engine) as connection:
        assert [(0, 0, 1), (0, 3, 1), (3, 3, 1)] == sorted(sessions.residency(connection, WHOLE))


def test_all_are_ranked_by_what_some_of_them_hold(engine: Engine):
    write(engine)
    with reading(engine) as connection:
        ranked = {one.session_key: one for one in sessions.ranked(connection, WHOLE)}
        known = {one.session_key: one for one in sessions.sums(connection, WHOLE, None)}
        assert known.keys() == ranked.keys()
        for key, one in ranked.items():
            of = dict(zip(SESSION_SUMS, known[key].sums, strict=True))
            assert (of["turns"], of["eligible"], of["mismatches"], of["cost"]) == one[2:]
            assert known[key].last_at == one.last_at
        assert [known["key-b"]] == sessions.of(connection, WHOLE, ["key-b"])
