import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.ledger.cells import Continuity, TokenTotals, read_cells
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.ledger import everything, rows
from tests.support.rows import make_row, unknown_usage

many = settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
INCREMENTAL = ("ws_incremental", "http_incremental")


def figures(engine: Engine, found: list[TurnRow] = ()) -> tuple[Continuity, TokenTotals]:
    write_rows(engine, found)
    with engine.connect() as connection:
        cells = [cell for _, cell in read_cells(connection, everything())]
    return Continuity.of(cells), TokenTotals.of(cells)


@many
@given(st.lists(rows, max_size=20))
def test_figures_are_those_of_counting_row_by_row(holding, found):
    continuity, tokens = figures(holding(found))
    turns = [
        row
        for row in found
        if row.kind == "generation" and row.status in ("completed", "incomplete")
    ]
    known = [row for row in turns if row.mode is not None]
    eligible = [row for row in known if row.eligible]
    assert continuity == Continuity(
        generation=len(turns),
        known=len(known),
        incremental=sum(row.mode in INCREMENTAL for row in known),
        eligible=len(eligible),
        breaks=sum(row.mode not in INCREMENTAL for row in eligible),
        mismatches=sum(row.reason == "prefix_mismatch" for row in eligible),
    )
    used = [r for r in turns if r.input_tokens is not None and r.cached_tokens is not None]
    writes = [row.cache_write_tokens for row in used if row.cache_write_tokens is not None]
    assert tokens == TokenTotals(
        turns=len(used),
        unknown=len(turns) - len(used),
        inconsistent=sum(row.usage_state == "inconsistent" for row in used),
        input=sum(row.input_tokens for row in used),
        cached=sum(row.cached_tokens for row in used),
        cache_write=sum(writes) if writes else None,
        output=sum(row.output_tokens or 0 for row in turns),
        reasoning=sum(row.reasoning_tokens or 0 for row in turns),
    )
    assert tokens.non_cached == sum(row.non_cached_tokens for row in used)


@pytest.mark.parametrize(
    "aside",
    [
        {"kind": "warmup"},
        {"kind": "compaction"},
        {"status": "failed"},
        {"status": "error"},
        {"status": "client_closed"},
        {"status": "refused"},
        {"status": "rate_limited"},
    ],
)
def test_rates_count_generation_turns_only(engine: Engine, aside: dict):
    continuity, tokens = figures(engine, [make_row(), make_row(**aside)])
    assert (1, 1, 1) == (continuity.generation, continuity.known, tokens.turns)


def test_an_unknown_mode_is_shown_beside_the_rates_and_not_in_them(engine: Engine):
    continuity, _ = figures(engine, [make_row(), make_row(mode=None)])
    assert (2, 1, 1, 1.0) == (
        continuity.generation,
        continuity.unknown,
        continuity.eligible,
        continuity.incremental_rate,
    )


def test_a_mismatch_counts_only_where_the_turn_could_have_been_continued(engine: Engine):
    continuity, _ = figures(
        engine,
        [
            make_row(mode="ws_full", reason="prefix_mismatch"),
            make_row(mode="ws_full", reason="prefix_mismatch", eligible=False),
            make_row(mode="ws_full", reason="chain_busy"),
            make_row(),
        ],
    )
    assert (3, 2, 1) == (continuity.eligible, continuity.breaks, continuity.mismatches)
    assert (1 / 3, 2 / 3) == (continuity.mismatch_rate, continuity.break_rate)


def test_of_nothing_there_is_no_rate(engine: Engine):
    continuity, tokens = figures(engine)
    assert (None, None, None, None, None) == (
        continuity.incremental_rate,
        continuity.break_rate,
        continuity.mismatch_rate,
        tokens.cached_ratio,
        tokens.uncached,
    )


def test_the_cached_ratio_weighs_by_tokens_and_leaves_unknown_usage_out(engine: Engine):
    _, tokens = figures(
        engine,
        [
            make_row(input_tokens=10, cached_tokens=0),
            make_row(input_tokens=100_000, cached_tokens=95_000),
            unknown_usage(),
            make_row(input_tokens=500, cached_tokens=None),
            make_row(status="error", input_tokens=7, cached_tokens=7),
        ],
    )
    assert 95_000 / 100_010 == tokens.cached_ratio
    assert (2, 2) == (tokens.turns, tokens.unknown)


def test_the_parts_add_up_to_the_input_where_only_some_turns_report_writes(engine: Engine):
    _, tokens = figures(
        engine,
        [
            make_row(input_tokens=100, cached_tokens=40, cache_write_tokens=30),
            make_row(input_tokens=100, cached_tokens=90),
        ],
    )
    assert (130, 30, 40) == (tokens.cached, tokens.cache_write, tokens.uncached)
    assert tokens.input == tokens.cached + tokens.cache_write + tokens.uncached


def test_reported_zero_writes_are_zero_and_not_unknown(engine: Engine):
    _, tokens = figures(engine, [make_row(cache_write_tokens=0)])
    assert 0 == tokens.cache_write


def test_an_empty_cell_of_sums_is_zero_and_divides_nothing(engine: Engine):
    _, tokens = figures(engine, [make_row(input_tokens=0, cached_tokens=0)])
    assert (1, 0, None) == (tokens.turns, tokens.input, tokens.cached_ratio)
