import traceback
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine, event

from app.errors import LedgerError
from app.ledger import queries, store
from app.ledger.database import WRITES
from app.ledger.models import turns
from app.ledger.rollups import state as states
from app.ledger.rows import TurnRow
from tests.support.importing import stored
from tests.support.ledger import everything
from tests.support.rollups import expected_whole, found_whole, turns_in
from tests.support.rows import START_MS, make_row


@pytest.fixture
def writing(engine: Engine) -> Engine:
    return engine.execution_options(**WRITES)


def holds(engine: Engine, rows) -> None:
    assert len(rows) == turns_in(engine)
    assert expected_whole(rows, everything()) == found_whole(engine, everything())


def test_only_new_rows_are_inserted_and_told(writing: Engine):
    first, second = make_row(turn_id="a"), make_row(turn_id="b")
    with writing.begin() as connection:
        assert [first] == store.insert_rows(connection, [first])
        assert [second] == store.insert_rows(
            connection, [make_row(turn_id="a", model="x"), second, make_row(turn_id="b", model="y")]
        )
        assert [] == store.insert_rows(connection, [])
    holds(writing, [first, second])


def test_a_changed_row_is_counted_as_it_is_now(writing: Engine):
    before = [make_row(turn_id="a"), make_row(turn_id="b")]
    after = make_row(turn_id="b", mode="ws_full", session="other", started_at=START_MS + 9)
    with writing.begin() as connection:
        store.insert_rows(connection, before)
        assert 1 == store.update_rows(connection, [before[0], after, make_row(turn_id="not there")])
    holds(writing, [before[0], after])
    assert after == queries.one(writing, "b")


def test_a_deleted_row_has_never_been(writing: Engine):
    rows = [make_row(model=model) for model in "aab"]
    told: list[int] = []
    with writing.begin() as connection:
        store.insert_rows(connection, rows)
        assert 2 == store.delete_rows(connection, turns.c.model == "a", progress=told.append)
    holds(writing, rows[2:])
    assert [2] == told


def test_a_change_that_fails_changes_nothing(writing: Engine):
    row = make_row()

    def fail() -> None:
        with writing.begin() as connection:
            store.insert_rows(connection, [row])
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fail()
    holds(writing, [])


def test_nothing_is_taken_away_from_rollups_that_are_not_complete(writing: Engine):
    row = make_row()
    with writing.begin() as connection:
        store.insert_rows(connection, [row])
        states.put(connection, states.MISSING, 1)
    with pytest.raises(LedgerError, match="warmline db rollup"), writing.begin() as connection:
        store.delete_rows(connection, turns.c.turn_id == row.turn_id)
    holds(writing, [row])


def test_a_refusal_keeps_no_frames_of_the_refusals_before(writing: Engine):
    with writing.begin() as connection:
        store.insert_rows(connection, [make_row()])
        states.put(connection, states.MISSING, 1)
    depths = []
    for _ in range(2):
        with pytest.raises(LedgerError) as caught, writing.begin() as connection:
            store.delete_rows(connection, turns.c.turn_id.is_not(None))
        depths.append(len(list(traceback.walk_tb(caught.value.__traceback__))))
    assert depths[0] == depths[1]


def test_rows_that_are_pruned_stay_in_the_figures(writing: Engine):
    rows = [make_row(started_at=START_MS - n) for n in range(3)]
    with writing.begin() as connection:
        store.insert_rows(connection, rows)
        assert 2 == store.prune_rows(connection, START_MS, limit=2)
        assert 0 == store.prune_rows(connection, START_MS, limit=2)
    assert 1 == turns_in(writing)
    assert 3 == found_whole(writing, everything())["total"]


VERDICT = {"cache_verdict": "hit", "cache_grade": "proven", "missed_tokens": 0}


def test_a_verdict_goes_into_its_row_and_into_nothing_else(writing: Engine):
    rows = [make_row(turn_id=name) for name in "ab"]
    _insert(writing, rows)
    with writing.begin() as connection:
        store.put_verdicts(connection, {"b": store.Verdict("idle", "likely", 7), "gone": _HIT})
        store.put_verdicts(connection, {}, revised={"a": _HIT, "b": _HIT})
    told = dict(zip(("cache_verdict", "cache_grade", "missed_tokens"), _HIT, strict=True))
    assert [rows[0], replace(rows[1], **told)] == stored(writing)


def test_a_verdict_is_forgotten_when_its_ground_changes(writing: Engine):
    row = make_row(**VERDICT)
    _insert(writing, [row])
    bare = dict.fromkeys(VERDICT)
    for changes, kept in (
        ({"http_status": 200}, VERDICT),
        ({"cached_tokens": 800, "cache_verdict": "idle"}, VERDICT | {"cache_verdict": "idle"}),
        ({"cached_tokens": 700}, bare),
    ):
        row = replace(row, **changes)
        with writing.begin() as connection:
            store.update_rows(connection, [row])
        assert [replace(row, **kept)] == stored(writing)


def test_a_price_is_forgotten_when_its_ground_changes(writing: Engine):
    row = make_row(cost_usd=Decimal(1), price_note="list_price")
    _insert(writing, [row])
    for changes, usd in (
        ({"http_status": 200}, Decimal(1)),
        ({"cached_tokens": 700, "cost_usd": Decimal(2)}, Decimal(2)),
        ({"cached_tokens": 800}, None),
    ):
        row = replace(row, **changes)
        with writing.begin() as connection:
            store.update_rows(connection, [row])
        found = stored(writing)
        assert [(usd, usd and "list_price")] == [(one.cost_usd, one.price_note) for one in found]


def test_rows_that_have_no_price_wait_for_one(writing: Engine):
    rows = [make_row(), make_row(kind="compaction", status="failed"), make_row()]
    given = make_row(cost_usd=Decimal("0.5"))
    _insert(writing, [*rows, given])
    told = []

    def price(row: TurnRow) -> store.Price:
        told.append(row.input_tokens)
        return store.Price(Decimal("0.000000001") if len(told) == 1 else None, "a note")

    for waiting in (3, 0):
        with writing.begin() as connection:
            assert waiting == store.put_prices(connection, price)
    assert 3 == len(told)
    assert [
        (Decimal("1E-9"), "a note"),
        (None, "a note"),
        (None, "a note"),
        (given.cost_usd, None),
    ] == [(row.cost_usd, row.price_note) for row in stored(writing)]


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_rows_that_another_has_priced_meanwhile_are_left_alone(writing: Engine):
    _insert(writing, [make_row()])
    seen = []

    @event.listens_for(writing, "before_cursor_execute")
    def meanwhile(_connection, _cursor, statement, *_more):
        if "FOR UPDATE" in statement and "price_note IS NULL" in statement:
            seen.append(statement)
            with writing.begin() as another:
                another.execute(turns.update().values(price_note="the other's"))

    with writing.begin() as connection:
        assert 1 == store.put_prices(connection, lambda _row: store.Price(None, "a note"))
    assert 1 == len(seen)
    assert ["the other's"] == [row.price_note for row in stored(writing)]


def test_nothing_is_priced_before_the_rollups_are_complete(writing: Engine):
    _insert(writing, [make_row()])
    with writing.begin() as connection:
        states.put(connection, states.MISSING, 1)
    with writing.begin() as connection:
        assert 0 == store.put_prices(connection, lambda _row: store.Price(None, "a note"))


def test_what_is_left_of_a_session_waits_for_a_new_verdict(writing: Engine):
    rows = [make_row(turn_id=name, session=name[0], **VERDICT) for name in ("a1", "a2", "b1")]
    _insert(writing, rows)
    with writing.begin() as connection:
        store.delete_rows(connection, turns.c.turn_id == "a2")
    assert [replace(rows[0], **dict.fromkeys(VERDICT)), rows[2]] == stored(writing)


def test_a_row_that_goes_to_another_session_has_both_judged_anew(writing: Engine):
    rows = [make_row(turn_id=name, session="a", **VERDICT) for name in ("1", "2")]
    moved = replace(rows[1], session_key="key-b")
    _insert(writing, rows)
    with writing.begin() as connection:
        store.update_rows(connection, [moved])
    bare = dict.fromkeys(VERDICT)
    assert [replace(rows[0], **bare), replace(moved, **bare)] == stored(writing)


def test_what_has_no_verdict_and_comes_late_has_later_turns_judged_anew(writing: Engine):
    row = make_row(turn_id="a", **VERDICT)
    _insert(writing, [row])
    late = {"kind": "compaction", "started_at": START_MS - 9_000}
    _insert(writing, [make_row(turn_id="b", started_at=START_MS + 9_000, kind="compaction")])
    _insert(writing, [make_row(turn_id="c", session="other", **late)])
    assert "hit" == stored(writing)[0].cache_verdict
    one = make_row(turn_id="d", **late)
    _insert(writing, [one])
    assert replace(row, **dict.fromkeys(VERDICT)) == stored(writing)[0]
    with writing.begin() as connection:
        store.put_verdicts(connection, {"a": _HIT})
        store.update_rows(connection, [replace(one, ended_at=one.ended_at + 1)])
    assert stored(writing)[0].cache_verdict is None


def test_all_of_a_session_that_come_late_together_are_asked_about_once(writing: Engine):
    asked = []
    looking = "cache_verdict IS NOT NULL"
    event.listen(writing, "before_cursor_execute", lambda *told: asked.append(looking in told[2]))
    rows = [make_row(kind="compaction", session=name) for name in "ab" * 20]
    _insert(writing, [*rows, make_row(session="c")])
    assert 2 == sum(asked)


def test_of_all_that_come_late_one_alone_says_which_turns_are_later(writing: Engine):
    judged = make_row(turn_id="a", ended_at=START_MS + 100, **VERDICT)
    _insert(writing, [judged])

    def late(started: int, ended: int) -> TurnRow:
        times = {"started_at": START_MS + started, "ended_at": START_MS + ended}
        return make_row(turn_id="b", kind="compaction", **times)

    begins_too_late, ends_too_late = late(store.LATE_MS + 1, 50), late(0, 101)
    _insert(writing, [begins_too_late, replace(ends_too_late, turn_id="c")])
    assert "hit" == stored(writing)[0].cache_verdict
    both = [replace(begins_too_late, turn_id="d"), replace(late(0, 100), turn_id="e")]
    _insert(writing, [*both, replace(ends_too_late, turn_id="f")])
    assert stored(writing)[0].cache_verdict is None


def test_any_number_may_come_late_each_within_the_other(writing: Engine):
    _insert(writing, [make_row(turn_id="a", started_at=START_MS - 9, **VERDICT)])
    nested = [
        make_row(kind="compaction", started_at=START_MS + n, ended_at=START_MS + 5_000 - n)
        for n in range(1_000)
    ]
    _insert(writing, nested)
    assert "hit" == _verdict(writing, "a")
    _insert(writing, [make_row(turn_id="b", ended_at=START_MS + 4_001, **VERDICT)])
    _insert(writing, [replace(row, turn_id=f"again-{n}") for n, row in enumerate(nested)])
    assert _verdict(writing, "b") is None


def _verdict(writing: Engine, turn_id: str) -> str | None:
    return next(row.cache_verdict for row in stored(writing) if row.turn_id == turn_id)


def _insert(writing: Engine, rows: list[TurnRow]) -> None:
    with writing.begin() as connection:
        store.insert_rows(connection, rows)


_HIT = store.Verdict("hit", "proven", 0)
