from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.ledger.conditions import COLUMN_OF, cache_class_of
from app.ledger.database import reading
from app.ledger.filters import Filter, none_of
from app.ledger.offered import LISTED, DimensionValue, dimensions
from app.ledger.queries import count
from app.ledger.rollups.contribution import DAY
from app.ledger.writer import write_rows
from tests.support.ledger import everything, rows
from tests.support.rows import START_MS, make_row


def offered(engine: Engine, view: Filter, **options):
    with reading(engine) as connection:
        return dimensions(connection, view, **options)


def test_a_form_is_offered_the_values_of_its_window_whatever_else_is_chosen(engine: Engine):
    write_rows(
        engine,
        [
            make_row(model="a", session="s", session_key="k"),
            make_row(model="b"),
            make_row(model="b", cached_tokens=0),
            make_row(model=None),
            make_row(model="outside", started_at=START_MS - 10**9),
        ],
    )
    found = offered(engine, everything().narrow("model", "a"))
    assert (
        DimensionValue("b", None, 2),
        DimensionValue("a", None, 1),
        DimensionValue("unknown", None, 1),
    ) == found["model"]
    assert DimensionValue("k", "s", 1) in found["session"]
    assert {"hit": 3, "miss": 1} == {value.value: value.turns for value in found["cache"]}
    assert (DimensionValue("ws_incremental", None, 4),) == found["mode"]


def test_a_long_list_of_values_is_cut_after_the_most_frequent(engine: Engine):
    write_rows(engine, [make_row(model=f"m{n % 7}") for n in range(15)])
    assert ["m0", "m1"] == [
        value.value for value in offered(engine, everything(), limit=2)["model"]
    ][:2]
    assert 2 == len(offered(engine, everything(), limit=2)["model"])


def test_offered_values_lead_to_as_many_rows_as_they_say(engine: Engine):
    write_rows(engine, [make_row(model=m, client=None) for m in ("a", "b", "b", None)])
    for name, values in offered(engine, everything()).items():
        for value in values:
            assert value.turns == count(engine, everything().narrow(name, value.value))


@settings(max_examples=25)
@given(
    st.lists(st.tuples(rows, st.integers(0, 9)), max_size=12),
    st.integers(-3, 3),
    st.integers(1, 10 * DAY),
    st.sampled_from(["started", "recorded"]),
)
def test_they_are_the_values_of_the_rows_one_by_one(holding, found, start, length, by):
    spread = [
        replace(row, started_at=row.started_at + day * DAY, recorded_at=row.recorded_at + day * DAY)
        for row, day in found
    ]
    engine = holding(spread)
    first = START_MS + start * DAY // 7
    view = Filter(first, first + length, by=by)
    inside = [
        row for row in spread
        if view.start <= (row.recorded_at if by == "recorded" else row.started_at) < view.end
    ]  # fmt: skip
    told = offered(engine, view)
    assert LISTED == tuple(told)
    for name, values in told.items():
        wanted = Counter(value_of(row, name) for row in inside)
        assert wanted == {value.value: value.turns for value in values}
        assert [-value.turns for value in values] == sorted(-value.turns for value in values)


def value_of(row, name):
    if name == "cache":
        return cache_class_of(row)
    if name == "session":
        return row.session_key
    own = getattr(row, COLUMN_OF[name])
    return none_of(name) if own is None else own
