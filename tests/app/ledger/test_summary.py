from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.ledger.conditions import cache_class_of
from app.ledger.filters import Filter
from app.ledger.rollups.distribution import Distribution
from app.ledger.summary import ReasonCount, summarize
from app.ledger.writer import write_rows
from tests.support.ledger import everything, rows
from tests.support.rows import START_MS, make_row

many = settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)


def test_every_row_is_counted_by_kind_and_status(engine: Engine):
    write_rows(
        engine,
        [
            make_row(),
            make_row(kind="warmup"),
            make_row(status="failed", session="b"),
        ],
    )
    found = summarize(engine, everything())
    assert (3, 2) == (found.total, found.sessions)
    assert {"generation": 2, "warmup": 1} == found.by_kind
    assert {"completed": 2, "failed": 1} == found.by_status


def test_modes_stand_in_their_order_with_unknown_last(engine: Engine):
    order = ["ws_incremental", "ws_full", "http_full", "http_incremental", "a_mode_of_an_import"]
    write_rows(
        engine,
        [make_row(mode=None), *(make_row(mode=mode) for mode in reversed(order)), make_row()],
    )
    assert (
        ("ws_incremental", 2),
        *((mode, 1) for mode in order[1:]),
        (None, 1),
    ) == summarize(engine, everything()).modes


def test_reasons_stand_by_their_count_with_what_was_eligible(engine: Engine):
    write_rows(
        engine,
        [
            make_row(mode="ws_full", reason="no_baseline", eligible=False),
            make_row(mode="ws_full", reason="prefix_mismatch"),
            make_row(mode="ws_full", reason="prefix_mismatch", eligible=False),
            make_row(reason=None, mode=None),
        ],
    )
    assert (
        ReasonCount("prefix_mismatch", 2, 1),
        ReasonCount(None, 1, 0),
        ReasonCount("no_baseline", 1, 0),
    ) == summarize(engine, everything()).reasons


def test_continuation_and_cache_hit_are_two_facts(engine: Engine):
    write_rows(
        engine,
        [
            make_row(mode="ws_full", cached_tokens=970),
            make_row(mode="ws_incremental", cached_tokens=0),
            make_row(mode="http_full", cached_tokens=100),
            make_row(mode=None, cached_tokens=970),
            make_row(mode="ws_full", cached_tokens=None),
        ],
    )
    assert {
        "incremental": {"hit": 0, "partial": 0, "miss": 1, "unknown": 0},
        "full": {"hit": 1, "partial": 1, "miss": 0, "unknown": 1},
        "unknown": {"hit": 1, "partial": 0, "miss": 0, "unknown": 0},
    } == summarize(engine, everything()).cache_by_wire


def test_times_to_first_token_come_by_mode(engine: Engine):
    write_rows(
        engine,
        [
            make_row(ttft_ms=30.0),
            make_row(ttft_ms=10.0),
            make_row(ttft_ms=None),
            make_row(ttft_ms=5.0, mode=None),
            make_row(ttft_ms=1.0, status="failed"),
        ],
    )
    assert {
        "ws_incremental": Distribution([10.0, 30.0]),
        None: Distribution([5.0]),
    } == summarize(engine, everything()).ttft


def test_a_client_that_left_is_no_error(engine: Engine):
    write_rows(
        engine,
        [
            *(make_row() for _ in range(10)),
            *(make_row(status="client_closed") for _ in range(5)),
            make_row(status="error"),
            make_row(attempts=2),
        ],
    )
    found = summarize(engine, everything())
    assert (17, 1, 5, 1 / 12) == (
        found.total,
        found.errors,
        found.client_closed,
        found.error_rate,
    )


def test_an_empty_view_has_no_rates(engine: Engine):
    found = summarize(engine, everything())
    assert (0, 0, None, (), ()) == (
        found.total,
        found.sessions,
        found.error_rate,
        found.modes,
        found.reasons,
    )


@many
@given(st.lists(rows, max_size=20))
def test_all_parts_of_a_summary_add_up(holding, found):
    view = everything()
    summary = summarize(holding(found), view)
    assert len(found) == summary.total == sum(summary.by_kind.values())
    assert len(found) == sum(summary.by_status.values())
    assert len({row.session_key for row in found}) == summary.sessions
    generation = summary.continuity.generation
    assert generation == sum(number for _, number in summary.modes)
    assert generation == sum(reason.turns for reason in summary.reasons)
    assert summary.continuity.eligible == sum(reason.eligible for reason in summary.reasons)
    assert generation == summary.tokens.turns + summary.tokens.unknown
    answered = [
        row
        for row in found
        if row.kind == "generation" and row.status in ("completed", "incomplete")
    ]
    for wire, table in summary.cache_by_wire.items():
        mine = [row for row in answered if (row.mode or "unknown").endswith(wire)]
        for name, number in table.items():
            assert sum(cache_class_of(row) == name for row in mine) == number


@many
@given(st.lists(rows, max_size=20), st.integers(0, 6 * 3_600_000))
def test_two_halves_of_a_window_make_the_whole(holding, found, cut):
    engine, whole = holding(found), everything()
    middle = START_MS + cut
    parts = [
        summarize(engine, Filter(start=start, end=end))
        for start, end in ((whole.start, middle), (middle, whole.end))
    ]
    summary = summarize(engine, whole)
    assert summary.total == sum(part.total for part in parts)
    assert summary.tokens.input == sum(part.tokens.input for part in parts)
    assert summary.continuity.mismatches == sum(part.continuity.mismatches for part in parts)
