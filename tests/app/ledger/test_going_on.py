from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, select

from app.analysis.chains import judge_session
from app.judging import judging
from app.ledger import going_on, store
from app.ledger import judging as module
from app.ledger.database import WRITES
from app.ledger.going_on import Known, Remembered
from app.ledger.inserting import insert_new
from app.ledger.models import turns
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.clock import START, ManualClock
from tests.support.judging import session_rows
from tests.support.rollups import Model
from tests.support.rows import START_MS, make_row

c = turns.c
VERDICT = ("cache_verdict", "cache_grade", "missed_tokens")
NOW = 1_000_000
END = START_MS + 100_000_000


def turn(number: int, session: str = "a", **changes) -> TurnRow:
    started = START_MS + number * 3_000
    values = {
        "turn_id": f"{session}{number:03}",
        "session": session,
        "started_at": started,
        "ended_at": started + 1_000,
        "input_tokens": 20_000 + number,
        "cached_tokens": 19_968 if number % 7 else 0,
        "mode": "ws_full",
        "reason": "connection_lost",
    }
    return make_row(**(values | changes))


def told(engine: Engine) -> dict[str, tuple]:
    with engine.connect() as connection:
        return {
            turn_id: tuple(rest)
            for turn_id, *rest in connection.execute(
                select(c.turn_id, *(c[name] for name in VERDICT))
            )
        }


def at_once(rows: list[TurnRow]) -> dict[str, tuple]:
    wanted = {row.turn_id: (None, None, None) for row in rows}
    for session in {row.session_key for row in rows}:
        mine = [row for row in rows if row.session_key == session]
        for turn_id, one in judge_session(mine).items():
            wanted[turn_id] = (one.verdict.value, one.grade.value, one.missed)
    return wanted


def a_judge(engine: Engine, owner: str = "one"):
    return judging(engine, ManualClock(START), owner)


def breaks_are_those_of_the_rows(engine: Engine) -> None:
    with Model(engine) as model:
        counted = model.stored()
        model.rebuild([])
        assert model.stored() == counted


# What is judged


@pytest.fixture
def small_transactions(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 3)


@pytest.mark.usefixtures("small_transactions")
@settings(max_examples=40)
@given(data=st.data())
def test_whatever_happens_to_sessions_their_next_turns_are_judged_as_if_nothing_was_remembered(
    holding, data
):
    """Each may go on, have rows amid others, lose some or all of them, change, and give some to
    another; rows may bring verdicts, right or wrong."""
    rows = [
        replace(
            row, turn_id=f"{name}{row.turn_id}", session=name, session_key=f"key-{name}",
            fingerprint=data.draw(st.sampled_from([None, "f"])),
        )
        for name in "abc"
        for row in data.draw(session_rows(8))
    ]  # fmt: skip
    left = data.draw(st.permutations(rows))
    if data.draw(st.booleans()):
        left = sorted(left, key=lambda row: row.ended_at)
    engine = holding([])
    one, other = a_judge(engine), a_judge(engine, "two")
    there: dict[str, TurnRow] = {}
    acts = ["write"] * 4 + ["one"] * 4 + ["other", "delete", "change", "bring"]
    for act in data.draw(st.lists(st.sampled_from(acts), max_size=14)):
        if act in ("write", "bring") and left:
            size = data.draw(st.integers(1, 4))
            some, left = left[:size], left[size:]
            verdict = dict(zip(VERDICT, ("hit", "proven", 0), strict=True))
            brought = [replace(row, **verdict) if row.kind == "generation" else row for row in some]
            write_rows(engine, some if act == "write" else brought)
            there |= {row.turn_id: row for row in some}
        elif act == "one":
            one.run(take_over=True)
        elif act == "other":
            other.run(take_over=True)
        elif there:
            some = data.draw(st.sets(st.sampled_from(sorted(there))))
            if act == "delete":
                with engine.execution_options(**WRITES).begin() as connection:
                    store.delete_rows(connection, c.turn_id.in_(some))
                there = {name: row for name, row in there.items() if name not in some}
            else:
                change = data.draw(
                    st.sampled_from(
                        [
                            {"kind": "compaction"},
                            {"kind": "generation"},
                            {"input_tokens": 30_000},
                            {"session_key": "key-b"},
                            {"ended_at": START_MS + 9_000_000},
                        ]
                    )
                )
                changed = {name: replace(there[name], **change) for name in some}
                with engine.execution_options(**WRITES).begin() as connection:
                    store.update_rows(connection, as_judged(connection, changed))
                there |= changed
    write_rows(engine, left)
    one.run(take_over=True)
    # What brought a wrong verdict waits for nothing: with the next turn it is seen.
    last = [turn(0, name, turn_id=f"{name}z", started_at=END, ended_at=END) for name in "abc"]
    write_rows(engine, last)
    one.run(take_over=True)
    assert at_once([*there.values(), *left, *last]) == told(engine)
    breaks_are_those_of_the_rows(engine)


def as_judged(connection, changed: dict[str, TurnRow]) -> list[TurnRow]:
    query = select(c.turn_id, *(c[name] for name in VERDICT)).where(c.turn_id.in_(changed))
    return [
        replace(changed[turn_id], **dict(zip(VERDICT, verdict, strict=True)))
        for turn_id, *verdict in connection.execute(query)
    ]


def test_many_sessions_that_go_on_are_judged_by_a_few_statements(engine: Engine):
    names = [f"s{n:02}" for n in range(40)]
    judge = a_judge(engine)
    write_rows(engine, [turn(n, name) for name in names for n in range(5)])
    judge.run()
    write_rows(engine, [turn(5, name) for name in names])
    statements = []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert 40 == judge.run()
    assert 20 > len(statements)
    assert None not in {verdict for verdict, *_ in told(engine).values()}


@pytest.mark.usefixtures("small_transactions")
def test_sessions_with_more_rows_than_one_transaction_reads_go_on_all_the_same(engine: Engine):
    judge = a_judge(engine)
    write_rows(engine, [turn(0, name) for name in "ab"])
    judge.run()
    write_rows(engine, [turn(n, name) for n in range(1, 5) for name in "ab"])
    assert 8 == judge.run(), "none is read again"


def test_sessions_that_begin_while_others_go_on_are_judged_with_them(engine: Engine):
    judge = a_judge(engine)
    write_rows(engine, [turn(0)])
    judge.run()
    names = [f"s{n:02}" for n in range(40)]
    rows = [turn(n, name) for name in ["a", *names] for n in (1, 2)]
    write_rows(engine, rows)
    statements = []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert 82 == judge.run()
    assert 20 > len([one for one in statements if "FROM turns" in one])
    assert at_once([turn(0), *rows]) == told(engine)


def test_a_session_that_is_not_remembered_is_not_taken_for_a_new_one(engine: Engine):
    rows = [turn(n, name) for name in "ab" for n in range(4)]
    write_rows(engine, rows)
    a_judge(engine).run()
    judge = a_judge(engine, "two")
    write_rows(engine, [turn(4)])
    judge.run(take_over=True)
    more = [turn(4, "b"), turn(5)]
    write_rows(engine, more)
    assert 6 == judge.run()
    assert at_once([*rows, turn(4), *more]) == told(engine)


def test_of_a_session_that_goes_on_no_old_row_is_read(engine: Engine):
    judge = a_judge(engine)
    write_rows(engine, [turn(n) for n in range(9)])
    assert 9 == judge.run()
    for n in range(9, 12):
        write_rows(engine, [turn(n)])
        assert 1 == judge.run()
    assert at_once([turn(n) for n in range(12)]) == told(engine)


@pytest.mark.parametrize("change", [None, {"kind": "compaction"}, {"session_key": "other"}])
def test_a_session_that_lost_all_its_turns_begins_anew(engine: Engine, change):
    judge = a_judge(engine)
    rows = [turn(0), turn(1), turn(2, kind="warmup")]
    write_rows(engine, rows)
    judge.run()
    changed = [replace(row, **(change or {})) for row in rows[:2]]
    with engine.execution_options(**WRITES).begin() as connection:
        if change is None:
            store.delete_rows(connection, c.kind == "generation")
        else:
            store.update_rows(connection, changed)
    write_rows(engine, [turn(3)])
    judge.run()
    left = [*([] if change is None else changed), rows[2], turn(3)]
    assert at_once(left) == told(engine)
    assert ("shared_prefix", "proven", 0) == told(engine)["a003"]


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("late", [{}, {"kind": "compaction"}])
def test_rows_that_others_commit_later_than_greater_ids_are_not_overlooked(engine: Engine, late):
    judge = a_judge(engine)
    write_rows(engine, [turn(0), turn(0, "b")])
    judge.run()
    with engine.execution_options(**WRITES).begin() as connection:
        insert_new(connection, [turn(1, **late)])  # no sums: they would have the others wait
        write_rows(engine, [turn(1, "b")])
        assert 1 == judge.run()
    read = judge.run()
    assert read == (0 if late else 1)
    write_rows(engine, [turn(14)])
    judge.run()
    rows = [turn(0), turn(1, **late), turn(14), turn(0, "b"), turn(1, "b")]
    assert at_once(rows) == told(engine)


@pytest.mark.parametrize("change", [None, {"session_key": "key-b"}])
def test_rows_that_go_before_they_are_judged_are_judged_where_they_are_then(
    engine: Engine, monkeypatch, change
):
    judge = a_judge(engine)
    first = [turn(0), turn(0, "b", input_tokens=90_000)]
    write_rows(engine, first)
    judge.run()
    rows = [turn(n, cached_tokens=0) for n in (14, 15)]
    write_rows(engine, rows)
    moved = [replace(row, **(change or {})) for row in rows]
    found = going_on.news

    def and_they_go(*given):
        told = found(*given)
        if told is not None:
            with engine.execution_options(**WRITES).begin() as connection:
                if change is None:
                    store.delete_rows(connection, c.turn_id.in_([row.turn_id for row in rows]))
                else:
                    store.update_rows(connection, moved)
        return told

    monkeypatch.setattr(going_on, "news", and_they_go)
    judge.run()
    left = [*first, *([] if change is None else moved)]
    assert at_once(left) == told(engine)


# What is remembered


def known(turns: int) -> Known:
    return Known(None, turns, turns, (), turns)


def held(sessions: Remembered) -> list[str]:
    return sessions.sessions()


def test_sessions_are_remembered_up_to_so_many_turns():
    sessions = Remembered(30)
    for n, name in enumerate("abc"):
        sessions.put(name, known(2), NOW + n * going_on.IDLE_MS)
    assert ["a", "b", "c"] == held(sessions)
    sessions.put("d", known(2), NOW + 9 * going_on.IDLE_MS)
    assert ["b", "c", "d"] == held(sessions)


def test_a_session_that_has_been_still_for_long_is_forgotten():
    sessions = Remembered(1_000)
    sessions.put("a", known(2), NOW)
    sessions.put("b", known(2), NOW + going_on.STILL_MS - 1)
    assert ["a", "b"] == held(sessions)
    sessions.put("c", known(2), NOW + going_on.STILL_MS)
    assert ["b", "c"] == held(sessions)


def test_of_too_many_that_go_on_those_stay_that_are_there():
    sessions = Remembered(20)
    for _ in range(3):
        for name in "abc":
            if name in sessions:
                sessions.take(name)
            sessions.put(name, known(2), NOW)
    assert ["a", "b"] == held(sessions)


def test_a_long_session_takes_the_room_of_what_is_kept_of_it():
    sessions = Remembered(1_000)
    sessions.put("a", known(100_000), NOW)
    sessions.put("b", known(400), NOW)
    assert ["a", "b"] == held(sessions)
    sessions.forget("a")
    sessions.put("c", known(500), NOW)
    assert ["b", "c"] == held(sessions)
    sessions.clear()
    sessions.put("d", known(900), NOW)
    assert ["d"] == held(sessions)
