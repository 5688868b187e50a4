from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.analysis.chains import judge_session
from app.judging import judging, verdicts_on
from app.ledger import imports, taking
from app.ledger.database import WRITES
from app.ledger.imports import PURGED, Counts
from app.ledger.rollups import state
from app.ledger.rows import TurnRow
from app.ledger.store import Price
from app.ledger.taking import Concluding
from tests.support.clock import START, ManualClock
from tests.support.importing import stored
from tests.support.judging import session_rows
from tests.support.ledger import everything
from tests.support.rollups import expected_whole, found_whole
from tests.support.rows import START_MS, make_row

on_sqlite = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
CONCLUDING = Concluding(lambda _row: Price(Decimal("0.5"), "list"), verdicts_on)


def take(engine: Engine, *files: list[TurnRow], logged: bool = True) -> list[Counts]:
    if not imports.listed(engine):
        imports.begin(engine, "i", START_MS, [])
    return taking.take(engine, "i", files, Counts(), logged=logged, concluding=CONCLUDING)


def logged(name: str, **known) -> TurnRow:
    return make_row(turn_id=name, source="import:x", **{"session": "s", **known})


def concluded(engine: Engine) -> dict[str, tuple[bool, bool]]:
    """Which rows have a verdict and a price."""
    return {row.turn_id: (row.cache_verdict is not None, row.cost_usd is not None)
            for row in stored(engine)}  # fmt: skip


@settings(max_examples=12)
@given(data=st.data())
def test_in_whatever_pieces_rows_come_their_verdicts_are_those_of_judging_all_at_once(
    holding, data
):
    rows = data.draw(session_rows())
    wanted = dict.fromkeys([row.turn_id for row in rows], (None, None, None))
    for turn_id, judged in judge_session(rows).items():
        wanted[turn_id] = (judged.verdict.value, judged.grade.value, judged.missed)
    engine = holding([])
    judge = judging(engine, ManualClock(START), "one")
    left = list(rows)
    while left:
        size = data.draw(st.integers(1, len(left)))
        take(engine, left[:size])
        left = left[size:]
        if data.draw(st.booleans()):
            judge.run(take_over=True)
    judge.run(take_over=True)
    found = stored(engine)
    assert wanted == {
        row.turn_id: (row.cache_verdict, row.cache_grade, row.missed_tokens) for row in found
    }
    assert expected_whole(found, everything()) == found_whole(engine, everything())


@on_sqlite
def test_what_becomes_of_records_is_counted_for_each_file_and_the_first_one_brings_them(
    engine: Engine,
):
    with engine.execution_options(**WRITES).begin() as connection:
        imports.bury(connection, ["gone"])
    found = take(
        engine,
        [logged("a"), logged("gone"), logged("a")],
        [],
        [logged("a"), logged("b"), logged("gone")],
    )
    assert [Counts(1, 1, Counter({PURGED: 1})), Counts(), Counts(1, 2)] == found
    (kept,) = imports.listed(engine)
    assert (2, 3, {PURGED: 1}) == (kept.rows_new, kept.rows_known, kept.reasons)


@on_sqlite
def test_a_session_that_the_ledger_has_none_of_comes_with_its_verdicts(engine: Engine):
    take(engine, [logged("a"), logged("b", session="other")])
    take(engine, [logged("c")])
    assert {"a": (True, True), "b": (True, True), "c": (False, True)} == concluded(engine)


@on_sqlite
def test_a_session_that_was_taken_back_and_has_come_again_is_not_taken_for_the_one_before(
    engine: Engine,
):
    def at(number: int, cached: int) -> TurnRow:
        known = {"started_at": START_MS + number, "ended_at": START_MS + number, "chain": "c"}
        return logged(f"t{number}", input_tokens=90_000, cached_tokens=cached, **known)

    judge = judging(engine, ManualClock(START), "one")
    take(engine, [at(0, 0)])
    take(engine, [at(1, 0)])
    judge.run()
    imports.undo(engine, "i")
    again = [at(0, 8_960), at(1, 8_960)]
    imports.begin(engine, "j", START_MS, [])
    for rows in (again, [at(2, 0)]):
        taking.take(engine, "j", [rows], Counts(), logged=True, concluding=CONCLUDING)
    judge.run()
    wanted = judge_session([*again, at(2, 0)])
    assert [one.verdict for one in wanted.values()] == [row.cache_verdict for row in stored(engine)]


@on_sqlite
def test_a_session_that_may_have_had_a_beginning_waits_for_its_verdicts(engine: Engine):
    with engine.execution_options(**WRITES).begin() as connection:
        state.put(connection, state.ROWS_FROM, 0)
    take(engine, [logged("a")])
    assert {"a": (False, True)} == concluded(engine)


@on_sqlite
def test_nothing_is_concluded_of_what_a_gateway_has_exported(engine: Engine):
    take(engine, [make_row(turn_id="a")], logged=False)
    assert {"a": (False, False)} == concluded(engine)


@on_sqlite
def test_a_row_that_has_a_price_keeps_it(engine: Engine):
    take(engine, [logged("a", cost_usd=Decimal(2), price_note="of then")])
    assert [(Decimal(2), "of then")] == [(row.cost_usd, row.price_note) for row in stored(engine)]
