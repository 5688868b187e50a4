import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select, update

from app.analysis.chains import judge_session
from app.judging import judging
from app.ledger import judging as module
from app.ledger import retention, store
from app.ledger.database import WRITES
from app.ledger.judging import Judging, NotOurs
from app.ledger.models import turns
from app.ledger.rollups.contribution import DAY
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.clock import START, ManualClock
from tests.support.judging import session_rows
from tests.support.rollups import Model
from tests.support.rows import START_MS, make_row

c = turns.c
CHANGES: list[dict[str, object]] = [
    {"kind": "compaction"}, {"kind": "generation"}, {"input_tokens": 30_000},
    {"session_key": "key-b"}, {"ended_at": START_MS}, {"ended_at": START_MS + 9_000_000},
]  # fmt: skip
Told = dict[str, tuple[str | None, str | None, int | None]]


def told(engine: Engine) -> Told:
    query = select(c.turn_id, c.cache_verdict, c.cache_grade, c.missed_tokens)
    with engine.connect() as connection:
        return {turn_id: tuple(rest) for turn_id, *rest in connection.execute(query)}


def at_once(*sessions: list[TurnRow]) -> Told:
    wanted: Told = {row.turn_id: (None, None, None) for rows in sessions for row in rows}
    for rows in sessions:
        for turn_id, judged in judge_session(rows).items():
            wanted[turn_id] = (judged.verdict.value, judged.grade.value, judged.missed)
    return wanted


def a_judge(engine: Engine, owner: str = "one", clock: ManualClock | None = None):
    return judging(engine, clock or ManualClock(START), owner)


def after(times: int) -> Callable[[], bool]:
    """No so many times, then yes."""
    asked = itertools.count()
    return lambda: next(asked) >= times


def turn(number: int, given: int, cached: int, **changes) -> TurnRow:
    started = START_MS + number * 3_000
    values = {
        "turn_id": f"t{number:06}",
        "session": "s",
        "started_at": started,
        "ended_at": started + 1_000,
        "input_tokens": given,
        "cached_tokens": cached,
        "mode": "ws_full",
        "reason": "connection_lost",
    }
    return make_row(**(values | changes))


def long_session(count: int) -> list[TurnRow]:
    """One dip in seven, and each of them waits for the turn after it."""
    return [
        turn(n, 20_000 + n, 0 if n % 7 == 0 else (20_000 + n - 1) // 128 * 128)
        for n in range(count)
    ]


@pytest.fixture(autouse=True)
def small_transactions(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 3)


@settings(max_examples=40)
@given(data=st.data())
def test_whatever_came_when_the_verdicts_are_those_of_judging_everything_at_once(holding, data):
    rows = data.draw(session_rows())
    engine = holding([])
    one, other = a_judge(engine), a_judge(engine, "two")
    left = list(rows)
    while left:
        size = data.draw(st.integers(1, len(left)))
        write_rows(engine, left[:size])
        left = left[size:]
        match data.draw(st.sampled_from(["not yet", "one", "two", "broken off", "forgotten"])):
            case "one":
                one.run(take_over=True)
            case "two":
                other.run(take_over=True)
            case "broken off":
                one.run(stop=after(2), take_over=True)
            case "forgotten":
                one = a_judge(engine)
    one.run(take_over=True)
    assert at_once(rows) == told(engine)


@settings(max_examples=25)
@given(data=st.data())
def test_rows_that_change_are_judged_as_if_they_had_always_been_so(holding, data):
    rows = data.draw(session_rows())
    engine = holding(rows)
    judge = a_judge(engine)
    judge.run()
    changed = {
        row.turn_id: replace(row, kind=kind, input_tokens=given)
        for row in rows
        if data.draw(st.booleans())
        for kind in [data.draw(st.sampled_from(["generation", "generation", "compaction"]))]
        for given in [data.draw(st.sampled_from([row.input_tokens, 30_000]))]
    }
    with engine.execution_options(**WRITES).begin() as connection:
        with_verdicts = as_judged(connection, changed)
        store.update_rows(connection, with_verdicts)
    judge.run()
    assert at_once([changed.get(row.turn_id, row) for row in rows]) == told(engine)


@settings(max_examples=60)
@given(data=st.data())
def test_what_changes_between_the_transactions_of_one_session_is_not_passed_over(holding, data):
    """Others may add, change, move and delete rows while a long session is read bit by bit."""
    rows = [*data.draw(session_rows(16)), turn(0, 20_000, 0, turn_id="other", session="b")]
    came = data.draw(st.integers(0, 4))
    there = {row.turn_id: row for row in rows[came:]}
    late = rows[:came]
    engine = holding(list(there.values()))
    if data.draw(st.booleans()):
        a_judge(engine).run()  # the verdicts that are there are not to be taken for new ones
    judge = a_judge(engine, "two")

    def act() -> None:
        what = data.draw(st.sampled_from(["nothing", "nothing", "add", "change", "delete"]))
        if what == "add" and late:
            row = late.pop()
            write_rows(engine, [row])
            there[row.turn_id] = row
        elif what in ("change", "delete") and there:
            row = there.pop(data.draw(st.sampled_from(sorted(there))))
            with engine.execution_options(**WRITES).begin() as connection:
                if what == "delete":
                    store.delete_rows(connection, c.turn_id == row.turn_id)
                    return
                there[row.turn_id] = replace(row, **data.draw(st.sampled_from(CHANGES)))
                changed = as_judged(connection, {row.turn_id: there[row.turn_id]})
                store.update_rows(connection, changed)

    judge.run(between=act, take_over=True)
    judge.run()
    key = {row.session_key for row in there.values()}
    parts = [[row for row in there.values() if row.session_key == one] for one in key]
    assert at_once(*parts) == told(engine)


def as_judged(connection, changed: dict[str, TurnRow]) -> list[TurnRow]:
    """The rows as they are to be, with the verdicts that they have."""
    query = select(c.turn_id, c.cache_verdict, c.cache_grade, c.missed_tokens)
    return [
        replace(changed[turn_id], cache_verdict=word, cache_grade=grade, missed_tokens=missed)
        for turn_id, word, grade, missed in connection.execute(query)
        if turn_id in changed
    ]


@settings(max_examples=25)
@given(data=st.data())
def test_what_is_left_after_some_rows_went_is_judged_as_if_they_had_never_been(holding, data):
    rows = data.draw(session_rows())
    engine = holding(rows)
    judge = a_judge(engine)
    judge.run()
    gone = {row.turn_id for row in rows if data.draw(st.booleans())}
    with engine.execution_options(**WRITES).begin() as connection:
        store.delete_rows(connection, c.turn_id.in_(gone))
    judge.run()
    assert at_once([row for row in rows if row.turn_id not in gone]) == told(engine)


def test_a_verdict_that_waits_for_the_next_turn_is_judged_again_when_that_comes(engine: Engine):
    rows = [turn(0, 10_000, 0), turn(1, 12_000, 9_984), turn(2, 14_000, 0)]
    judge = a_judge(engine)
    write_rows(engine, rows)
    judge.run()
    assert ("unknown", "unknown", 11_904) == told(engine)["t000002"]
    write_rows(engine, [turn(3, 15_000, 13_952)])
    judge.run()
    assert ("one_off_full", "possible", 11_904) == told(engine)["t000002"]


def test_of_a_session_that_goes_on_only_what_is_new_is_read(engine: Engine):
    rows = long_session(40)
    judge = a_judge(engine)
    write_rows(engine, rows[:30])
    assert 30 == judge.run()
    write_rows(engine, rows[30:32])
    assert 2 == judge.run()
    assert 0 == judge.run()
    assert 32 == len(told(engine))
    write_rows(engine, rows[32:])
    assert 40 == a_judge(engine).run(take_over=True), "who has just begun reads it once"
    assert at_once(rows) == told(engine)


def test_a_row_amid_others_has_the_session_read_anew(engine: Engine):
    rows = long_session(20)
    judge = a_judge(engine)
    write_rows(engine, rows[:7] + rows[8:])
    judge.run()
    write_rows(engine, [rows[7]])
    assert 20 == judge.run()
    assert at_once(rows) == told(engine)


def test_a_row_that_changes_is_judged_anew_with_those_after_it(engine: Engine):
    rows = long_session(20)
    judge = a_judge(engine)
    write_rows(engine, rows)
    judge.run()
    changed = turn(9, 60_000, 20_096)
    with engine.execution_options(**WRITES).begin() as connection:
        assert 1 == store.update_rows(connection, [changed])
    judge.run()
    assert at_once([*rows[:9], changed, *rows[10:]]) == told(engine)


def test_a_long_piece_of_work_that_is_broken_off_is_begun_again(engine: Engine):
    rows = long_session(30)
    write_rows(engine, rows)
    a_judge(engine).run()
    wrong = {"cache_verdict": "hit", "cache_grade": "proven", "missed_tokens": 0}
    with engine.begin() as connection:
        connection.execute(update(turns).values(**wrong))
        connection.execute(update(turns).where(c.turn_id == "t000000").values(cache_verdict=None))
    a_judge(engine, "two").run(stop=after(5), take_over=True)
    assert at_once(rows) != told(engine), "the first turn has its verdict, and the rest waits"
    a_judge(engine, "three").run(take_over=True)
    assert at_once(rows) == told(engine)


def test_one_process_judges_at_a_time(engine: Engine):
    clock = ManualClock(START)
    write_rows(engine, long_session(10)[:5])
    first, second = a_judge(engine, "one", clock), a_judge(engine, "two", clock)
    first.run()
    write_rows(engine, long_session(10)[5:])
    with pytest.raises(NotOurs):
        second.run()
    clock.advance(module.LEASE_MS / 1_000)
    assert 10 == second.run(), "the first has said nothing for so long"
    write_rows(engine, [turn(11, 30_000, 0)])
    with pytest.raises(NotOurs):
        first.run()
    second.release()
    first.run()
    assert at_once([*long_session(10), turn(11, 30_000, 0)]) == told(engine)


def test_who_loses_its_turn_amid_a_session_begins_it_again(engine: Engine):
    rows = long_session(12)
    rows[6] = turn(6, 60_000, 19_968)
    write_rows(engine, rows[:6] + rows[7:])
    first, second = a_judge(engine, "one"), a_judge(engine, "two")
    calls = itertools.count()

    def another_comes() -> None:
        if next(calls) == 1:
            write_rows(engine, [rows[6]])
            second.run(take_over=True)

    first.run(between=another_comes, take_over=True)
    assert at_once(rows) == told(engine)


def test_what_another_process_has_judged_meanwhile_is_not_remembered(engine: Engine):
    rows = long_session(20)
    first, second = a_judge(engine, "one"), a_judge(engine, "two")
    write_rows(engine, rows[:14])
    first.run()
    changed = turn(13, 20_013, 19_968, model="gpt-5.1")
    with engine.execution_options(**WRITES).begin() as connection:
        store.update_rows(connection, [changed])
    second.run(take_over=True)
    write_rows(engine, rows[14:])
    first.run(take_over=True)
    assert at_once([*rows[:13], changed, *rows[14:]]) == told(engine)


def test_rows_that_bring_a_verdict_are_among_those_that_others_follow(engine: Engine):
    rows = long_session(20)
    rows[13] = turn(13, 60_000, 19_968, cache_verdict="hit", cache_grade="proven", missed_tokens=0)
    judge = a_judge(engine)
    write_rows(engine, rows[:13] + rows[14:17])
    judge.run()
    write_rows(engine, [rows[13]])
    assert 0 == judge.run(), "it waits for nothing"
    write_rows(engine, rows[17:])
    judge.run()
    assert at_once(rows) == told(engine)


def test_a_session_whose_beginning_was_deleted_keeps_what_it_was_told(engine: Engine):
    rows = [
        turn(n, 20_000 + n, 0 if n == 3 else 19_968 * (n > 0), started_at=START_MS + n * DAY // 4,
             ended_at=START_MS + n * DAY // 4 + 1_000)
        for n in range(12)
    ]  # fmt: skip
    write_rows(engine, rows)
    a_judge(engine).run()
    before = told(engine)
    retention.prune(engine, START_MS + 4 * DAY, row_days=2, rollup_days=10)
    late = turn(20, 20_012, 19_968, started_at=START_MS + 3 * DAY, ended_at=START_MS + 3 * DAY + 1)
    write_rows(engine, [late])
    a_judge(engine, "two").run(take_over=True)
    now = told(engine)
    assert len(now) < len(before)
    kept = set(before) & set(now)
    assert {turn_id: before[turn_id] for turn_id in kept} == {t: now[t] for t in kept}


def overtaken(judge: Judging, act: Callable[[], object]) -> list[bool]:
    """Act once, when rows are listed and are not judged yet; returns how often they were listed."""
    new_fold, made = judge.new_fold, []

    def fold_that_is_overtaken(cut: bool):
        made.append(cut)
        if len(made) == 1:
            act()
        return new_fold(cut)

    judge.new_fold = fold_that_is_overtaken
    return made


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    "change", [{}, {"ended_at": START_MS + 60_000}, {"session": "other"}, {"kind": "compaction"}]
)
def test_a_row_that_changes_while_it_is_judged_is_judged_as_it_is_then(engine: Engine, change):
    rows = long_session(3)
    changed = turn(1, 60_000, 19_968, model="gpt-5.1", **change)
    write_rows(engine, rows)
    judge = a_judge(engine)

    def update_row() -> None:
        with engine.execution_options(**WRITES).begin() as connection:
            store.update_rows(connection, [changed])

    overtaken(judge, update_row)
    judge.run()
    left = [rows[0], changed, rows[2]]
    mine = [row for row in left if row.session_key == rows[0].session_key]
    assert at_once(mine, [row for row in left if row not in mine]) == told(engine)


def test_a_compaction_that_comes_amid_a_session_while_it_is_read_bit_by_bit_counts(engine: Engine):
    rows = long_session(9)
    reset = turn(6, 0, 0, turn_id="reset", kind="compaction", ended_at=START_MS + 20_000)
    write_rows(engine, rows)
    came = [reset]
    judge = a_judge(engine)
    judge.run(between=lambda: write_rows(engine, [came.pop()]) if came else None)
    judge.run()
    assert at_once([*rows, reset]) == told(engine)
    assert at_once(rows)["t000007"] != told(engine)["t000007"]


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_turn_that_goes_while_rows_are_listed_is_judged_no_more(engine: Engine):
    rows = long_session(5)
    write_rows(engine, rows)
    judge = a_judge(engine)

    def delete_the_last() -> None:
        with engine.execution_options(**WRITES).begin() as connection:
            store.delete_rows(connection, c.turn_id == rows[-1].turn_id)

    overtaken(judge, delete_the_last)
    judge.run()
    assert at_once(rows[:-1]) == told(engine)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_who_judges_gives_way_to_who_holds_rows_for_long(engine: Engine, monkeypatch):
    """They may wait for each other in a circle, and only who judges knows how to begin again."""
    monkeypatch.setattr(module, "TRIES", 1)
    rows = long_session(3)
    write_rows(engine, rows)
    judge = a_judge(engine)
    with engine.begin() as others:
        others.execute(select(c.id).where(c.turn_id == rows[2].turn_id).with_for_update())
        assert 0 == judge.run()
    judge.run()
    assert at_once(rows) == told(engine)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_what_came_while_rows_were_listed_is_judged_with_them(engine: Engine):
    rows = long_session(3)
    reset = replace(turn(9, 0, 0, kind="compaction"), started_at=START_MS + 2_000,
                    ended_at=START_MS + 2_500)  # fmt: skip
    write_rows(engine, rows[:2])
    a_judge(engine).run()
    write_rows(engine, rows[2:])
    judge = a_judge(engine, "two")
    overtaken(judge, lambda: write_rows(engine, [reset]))
    judge.run(take_over=True)
    assert at_once([*rows, reset]) == told(engine)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_gateways_that_count_breaks_of_the_same_group_do_not_hold_up_judging(engine: Engine):
    rows = [turn(n, 20_000 + n, 0, fingerprint="f1") for n in range(3)]
    other = turn(1, 20_000, 0, turn_id="o", session="t", fingerprint="f1")
    write_rows(engine, rows)
    judge = a_judge(engine)
    listed = overtaken(judge, lambda: write_rows(engine, [other]))
    judge.run()
    judge.run()
    assert 2 == len(listed), "each session once"
    assert at_once(rows, [other]) == told(engine)
    with Model(engine) as model:
        counted = model.stored()
        model.rebuild([])
        assert model.stored() == counted


def test_many_sessions_are_judged_each_by_itself(engine: Engine):
    sessions = [
        [turn(n, 20_000, 0, turn_id=f"{name}{n}", session=name) for n in range(4)]
        for name in "abcde"
    ]
    judge = a_judge(engine)
    judge.remembered.turns = 25  # of two of them
    for part in (slice(0, 2), slice(2, 4)):
        write_rows(engine, [row for rows in sessions for row in rows[part]])
        judge.run()
    assert at_once(*sessions) == told(engine)
    assert 2 == len(judge.remembered)
