import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.joining import joined
from tests.support.rows import make_row, unknown_usage

FIRST = make_row(turn_id="t", ttft_ms=None, output_tokens=5)
tokens = st.none() | st.integers(0, 3)


@st.composite
def readings(draw):
    """Rows that are made of one record, each of which may tell less than another."""
    written, out = draw(tokens), draw(tokens)
    given_ = draw(st.none() | st.just(9))
    return make_row(
        turn_id="t",
        kind=draw(st.sampled_from(["generation", "compaction"])),
        ttft_ms=draw(st.sampled_from([None, 1.5])),
        response_id=draw(st.sampled_from([None, "r"])),
        store=draw(st.sampled_from([None, False, True])),
        ended_at=draw(st.integers(0, 2)),
        recorded_at=7,
        started_at=0,
        input_tokens=given_,
        cached_tokens=None if given_ is None else draw(tokens),
        cache_write_tokens=written,
        output_tokens=out,
        usage_state="missing" if given_ is None and out is None else "reported",
    )


def test_what_is_told_later_is_added_to_what_was_known():
    later = replace(FIRST, ttft_ms=80.0, kind="compaction", response_id="r")
    assert later == joined(FIRST, later) == joined(later, FIRST)


def test_where_nothing_is_new_the_row_is_the_same():
    assert FIRST is joined(FIRST, replace(FIRST, response_id=None, started_at=FIRST.started_at))


def test_an_answer_that_has_grown_counts_whole():
    grown = replace(FIRST, output_tokens=50, total_tokens=1_050)
    assert grown == joined(FIRST, grown) == joined(grown, FIRST)


def test_usage_that_comes_late_is_reported():
    reported = make_row(turn_id="t")
    missing = unknown_usage(turn_id="t")
    assert reported == joined(missing, reported) == joined(reported, missing)


def test_what_is_ours_and_what_a_client_is_called_stays():
    mine = replace(FIRST, cache_verdict="hit", session="hashed", import_id="a", recorded_at=1)
    other = replace(FIRST, cache_verdict="idle", session="name", import_id="b", recorded_at=2)
    assert mine is joined(mine, other)


@given(st.lists(readings(), min_size=1, max_size=4))
def test_the_order_of_readings_does_not_matter_and_none_counts_twice(rows):
    def together(some):
        first, *rest = some
        for row in rest:
            first = joined(first, row)
        return first

    assert 1 == len({tuple(together(some).values()) for some in itertools.permutations(rows)})
    assert together(rows) == together([*rows, *rows])
