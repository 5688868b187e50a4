from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.cells import Cell, read_cells
from app.ledger.rollups import contribution
from app.ledger.rollups.contribution import (
    COUNTS,
    HOUR,
    LEVELS,
    QUARTER,
    SESSION_LEVELS,
    SESSION_SUMS,
    SUMS,
    Contributions,
    facts_of,
    key_of,
    start_of,
)
from tests.support.ledger import everything, rows
from tests.support.rows import START_MS, make_row, unknown_usage


def of(some, sign=1):
    made = Contributions()
    made.add(some, sign)
    return made


@pytest.mark.parametrize("detail", [0, 1])
@given(some=st.lists(rows, max_size=12))
def test_the_cells_of_rows_are_those_that_the_database_counts(holding, detail, some):
    with holding(some).connect() as connection:
        wanted = sorted((cell for _, cell in read_cells(connection, everything())), key=repr)
    whole = defaultdict(lambda: [0] * len(SUMS))
    for (_, key), sums in of(some).cells().items():
        if key.detail == detail:
            whole[key[5:]] = [a + b for a, b in zip(whole[key[5:]], sums, strict=True)]
    found = [
        Cell(kind, status, mode, reason, eligible, cache, *sums)
        for (kind, mode, reason, eligible, status, cache), sums in whole.items()
    ]
    assert wanted == sorted(found, key=repr)


@given(st.lists(rows, max_size=12))
def test_every_row_is_counted_once_in_each_detail(some):
    found = of(some)
    for detail in (0, 1):
        counted = [sums[0] for (_, key), sums in found.cells().items() if key.detail == detail]
        assert len(some) == sum(counted)
    assert len(some) == sum(sums[0] for sums in found.sessions.values())


@given(st.lists(rows, max_size=8), st.lists(rows, max_size=8))
def test_what_was_added_can_be_taken_away_again(stay, go):
    both = of([*stay, *go])
    both.add(go, -1)
    wanted = of(stay)
    assert wanted.cells() == {at: sums for at, sums in both.cells().items() if any(sums)}
    assert wanted.sessions == {at: sums for at, sums in both.sessions.items() if any(sums)}
    left = {at: tuple(map(Counter, counts)) for at, counts in both.times().items()}
    assert wanted.times() == {
        at: (+ttft, +duration) for at, (ttft, duration) in left.items() if +ttft or +duration
    }


def test_a_stretch_begins_at_a_whole_multiple_also_before_1970():
    assert (0, HOUR, -QUARTER) == (
        start_of(HOUR, HOUR - 1),
        start_of(HOUR, HOUR),
        start_of(QUARTER, -1),
    )


@pytest.mark.parametrize("levels", [LEVELS, SESSION_LEVELS])
def test_each_level_is_made_of_whole_stretches_of_the_one_before(levels):
    finer = levels[:-1]
    assert not any(level % below for below, level in zip(finer, levels[1:], strict=True))


def test_of_unknown_usage_nothing_is_summed_but_the_turn():
    assert (1, *(0,) * 10) == contribution.sums_of(unknown_usage())


def test_only_generations_that_ended_are_timed():
    timed = make_row(ttft_ms=100.0, duration_ms=900.0)
    failed = make_row(ttft_ms=100.0, status="failed")
    warmup = make_row(ttft_ms=100.0, kind="warmup")
    found = of([timed, failed, warmup]).times()
    assert [0, 1] == sorted(key.detail for _, key in found)
    assert {(1, 1)} == {
        (sum(ttft.values()), sum(duration.values())) for ttft, duration in found.values()
    }


def test_only_generations_that_ended_are_in_the_figures_of_a_session():
    whole = of([make_row(), make_row(status="failed"), make_row(kind="warmup")])
    (sums,) = whole.sessions.values()
    found = dict(zip(SESSION_SUMS, sums, strict=True))
    assert (3, 1, 1, 1_000) == (
        found["turns"],
        found["generation"],
        found["usage_turns"],
        found["input"],
    )


def test_a_session_goes_by_one_of_its_names_whatever_the_order():
    named = [make_row(session=name, session_key="k") for name in (None, "b", "a")]
    for order in (named, named[::-1]):
        ((_, _, name),) = of(order).session_ends.values()
        assert name == "b"


def test_an_hour_of_a_session_knows_its_first_and_last_turn():
    times = [START_MS + 5, START_MS, START_MS + 9]
    found = of([make_row(started_at=t, session_key="k") for t in times])
    assert [(START_MS, START_MS + 9, "session-a")] == list(found.session_ends.values())


def test_what_a_row_counts_as_follows_from_its_key():
    counts = dict(zip(COUNTS, facts_of(key_of(make_row(mode="ws_full"))).counts, strict=True))
    assert counts == {
        "generation": 1,
        "known": 1,
        "incremental": 0,
        "eligible": 1,
        "breaks": 1,
        "mismatches": 0,
    }


def test_keys_are_numbered_alike_in_every_process():
    key = key_of(make_row())
    assert 8_634_666_140_388_525_038 == facts_of(key).id
    assert facts_of(key).shape == facts_of(key._replace(model="other")).shape
    assert facts_of(key).shape != facts_of(key._replace(mode=None)).shape
