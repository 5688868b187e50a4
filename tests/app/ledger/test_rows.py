import json
from decimal import Decimal

import pytest

from app.ledger.rows import (
    BOOL_COLUMNS,
    COLUMNS,
    DECIMAL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TurnRow,
    iso,
    money,
    to_ms,
)
from tests.support.rows import make_facts, make_row, unknown_usage

CONTRACT = """
turn_id started_at ended_at recorded_at source kind status session session_key root_session
turn_group tenant chain epoch epoch_turn client client_version client_transport gateway_version
upstream model reasoning_effort service_tier mode reason epoch_reset_reason eligible changed_fields
fallback_reason attempts connection previous_response_id response_id prompt_cache_key store
items_total items_sent baseline_items bytes_total bytes_sent frozen_items diverged_at diverged_kind
diverged_path diverged_class fingerprint evidence tools_digest instructions_digest prefix_digest
baseline_digest input_tokens cached_tokens cache_write_tokens cache_write_long_tokens
non_cached_tokens output_tokens reasoning_tokens total_tokens usage_state ttft_ms first_event_ms
queue_ms connect_ms duration_ms http_status error_code cache_verdict cache_grade missed_tokens
provider_miss_reason shadow_mode shadow_reason cost_usd price_note import_id
"""


def test_columns_begin_with_the_contract_in_its_order():
    contract = tuple(CONTRACT.split())
    assert contract == COLUMNS[: len(contract)]


def test_a_row_is_made_of_the_values_of_all_columns_in_their_order():
    row = make_row()
    assert row == TurnRow.of(row.values())
    for wrong in (row.values()[:-1], (*row.values(), None)):
        with pytest.raises(ValueError, match="argument"):
            TurnRow.of(wrong)


def test_every_column_has_exactly_one_type():
    kinds = (
        TIME_COLUMNS,
        BOOL_COLUMNS,
        DECIMAL_COLUMNS,
        FLOAT_COLUMNS,
        INT_COLUMNS,
        TEXT_COLUMNS,
    )
    assert sorted(COLUMNS) == sorted(name for kind in kinds for name in kind)


def test_values_stand_in_the_order_of_the_columns():
    row = make_row(turn_id="t", import_id="i")
    assert ("t", row.started_at, "i") == (row.values()[0], row.values()[1], row.values()[-1])
    assert len(COLUMNS) == len(row.values())


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_800_000_000_007, "2027-01-15T08:00:00.007Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_shown_in_utc_with_milliseconds(ms: int, text: str):
    assert text == iso(ms)


def test_seconds_become_milliseconds_by_rounding():
    assert 1_800_000_000_123 == to_ms(1_800_000_000.1229999)


@pytest.mark.parametrize(
    ("value", "text"), [("1E-7", "0.0000001"), ("0.0100", "0.01"), ("120", "120"), ("0", "0")]
)
def test_money_is_a_plain_decimal(value: str, text: str):
    assert text == money(Decimal(value))


def test_the_api_shows_times_lists_objects_and_money_and_keeps_unknown_null():
    row = make_row(
        started_at=0,
        evidence='{"index": 3}',
        changed_fields="tools,instructions",
        cost_usd=Decimal("0.0940"),
    )
    shown = row.as_dict()
    assert list(COLUMNS) == list(shown)
    assert "1970-01-01T00:00:00.000Z" == shown["started_at"]
    assert {"index": 3} == shown["evidence"]
    assert ["tools", "instructions"] == shown["changed_fields"]
    assert "0.094" == shown["cost_usd"]
    assert shown["store"] is None
    assert shown == json.loads(json.dumps(shown))


def test_evidence_and_changed_fields_are_decoded_on_demand():
    row = make_row(evidence='{"index": 3}', changed_fields="a,b")
    assert {"index": 3} == row.evidence_object
    assert ("a", "b") == row.changed_field_names
    assert make_row().evidence_object is None
    assert () == make_row().changed_field_names


def test_the_row_factory_derives_what_follows():
    row = make_row(input_tokens=10, cached_tokens=12, output_tokens=3, session="s")
    assert (0, 13, "key-s") == (row.non_cached_tokens, row.total_tokens, row.session_key)
    assert unknown_usage().non_cached_tokens is None
    assert make_row().turn_id != make_row().turn_id
    assert make_facts().turn_id != make_facts().turn_id
