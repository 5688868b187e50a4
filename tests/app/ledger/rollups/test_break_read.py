"""Sums of breaks equal the rows, whatever happened to these and however they are asked for."""

import random

import pytest
from sqlalchemy import Engine

from app.errors import LedgerError
from app.ledger import breaks, retention
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.writer import write_rows
from tests.support.breaking import (
    Breaks,
    expected,
    expected_ever,
    found,
    found_ever,
    instant,
    kept,
    rows,
    views,
)
from tests.support.rollups import FIRST
from tests.support.rows import make_row

OFTEN = ("judge", "update", "delete", "insert")
STEPS = (*OFTEN, *OFTEN, "bring", "merge", "undo", "prune")


@pytest.mark.parametrize("seed", range(12))
def test_after_any_sequence_the_figures_of_breaks_are_those_of_the_rows(holding, seed):
    randomly = random.Random(seed)
    with Breaks(holding([])) as model:
        model.insert(rows(randomly, 25))
        for _ in range(5):
            step(model, randomly)
        known = kept(model.engine)
        for view in views(randomly):
            inner = {instant(randomly) for _ in range(5)}
            cuts = [view.start, *sorted(at for at in inner if view.start < at < view.end), view.end]
            with reading(model.engine) as connection:
                assert expected(known, view, cuts) == found(connection, view, cuts)
        now = instant(randomly) + DAY
        assert expected_ever(known, now) == found_ever(model.engine, now)
        before = model.stored()
        model.rebuild([])
        assert before == model.stored()


def step(model: Breaks, randomly: random.Random) -> None:
    name = randomly.choice(STEPS)
    if name == "prune":
        since = FIRST + DAY
        retention.prune(model.engine, since + DAY, row_days=1, rollup_days=0)
        model.gone = {name for name, row in model.rows.items() if row.started_at < since}
        return
    some = [row for row in rows(randomly, 10) if row.turn_id not in model.gone]
    getattr(model, name)(some)


def test_a_window_without_end_is_no_list_of_days(engine: Engine):
    edges = [FIRST + number * 3 * DAY + HOUR for number in range(7)]
    parted = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
    write_rows(engine, [make_row(started_at=edge + DAY, **parted) for edge in edges])
    view = Filter(start=edges[0], end=1 << 52)
    with reading(engine) as connection:
        found = breaks.sums(connection, view, [*edges, view.end])
    assert dict.fromkeys(range(7), 1) == found["f1"].buckets


def test_sums_that_are_not_built_are_not_taken_for_none(engine: Engine):
    with engine.begin() as connection:
        states.put(connection, states.BREAKS_MISSING, 1)
    with pytest.raises(LedgerError, match="do not count"), reading(engine) as connection:
        breaks.whole(connection)
