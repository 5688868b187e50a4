from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.ledger.database import reading
from app.ledger.rows import TurnRow
from app.ledger.verdict_sums import Span, VerdictSum, judged, span, sums, turns_of
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_row

VERDICTS = ("hit", "idle", "prefix_changed")


def test_a_view_without_rows_has_neither_a_beginning_nor_an_end(engine: Engine):
    with reading(engine) as connection:
        assert Span(0, None, None) == span(connection, everything())


def test_a_view_lasts_from_its_first_turn_to_its_last(engine: Engine):
    write_rows(engine, [make_row(started_at=START_MS + at) for at in (5, 0, 9)])
    with reading(engine) as connection:
        assert Span(3, START_MS, START_MS + 9) == span(connection, everything())
        view = everything().window(START_MS + 1, START_MS + 9)
        assert Span(1, START_MS + 5, START_MS + 5) == span(connection, view)


def test_turns_come_by_verdict_in_the_order_of_their_writing(engine: Engine):
    rows = [make_row(cache_verdict=verdict) for verdict in ("idle", "hit", "idle", None)]
    write_rows(engine, rows)
    with reading(engine) as connection:
        assert [rows[0], rows[2]] == list(judged(connection, everything(), {"idle"}))


def test_the_turns_of_sessions_are_counted(engine: Engine):
    rows = [make_row(session=name) for name in "aabc"]
    write_rows(engine, [*rows, make_row(session="a", kind="warmup")])
    with reading(engine) as connection:
        found = turns_of(connection, everything(), ["key-a", "key-c"])
    assert {"key-a": 2, "key-c": 1} == found


def row_of(kind: str, **values) -> TurnRow:
    """Kinds have sessions of their own: a compaction among turns has these judged anew."""
    return make_row(kind=kind, session=kind, **values)


some = st.lists(
    st.builds(
        row_of,
        kind=st.sampled_from(["generation", "generation", "compaction"]),
        model=st.sampled_from("ab"),
        cache_verdict=st.sampled_from([*VERDICTS, None]),
        cache_grade=st.sampled_from(["proven", "possible", None]),
        input_tokens=st.just(2**31 - 1),
        cached_tokens=st.none() | st.integers(0, 2**31 - 1),
        missed_tokens=st.none() | st.integers(0, 2**31 - 1),
        total_tokens=st.none(),
        non_cached_tokens=st.none(),
    ),
    max_size=12,
)


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(rows=some)
def test_sums_are_those_of_the_rows(holding, rows):
    engine = holding(rows)
    turns: Counter = Counter()
    cached: Counter = Counter()
    missed: Counter = Counter()
    for row in rows:
        if row.kind == "generation" and row.model == "a":
            key = (row.cache_verdict, row.cache_grade)
            turns[key] += 1
            cached[key] += row.cached_tokens or 0
            missed[key] += row.missed_tokens or 0
    expected = {VerdictSum(*key, turns[key], cached[key], missed[key]) for key in turns}
    with reading(engine) as connection:
        found = sums(connection, everything().narrow("model", "a"))
    assert expected == set(found)
    assert len(expected) == len(found)
    assert [one.turns for one in found] == sorted((one.turns for one in found), reverse=True)
