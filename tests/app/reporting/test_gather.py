import pytest
from sqlalchemy import Engine

from app.ledger.writer import write_rows
from app.reporting.figures import Read, Session
from app.reporting.gather import WORST, gather, sums
from tests.support.ledger import everything
from tests.support.reported import judged, some_turns

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


def test_causes_stand_by_what_they_missed(engine: Engine):
    write_rows(engine, some_turns())
    found = gather(engine, everything())
    assert [
        ("one_off_partial", "possible", 1, 7_000),
        ("prefix_changed", "proven", 1, 2_000),
        ("idle", "likely", 1, 1_000),
    ] == [(cause.verdict, cause.grade, waste.turns, waste.missed) for cause, waste in found.causes]


def test_one_cause_of_two_grades_is_two_lines(engine: Engine):
    write_rows(engine, [judged("idle", grade, 9, 0) for grade in ("likely", "possible", "likely")])
    found = gather(engine, everything())
    assert [("likely", 2, 18), ("possible", 1, 9)] == [
        (cause.grade, waste.turns, waste.missed) for cause, waste in found.causes
    ]


def test_the_worst_sessions_are_those_that_missed_most(engine: Engine):
    write_rows(engine, some_turns())
    assert (
        Session("key-session-b", "session-b", 2, 2, 8_000, "Short once"),
        Session("key-session-a", "session-a", 6, 1, 2_000, "Prefix changed"),
    ) == gather(engine, everything()).sessions


def test_only_so_many_sessions_are_listed(engine: Engine):
    rows = [judged("idle", "likely", at, 0, session=f"s{at}") for at in range(WORST + 3)]
    write_rows(engine, rows)
    found = gather(engine, everything()).sessions
    assert [WORST + 2 - at for at in range(WORST)] == [one.missed for one in found]


def test_what_a_filter_leaves_out_is_in_no_figure(engine: Engine):
    rows = [*some_turns(), *some_turns(model="other")]
    write_rows(engine, rows)
    found = gather(engine, everything().narrow("model", "other"), Read(files=1))
    assert (8, 10_000, 3, 1) == (found.rows, found.missed, len(found.causes), found.read.files)
    times = [row.started_at for row in rows[8:]]
    assert (min(times), max(times)) == (found.first_at, found.last_at)


def test_all_that_was_missed_is_in_one_cause_and_in_the_sum(engine: Engine):
    write_rows(engine, some_turns())
    found = gather(engine, everything())
    wastes = [waste for _, waste in found.causes]
    assert (3, 10_000) == (found.losses.turns, found.losses.missed)
    for name in ("turns", "tokens", "nano", "priced", "timed", "ms"):
        assert getattr(found.losses, name) == sum(getattr(waste, name) for waste in wastes)


def test_what_would_have_been_saved_and_what_resets_cost_are_told(engine: Engine):
    write_rows(engine, some_turns())
    found = gather(engine, everything())
    sooner, frozen = sorted(found.saving(), reverse=True)
    assert "Freezing `_meta` would have kept at most 1 of 1 break warm." == frozen
    assert sooner.startswith("Going on before the cache runs out, or a longer retention, would")
    assert (1, 1) == (found.resets.number, found.resets.priced)


def test_an_empty_view_has_no_figures_and_no_fault(engine: Engine):
    found = gather(engine, everything())
    assert (0, None, 0, None, ()) == (
        found.rows, found.first_at, found.due, found.missed_rate, found.causes,
    )  # fmt: skip


def test_progress_is_told_in_turns_that_missed_something(engine: Engine):
    write_rows(engine, some_turns())
    told: list[tuple[int, int]] = []
    gather(engine, everything(), progress=lambda done, of: told.append((done, of)))
    assert [(1, 3), (2, 3), (3, 3)] == told


def test_sums_are_those_of_all_figures_and_tell_of_no_turn(engine: Engine):
    write_rows(engine, some_turns())
    whole, found = gather(engine, everything()), sums(engine, everything(), Read())
    assert (whole.summary, whole.verdicts, whole.rows) == (
        found.summary,
        found.verdicts,
        found.rows,
    )
    assert (10_000, whole.due) == (found.missed, found.due)
    assert ((), (), 0) == (found.causes, found.sessions, found.losses.turns)
