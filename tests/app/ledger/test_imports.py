from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.errors import AppError
from app.ledger import imports, purging, store, taking
from app.ledger.database import WRITES
from app.ledger.imports import DELETED, PURGED, TOO_OLD, Counts, Undone
from app.ledger.models import turns
from app.ledger.purging import Target
from app.ledger.retention import prune
from app.ledger.rollups.contribution import DAY
from app.ledger.rows import TurnRow
from app.ledger.store import delete_rows
from app.ledger.writer import write_rows
from tests.support import rollups
from tests.support.importing import ALL, stored, unjudged
from tests.support.ledger import everything
from tests.support.rollups import FIRST, expected_whole, found_whole, turns_in
from tests.support.rows import START_MS, make_row

NOW = START_MS + DAY


def take(engine: Engine, import_id: str, rows, *, so_far=None, again=False) -> Counts:
    if not any(known.id == import_id for known in imports.listed(engine)):
        imports.begin(engine, import_id, NOW, ["a.csv"])
    return taking.take(engine, import_id, [rows], so_far or Counts(), again=again)[0]


def purge(engine: Engine, row) -> None:
    with engine.execution_options(**WRITES).begin() as connection:
        delete_rows(connection, turns.c.turn_id == row.turn_id)
        imports.bury(connection, [row.turn_id])


def test_what_is_new_is_taken_and_told_as_of_its_import(engine: Engine):
    known, new = make_row(turn_id="known", model="a"), make_row(turn_id="new")
    write_rows(engine, [known])
    again = make_row(turn_id="known", model="b")
    assert Counts(new=1, known=2) == take(engine, "i", [again, new, new])
    found = stored(engine)
    assert [("known", "a", None), ("new", new.model, "i")] == [
        (row.turn_id, row.model, row.import_id) for row in found
    ]
    assert expected_whole(found, everything()) == found_whole(engine, everything())
    assert Counts(known=2) == take(engine, "j", [again, new])


def test_counts_are_kept_with_each_batch(engine: Engine):
    take(engine, "i", [make_row()], so_far=Counts(5, 2, Counter({"is no CSV": 3})))
    (found,) = imports.listed(engine)
    assert ("running", 6, 2, 3, {"is no CSV": 3}) == (
        found.state,
        found.rows_new,
        found.rows_known,
        found.skipped,
        found.reasons,
    )
    imports.finish(engine, "i", imports.DONE, now=NOW + 5, counts=Counts(7), formats=["csv"])
    assert ("done", NOW + 5, 7, "csv", "a.csv") == (
        (found := imports.one(engine, "i")).state,
        found.ended_at,
        found.rows_new,
        found.formats,
        found.names,
    )


def test_the_newest_imports_are_listed_first(engine: Engine):
    for number in range(3):
        imports.begin(engine, f"i{number}", NOW + number, ["x" * 300, "y" * 300])
    assert ["i2", "i1"] == [found.id for found in imports.listed(engine, 2)]
    assert 512 == len(imports.one(engine, "i0").names)


def test_undoing_takes_away_what_was_added_and_nothing_else(engine: Engine):
    mine = [make_row(turn_id=f"t{n}") for n in range(3)]
    write_rows(engine, mine)
    theirs = [make_row(turn_id=f"u{n}", started_at=START_MS - n * DAY) for n in range(3)]
    other = make_row(turn_id="v")
    take(engine, "i", [*mine, *theirs])
    take(engine, "j", [other])
    told: list[tuple[int, int]] = []
    assert Undone(3, 0) == imports.undo(engine, "i", lambda done, of: told.append((done, of)))
    assert [(0, 3), (3, 3)] == told
    left = stored(engine)
    assert [*mine, other] == [row if row.import_id is None else other for row in left]
    assert expected_whole(left, everything()) == found_whole(engine, everything())
    assert "undone" == imports.one(engine, "i").state
    assert Undone(0, 0) == imports.undo(engine, "i")
    assert Counts(new=3, known=4) == take(engine, "k", [*mine, *theirs, other])


def test_an_import_that_is_not_there_is_told(engine: Engine):
    with pytest.raises(AppError, match="There is no import 'x'"):
        imports.undo(engine, "x")


def test_a_row_that_retention_has_deleted_is_not_counted_again(engine: Engine):
    old, new = make_row(started_at=START_MS - 9 * DAY), make_row()
    take(engine, "i", [old, new])
    prune(engine, NOW, row_days=3, rollup_days=0)
    assert Counts(known=1, skipped=Counter({DELETED: 1})) == take(engine, "j", [old, new])
    assert Undone(1, 1) == imports.undo(engine, "i"), "what it added to the sums stays"
    counts = take(engine, "k", [old, new])
    assert Counts(new=1, skipped=Counter({DELETED: 1})) == counts
    assert 1 == turns_in(engine)


def test_a_row_from_before_the_time_that_is_kept_may_be_counted_already(engine: Engine):
    old = make_row(started_at=START_MS - 9 * DAY)
    write_rows(engine, [old])
    prune(engine, NOW, row_days=3, rollup_days=0)
    other = make_row(started_at=START_MS - 9 * DAY)
    assert Counts(skipped=Counter({TOO_OLD: 2})) == take(engine, "i", [old, other])


def test_what_was_purged_stays_purged_unless_it_is_asked_for(engine: Engine):
    mine, theirs, other = (make_row(turn_id=name) for name in "mto")
    write_rows(engine, [mine])
    take(engine, "i", [theirs])
    for row in (mine, theirs):
        purge(engine, row)
    rows = [mine, theirs, other]
    assert Counts(new=1, skipped=Counter({PURGED: 2})) == take(engine, "j", rows)
    assert Undone(0, 0) == imports.undo(engine, "i")
    assert Counts(known=1, skipped=Counter({PURGED: 2})) == take(engine, "j", rows)
    assert Counts(new=2, known=1) == take(engine, "k", rows, again=True)
    assert Undone(2, 0) == imports.undo(engine, "k")


def test_tenants_that_the_ledger_had_rows_of_are_known(engine: Engine):
    assert not imports.has_other_tenants(engine, [])
    write_rows(engine, [make_row(tenant="a")])
    assert {"a"} == imports.tenants_known(engine, ["a", "b"])
    assert (True, False) == (
        imports.has_other_tenants(engine, ["b"]),
        imports.has_other_tenants(engine, ["a"]),
    )


def test_a_key_tells_nothing_of_its_row():
    assert 16 == len(imports.key_of("turn_1"))
    assert b"turn" not in imports.key_of("turn_1")


class Naive:
    """A ledger, and beside it what its rows and sums should be, in plain Python."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rows: dict[str, TurnRow] = {}
        self.summed: dict[str, TurnRow] = {}
        """Rows that retention has deleted."""
        self.keys: dict[str, str | None] = {}
        self.since: int | None = None
        self.imports = 0

    def write(self, some: list[TurnRow], _number: int) -> None:
        new = [row for row in some if row.turn_id not in self.rows | self.summed]
        write_rows(self.engine, new)
        for row in new:
            self.rows.setdefault(row.turn_id, row)

    def take(self, some: list[TurnRow], _number: int, *, again: bool = False) -> None:
        self.imports += 1
        name = f"i{self.imports}"
        wanted = {row.turn_id: row for row in reversed(some)}
        new = {
            turn_id: replace(row, import_id=name)
            for turn_id, row in wanted.items()
            if turn_id not in self.rows
            and (turn_id not in self.keys or (again and self.keys[turn_id] is None))
            and (self.since is None or row.started_at >= self.since)
        }
        counts = take(self.engine, name, some, again=again)
        assert (len(new), len(some)) == (
            counts.new,
            counts.new + counts.known + counts.skipped.total(),
        )
        self.rows |= new
        self.keys |= dict.fromkeys(new, name)

    def take_again(self, some: list[TurnRow], number: int) -> None:
        self.take(some, number, again=True)

    def undo(self, _some: list[TurnRow], number: int) -> None:
        if self.imports:
            name = f"i{number % self.imports + 1}"
            mine = [turn_id for turn_id, row in self.rows.items() if row.import_id == name]
            kept = [turn_id for turn_id in self.summed if self.keys.get(turn_id) == name]
            undone = imports.undo(self.engine, name)
            assert len(mine) == undone.rows
            assert undone.kept >= len(kept), "of what was purged meanwhile the keys stay as well"
            for turn_id in mine:
                del self.rows[turn_id], self.keys[turn_id]

    def purge(self, _some: list[TurnRow], number: int) -> None:
        tenant = "ab"[number % 2]
        purging.purge(self.engine, Target(tenant=tenant))
        mine = {turn_id for turn_id, row in self.rows.items() if row.tenant == tenant}
        self.keys |= dict.fromkeys(mine)
        self.rows = {name: row for name, row in self.rows.items() if name not in mine}
        self.summed = {name: row for name, row in self.summed.items() if row.tenant != tenant}

    def prune(self, _some: list[TurnRow], number: int) -> None:
        cut = FIRST + number * DAY
        prune(self.engine, cut + DAY, row_days=1, rollup_days=0)
        if any(row.started_at < cut for row in self.rows.values()):
            self.since = max(cut, self.since or 0)
        if self.since is not None:
            old = {name: row for name, row in self.rows.items() if row.started_at < self.since}
            self.summed |= old
            self.rows = {name: row for name, row in self.rows.items() if name not in old}


@settings(max_examples=10)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "take", "take", "take_again", "undo", "purge", "prune"]),
            st.lists(rollups.rows(), max_size=5),
            st.integers(0, 4),
        ),
        max_size=10,
    )
)
def test_nothing_is_counted_twice_whatever_comes_and_goes(holding, steps):
    ledger = Naive(holding([]))
    for name, some, number in steps:
        getattr(ledger, name)(some, number)
    found = found_whole(ledger.engine, ALL)
    wanted = expected_whole([*ledger.rows.values(), *ledger.summed.values()], ALL)
    assert unjudged(ledger.rows.values()) == unjudged(stored(ledger.engine))
    for name in ("total", "continuity", "tokens", "ttft"):
        assert wanted[name] == found[name], name


def test_each_part_of_an_undo_is_committed_so_that_writers_and_it_do_not_wait_in_a_circle(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store, "AT_ONCE", 2)
    take(engine, "i", [make_row() for _ in range(5)])
    left = []
    imports.undo(engine, "i", lambda _done, _of: left.append(turns_in(engine)))
    assert [5, 3, 1, 0] == left


def test_an_undo_that_was_broken_off_is_not_taken_for_an_import_that_is_whole(engine: Engine):
    take(engine, "i", [make_row()])
    imports.finish(engine, "i", imports.DONE, now=NOW, counts=Counts(1), formats=["csv"])

    def broken(_done: int, _of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        imports.undo(engine, "i", broken)
    assert "undoing" == imports.one(engine, "i").state
    assert Undone(1, 0) == imports.undo(engine, "i")
    assert "undone" == imports.one(engine, "i").state
