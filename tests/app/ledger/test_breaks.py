from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from app.analysis.breaks import group_of
from app.analysis.verdicts import LOSSES
from app.analysis.waste import loss_of
from app.ledger import breaks
from app.ledger.breaks import Decision, Whole
from app.ledger.database import reading
from app.ledger.models import BROKEN
from app.ledger.writer import write_rows
from engine.model import Mode, Reason, Status
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000
EDGES = (0, START_MS + HOUR, 2**50)

some = st.lists(
    st.builds(
        make_row,
        started_at=st.integers(START_MS, START_MS + 2 * HOUR),
        session=st.sampled_from("abc"),
        kind=st.sampled_from(["generation", "generation", "warmup"]),
        status=st.sampled_from([str(Status.COMPLETED), str(Status.INCOMPLETE), "failed"]),
        mode=st.sampled_from([*map(str, Mode), None]),
        reason=st.sampled_from([*map(str, Reason), None, "their_own"]),
        eligible=st.booleans(),
        fallback_reason=st.sampled_from([None, "", "closed"]),
        changed_fields=st.sampled_from([None, "model,tools"]),
        fingerprint=st.sampled_from([None, None, "f1", "f2"]),
        client=st.sampled_from([None, "codex"]),
        cache_verdict=st.sampled_from([*map(str, sorted(LOSSES)), "hit", None]),
        missed_tokens=st.none() | st.integers(0, 2**31 - 1),
    ),
    max_size=25,
)


@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(rows=some)
def test_groups_are_those_that_rows_say_they_belong_to(holding, rows):
    rows = [row for row in rows if row.kind != "compaction"]
    broken = [(group_of(row), row) for row in rows if group_of(row) is not None]
    with reading(holding(rows)) as connection:
        found = breaks.sums(connection, everything(), EDGES)
        whole = breaks.whole(connection)
        pages = {
            group: breaks.page(connection, everything(), group, limit=50).rows for group in found
        }
        one = {group: breaks.sums(connection, everything(), EDGES, group)[group] for group in found}
        having = {group: breaks.sessions(connection, everything(), EDGES, group) for group in found}
        known = list(breaks.counted(connection, everything()))
    assert Counter((group_of(row), loss_of(row, None)) for row in known) == Counter(
        (group, loss_of(row, None)) for group, row in broken if row.missed_tokens is not None
    )
    assert Counter(group for group, _ in broken) == {k: one.turns for k, one in found.items()}
    assert one == found
    for group, sums in found.items():
        own = [row for name, row in broken if name == group]
        times = [row.started_at for row in own]
        assert sums.counted == sum(row.missed_tokens is not None for row in own)
        assert sums.missed == sum(row.missed_tokens or 0 for row in own)
        assert sums.sessions == len({row.session_key for row in own})
        assert having[group] == [
            Counter(row.session_key for row in own if (row.started_at >= EDGES[1]) == late)
            for late in (False, True)
        ]
        assert sums.clients == Counter((row.client, None) for row in own)
        assert sums.models == Counter(row.model for row in own)
        assert sums.buckets == Counter(int(at >= EDGES[1]) for at in times)
        assert (sums.first_at, sums.last_at) == (min(times), max(times))
        assert whole[group] == Whole(len(own), min(times), max(times))
        assert {row.turn_id for row in pages[group]} == {row.turn_id for row in own}


def test_breaks_of_one_session_count_once_an_hour(engine: Engine):
    known = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
    now = START_MS + 100 * HOUR
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


def test_the_last_turns_of_a_view_are_generations_broken_or_not(engine: Engine):
    rows = [make_row(started_at=START_MS + number) for number in range(3)]
    write_rows(engine, [*rows, make_row(kind="warmup"), make_row(status="failed")])
    with reading(engine) as connection:
        assert rows[:0:-1] == breaks.before(connection, everything(), limit=2)


def test_examples_are_found_by_their_numbers(engine: Engine):
    known = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
    rows = [make_row(**known), make_row(**known)]
    write_rows(engine, rows)
    with reading(engine) as connection:
        newest = breaks.sums(connection, everything(), (0, 2**50))["f1"].newest
        assert {newest: rows[1]} == breaks.examples(connection, [newest])


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_breaks_are_found_by_their_index(engine: Engine):
    asked = f"SELECT count(*) FROM turns WHERE {BROKEN} AND started_at > 5"
    with reading(engine) as connection:
        plan = connection.execute(text(f"EXPLAIN QUERY PLAN {asked}")).all()
    assert any("ix_turns_broken" in str(step) for step in plan)
