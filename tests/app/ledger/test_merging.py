"""One row for a call that a gateway and a log tell of: the same ledger whatever comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from app.importers.identity import Identity
from app.ledger import imports, merging, purging, taking
from app.ledger.database import WRITES
from app.ledger.imports import Counts, Undone
from app.ledger.models import merged_records, unmerged_sessions
from app.ledger.purging import Target
from app.ledger.retention import prune
from app.ledger.rollups.contribution import DAY
from app.ledger.rows import TurnRow
from app.ledger.same_call import Call, learned, matched
from app.ledger.writer import write_rows
from tests.support.importing import IDENTITY, stored, unjudged
from tests.support.ledger import everything
from tests.support.rollups import expected_whole, found_whole
from tests.support.rows import START_MS, make_row, unknown_usage

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def engine(holding: Callable[..., Engine]) -> Engine:
    """One database for all: what is tried here hangs on no state of it."""
    return holding([])


def seen(name: str, at: int = 0, **given) -> TurnRow:
    known = {"session": "s", "turn_group": None, "client_version": None, **given}
    return make_row(turn_id=name, started_at=START_MS + at, **known)


def logged(name: str, at: int = 0, **given) -> TurnRow:
    known = {"session": "s", "turn_group": "turn", "client_version": "1", **given}
    row = make_row(
        turn_id=name, started_at=START_MS + at, source="import:codex", mode=None, **known
    )
    return replace(row, tenant="logs", session_key=f"log-{row.session}", eligible=False)


def write(engine: Engine, *rows: TurnRow) -> None:
    write_rows(engine, rows)
    merging.merge(engine, {row.session for row in rows if row.session is not None})


def bring(engine: Engine, import_id: str, *rows: TurnRow) -> Counts:
    if not any(known.id == import_id for known in imports.listed(engine)):
        imports.begin(engine, import_id, START_MS + DAY, [])
    (counts,) = taking.take(engine, import_id, [rows], Counts(), logged=True)
    merging.merge_waiting(engine)
    return counts


def rows_in(engine: Engine) -> list[TurnRow]:
    """All rows, when nothing waits; the sums are theirs."""
    merging.merge_waiting(engine)
    assert 0 == merging.merge_waiting(engine) == merging.merge(engine, ["s", "t"])
    found = stored(engine)
    assert expected_whole(found, everything()) == found_whole(engine, everything())
    return unjudged(found)


def test_a_call_that_both_tell_of_is_the_gateways_row_and_learns(engine: Engine):
    mine, other = seen("g", response_id="r"), seen("h", 60_000)
    write(engine, mine, other)
    log = logged("l", 900, response_id="r", input_tokens=1_001)
    assert Counts(new=1) == bring(engine, "i", log)
    assert [learned(mine, log), other] == rows_in(engine)
    assert ("turn", "1", 1_000) == (
        (row := stored(engine)[0]).turn_group,
        row.client_version,
        row.input_tokens,
    )
    assert (1, 1) == merging.counted(engine, "i"), "one, whose figures differ"
    assert Counts(known=1) == bring(engine, "j", log)
    assert (0, 0) == merging.counted(engine, "j")


def test_a_gateways_row_that_comes_later_takes_the_place_of_the_logs(engine: Engine):
    log = logged("l", 900)
    bring(engine, "i", log)
    write(engine, seen("g"))
    assert [learned(seen("g"), log)] == rows_in(engine)


def test_equal_ids_and_names_of_other_sessions_are_other_calls(engine: Engine):
    write(engine, seen("g", response_id="r"))
    bring(engine, "i", logged("l", response_id="r", session="t"))
    assert ["g", "l"] == [row.turn_id for row in rows_in(engine)]


def test_what_is_told_of_a_record_later_reaches_the_gateways_row(engine: Engine):
    write(engine, seen("g"))
    log = logged("l", turn_group=None)
    bring(engine, "i", log)
    more = replace(log, turn_group="late", root_session="root")
    assert Counts(known=1) == bring(engine, "j", more)
    assert [learned(seen("g"), more)] == rows_in(engine)
    imports.undo(engine, "i")
    assert [seen("g")] == rows_in(engine)


def test_a_record_that_turns_out_to_be_another_call_has_a_row_of_its_own_again(engine: Engine):
    write(engine, seen("g", response_id="r"))
    log = logged("l", response_id=None)
    bring(engine, "i", log)
    assert ["g"] == [row.turn_id for row in rows_in(engine)]
    bring(engine, "j", replace(log, response_id="q"))
    assert ["g", "l"] == [row.turn_id for row in rows_in(engine)]


def test_usage_that_the_gateway_missed_is_taken_and_given_back(engine: Engine):
    mine = replace(unknown_usage(turn_id="g", response_id="r"), session="s")
    write(engine, mine)
    log = logged("l", response_id="r")
    bring(engine, "i", log)
    assert [1_000] == [row.input_tokens for row in rows_in(engine)]
    imports.undo(engine, "i")
    assert [mine] == rows_in(engine)


def test_undoing_leaves_the_gateways_row_as_it_was(engine: Engine):
    write(engine, seen("g"))
    bring(engine, "i", logged("l"), logged("m", 60_000))
    told = []
    assert Undone(1, 0, 1) == imports.undo(engine, "i", lambda *at: told.append(at))
    assert [(0, 2), (1, 2), (2, 2)] == told
    assert [seen("g")] == rows_in(engine)
    assert Counts(new=2) == bring(engine, "k", logged("l"), logged("m", 60_000))


def test_the_next_record_takes_the_place_of_one_that_was_taken_back(engine: Engine):
    write(engine, seen("g", 900))
    bring(engine, "i", logged("l", 1_000))
    bring(engine, "j", logged("m"))
    assert ["g", "m"] == [row.turn_id for row in rows_in(engine)]
    imports.undo(engine, "i")
    assert ["g"] == [row.turn_id for row in rows_in(engine)]


def test_a_record_has_its_row_again_when_the_gateways_was_itself_imported_and_taken_back(
    engine: Engine,
):
    bring(engine, "i", logged("l"))
    bring(engine, "own", seen("g"))
    assert ["g"] == [row.turn_id for row in rows_in(engine)]
    imports.undo(engine, "own")
    assert ["l"] == [row.turn_id for row in rows_in(engine)]


def test_what_is_purged_takes_its_record_along(engine: Engine):
    write(engine, seen("g"))
    bring(engine, "i", logged("l"))
    assert 1 == purging.purge(engine, Target(session="key-s"))
    assert [] == rows_in(engine)
    assert {imports.PURGED: 1} == bring(engine, "j", logged("l")).skipped


def test_purging_what_logs_told_leaves_the_gateways_row_as_it_was(engine: Engine):
    for target in (Target(tenant="logs"), Target(session="log-s")):
        write(engine, seen("g"))
        bring(engine, str(target), logged(str(target)))
        assert 1 == purging.look(engine, target).rows == purging.purge(engine, target)
        assert [seen("g")] == rows_in(engine)
        assert {imports.PURGED: 1} == bring(engine, "j", logged(str(target))).skipped


def test_a_record_goes_with_a_row_that_is_too_old_and_is_not_counted_again(engine: Engine):
    write(engine, seen("g"))
    bring(engine, "i", logged("l"))
    prune(engine, START_MS + 9 * DAY, row_days=3, rollup_days=0)
    with engine.connect() as connection:
        assert not connection.execute(select(merged_records)).all()
    assert {imports.DELETED: 1} == bring(engine, "j", logged("l")).skipped
    assert Undone(0, 1) == imports.undo(engine, "i")


def test_names_that_are_hashed_on_both_sides_still_meet(engine: Engine):
    hashed = Identity(IDENTITY.keys, pseudonymize=True)
    write(engine, seen("g", session=IDENTITY.keys.pseudonym("s")))
    bring(engine, "i", hashed.place(replace(logged("l"), tenant="")))
    assert ["g"] == [row.turn_id for row in rows_in(engine)]


def test_a_mark_that_is_set_while_a_session_is_looked_at_stays(engine: Engine, monkeypatch):
    bring(engine, "i", logged("l"))
    merge = merging.merge

    def slow(engine: Engine, names, **options) -> int:
        changed = merge(engine, names, **options)
        with engine.execution_options(**WRITES).begin() as connection:
            merging.mark(connection, ["s"])
        return changed

    with engine.execution_options(**WRITES).begin() as connection:
        merging.mark(connection, ["s", None])
    monkeypatch.setattr(merging, "merge", slow)
    merging.merge_waiting(engine)
    with engine.connect() as connection:
        assert [("s",)] == connection.execute(select(unmerged_sessions.c.session)).all()


def test_the_sessions_of_the_newest_rows_are_known(engine: Engine):
    write_rows(engine, [seen("g"), seen("h", session=None), seen("j", session="t")])
    assert {"s", "t"} == set(merging.newest_sessions(engine))


# Whatever comes and goes in whatever order

_given = st.fixed_dictionaries(
    {
        "at": st.integers(0, 5).map(lambda n: n * 4_000),
        "response_id": st.sampled_from([None, None, "r", "q"]),
        "model": st.sampled_from("ab"),
        "session": st.sampled_from("sst"),
        "turn_group": st.sampled_from([None, None, "a"]),
    }
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("seen"), st.integers(0, 4), _given),
        st.tuples(st.just("logged"), st.integers(0, 4), _given),
        st.tuples(st.sampled_from(["undo", "again"]), st.integers(0, 4), st.just({})),
    ),
    min_size=2,
    max_size=9,
)


def expected(mine: list[TurnRow], records: list[TurnRow]) -> list[TurnRow]:
    """The ledger that is made of these rows of gateways and records of logs."""
    rows = {row.turn_id: row for row in (*mine, *records)}
    for session in "st":
        some = [[Call.of(row) for row in of if row.session == session] for of in (mine, records)]
        for record, turn_id in matched(*some).items():
            rows[turn_id] = learned(rows[turn_id], rows.pop(record))
    return sorted(rows.values(), key=lambda row: row.turn_id)


@settings(max_examples=12)
@given(_steps)
def test_the_ledger_is_what_its_rows_and_records_make_it_in_any_order(holding, steps):
    engine = holding([])
    mine: dict[str, TurnRow] = {}
    records: dict[str, TurnRow] = {}
    for count, (what, number, values) in enumerate(steps):
        if what == "seen" and (name := f"g{number}") not in mine:
            mine[name] = seen(name, **values)
            write(engine, mine[name])
        elif what == "logged" and (name := f"l{number}") not in records:
            row = logged(name, **values)
            records[name] = replace(row, import_id=f"i{number}-{count}")
            bring(engine, f"i{number}-{count}", row)
        elif what == "again" and f"l{number}" in records:
            assert Counts(known=1) == bring(engine, f"again-{count}", records[f"l{number}"])
        elif what == "undo" and (row := records.pop(f"l{number}", None)) is not None:
            assert row.import_id is not None
            imports.undo(engine, row.import_id)
    assert expected([*mine.values()], [*records.values()]) == rows_in(engine)
