"""Rollups equal the rows, whatever happened to these and however they are asked for."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ledger import retention
from app.ledger.rollups.contribution import DAY, FIVE, QUARTER
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
)

few = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "insert", "update", "delete", "rebuild"]),
        st.lists(rows, max_size=12),
    ),
    min_size=1,
    max_size=6,
)


@few
@given(steps, st.lists(filters(), min_size=1, max_size=4), edges())
def test_after_any_sequence_the_figures_are_those_of_the_rows(holding, done, views, cuts):
    model = Model(holding([]))
    for name, some in done:
        getattr(model, name)(some)
    known = list(model.rows.values())
    for view in views:
        assert expected_whole(known, view) == found_whole(model.engine, view)
        assert expected_series(known, view, cuts) == found_series(model.engine, view, cuts)
    before = model.stored()
    model.rebuild([])
    assert before == model.stored()


@few
@given(
    steps, st.integers(0, 4), steps, st.lists(filters(QUARTER), min_size=1, max_size=3), edges(FIVE)
)
def test_what_was_deleted_as_too_old_stays_in_the_figures(
    holding, before, days, after, views, cuts
):
    model = Model(holding([]))
    for name, some in before:
        getattr(model, name)(some)
    since = FIRST + days * DAY
    retention.prune(model.engine, since + DAY, row_days=1, rollup_days=0)
    # Of what is gone, nothing can be changed; what comes late is counted all the same.
    gone = {name for name, row in model.rows.items() if row.started_at < since}
    for name, some in after:
        getattr(model, name)([row for row in some if row.turn_id not in gone])
        if name == "rebuild":
            retention.prune(model.engine, since + DAY, row_days=1, rollup_days=0)
            gone |= {name for name, row in model.rows.items() if row.started_at < since}
    known = list(model.rows.values())
    for view in views:
        found, wanted = found_whole(model.engine, view), expected_whole(known, view)
        for name in ("total", "continuity", "tokens"):
            assert wanted[name] == found[name], name
        assert expected_series(known, view, cuts) == found_series(model.engine, view, cuts)
