from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.cells import Cell, read_cells
from app.ledger.rollups import contribution
from app.ledger.rollups.contribution import BLOCK, HOUR, LEVELS, QUARTER, Sums, start_of
from tests.support.ledger import everything, rows
from tests.support.rows import START_MS, make_row, unknown_usage


@given(st.lists(rows, max_size=12))
def test_the_cells_of_rows_are_those_that_the_database_counts(holding, some):
    with holding(some).connect() as connection:
        wanted = sorted((cell for _, cell in read_cells(connection, everything())), key=repr)
    whole: dict[tuple, Sums] = defaultdict(Sums)
    for (level, _, key), sums in contribution.of(some).cells.items():
        if level == BLOCK:
            whole[key[5:]] = whole[key[5:]].plus(sums)
    found = [
        Cell(kind, status, mode, reason, eligible, cache, *sums)
        for (kind, mode, reason, eligible, status, cache), sums in whole.items()
    ]
    assert wanted == sorted(found, key=repr)


@given(st.lists(rows, max_size=12))
def test_each_level_counts_every_row_once(some):
    found = contribution.of(some)
    for level in LEVELS:
        assert len(some) == sum(s.turns for (lv, *_), s in found.cells.items() if lv == level)
    assert len(some) == sum(part.sums.turns for part in found.sessions.values())


@given(st.lists(rows, max_size=8), st.lists(rows, max_size=8))
def test_contributions_add_up(one, other):
    together = contribution.of([*one, *other]).cells
    parts = [contribution.of(one).cells, contribution.of(other).cells]
    for at, sums in together.items():
        added = [part[at] for part in parts if at in part]
        assert sums == (added[0] if len(added) == 1 else added[0].plus(added[1]))
        assert sums.minus(added[-1]).plus(added[-1]) == sums


def test_a_stretch_begins_at_a_whole_multiple_also_before_1970():
    assert (0, HOUR, -QUARTER) == (
        start_of(HOUR, HOUR - 1),
        start_of(HOUR, HOUR),
        start_of(QUARTER, -1),
    )


def test_of_unknown_usage_nothing_is_summed_but_the_turn():
    assert Sums(turns=1) == contribution.sums_of(unknown_usage())


def test_only_generations_that_ended_are_timed():
    timed = make_row(ttft_ms=100.0, duration_ms=900.0)
    failed = make_row(ttft_ms=100.0, status="failed")
    warmup = make_row(ttft_ms=100.0, kind="warmup")
    found = contribution.of([timed, failed, warmup]).times
    assert dict.fromkeys(LEVELS, (1, 1)) == {
        level: (times.ttft.samples, times.duration.samples) for (level, *_), times in found.items()
    }


def test_a_session_goes_by_one_of_its_names_whatever_the_order():
    named = [make_row(session=name, session_key="k") for name in (None, "b", "a")]
    for order in (named, named[::-1]):
        (part,) = contribution.of(order).sessions.values()
        assert part.session == "b"


def test_an_hour_of_a_session_knows_its_first_and_last_turn():
    times = [START_MS + 5, START_MS, START_MS + 9]
    (part,) = contribution.of(
        [make_row(started_at=t, session_key="k") for t in times]
    ).sessions.values()
    assert (START_MS, START_MS + 9, 3) == (part.first_at, part.last_at, part.sums.turns)
