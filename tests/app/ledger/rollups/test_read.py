"""Rollups equal the rows, whatever happened to these and however they are asked for."""

from collections.abc import Iterable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ledger import retention
from app.ledger.filters import Filter
from app.ledger.rollups.contribution import DAY, FIVE, QUARTER
from app.ledger.rollups.read import SESSIONS, TIMES, serves
from app.ledger.rows import TurnRow
from tests.support.rollups import (
    FIRST,
    Model,
    edges,
    expected_series,
    expected_whole,
    filters,
    found_series,
    found_whole,
    rows,
    windows,
)

few = settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
WITHOUT_END = Filter(start=0, end=1 << 52)
some_rows = st.lists(rows(), min_size=4, max_size=12)
OFTEN = ("delete", "together", "bring", "merge", "price")
steps = st.builds(
    lambda first, rest: [("insert", first), *rest],
    st.lists(rows(), min_size=8, max_size=20),
    st.lists(
        st.tuples(
            st.sampled_from([*OFTEN, *OFTEN, "insert", "update", "undo", "rebuild"]), some_rows
        ),
        max_size=5,
    ),
)


def views(grid: int = 1) -> st.SearchStrategy[list[Filter]]:
    wide = st.tuples(windows(grid), windows(grid), filters(grid), filters(grid))
    return wide.map(lambda some: [WITHOUT_END, *some])


def to_the_last(known: Iterable[TurnRow], views: Sequence[Filter], since: int) -> list[Filter]:
    """With one of them until just before the last turn begins, and until it has begun: if its row
    is kept, else only whole stretches are known there."""
    last, view = max((row.started_at for row in known), default=since), views[2]
    ends = (last, last + 1) if last >= since else ()
    moved = [view.window(view.start, end) for end in ends if view.start < last]
    return [*views[:2], *moved, *views[3:]]


@few
@given(steps, views(), edges())
def test_after_any_sequence_the_figures_are_those_of_the_rows(holding, done, views, cuts):
    with Model(holding([])) as model:
        for name, some in done:
            getattr(model, name)(some)
        known = list(model.rows.values())
        for view in to_the_last(known, views, 0):
            assert expected_whole(known, view) == found_whole(model.engine, view)
            assert expected_series(known, view, cuts) == found_series(model.engine, view, cuts)
        before = model.stored()
        model.rebuild([])
        assert before == model.stored()


@few
@given(steps, st.integers(0, 4), steps, views(QUARTER), edges(FIVE))
def test_what_was_deleted_as_too_old_stays_in_the_figures(
    holding, before, days, after, views, cuts
):
    since = FIRST + days * DAY

    def prune() -> None:
        retention.prune(model.engine, since + DAY, row_days=1, rollup_days=0)
        model.gone = {name for name, row in model.rows.items() if row.started_at < since}

    with Model(holding([])) as model:
        for name, some in before:
            getattr(model, name)(some)
        prune()
        for name, some in after:
            # What comes late is counted all the same.
            getattr(model, name)([row for row in some if row.turn_id not in model.gone])
            if name == "rebuild":
                prune()
        known = list(model.rows.values())
        for view in to_the_last(known, views, since):
            found, wanted = found_whole(model.engine, view), expected_whole(known, view)
            of_sessions = ("count", "residency") if serves(view, SESSIONS) else ()
            for name in ("total", "continuity", "tokens", *of_sessions):
                assert wanted[name] == found[name], name
            over_time = ("ttft",) if serves(view, TIMES) else ()
            found = found_series(model.engine, view, cuts)
            wanted = expected_series(known, view, cuts)
            for name in ("continuity", "tokens", *over_time):
                assert wanted[name] == found[name], name
