from dataclasses import asdict
from decimal import Decimal

import pytest

from app.importers.own_row import (
    REQUIRED,
    BadCell,
    count_of,
    evidence_of,
    flag_of,
    milliseconds_of,
    missing_columns,
    money_of,
    row_of,
    text_of,
    time_of,
)
from app.ledger.models import turns
from app.ledger.rows import COLUMNS
from tests.support.rows import START_MS, make_row


def test_what_every_turn_needs_is_what_is_never_empty_and_cannot_be_worked_out():
    never = {name for name in COLUMNS if not turns.c[name].nullable}
    assert never - {"ended_at", "recorded_at"} == set(REQUIRED)
    assert list(REQUIRED) == missing_columns([])
    assert [] == missing_columns(COLUMNS)


def test_whatever_import_brought_a_row_to_its_ledger_it_is_not_one_of_this_ledger():
    row = make_row(import_id="theirs")
    assert make_row(turn_id=row.turn_id) == row_of(asdict(row))


def test_what_follows_from_the_rest_is_worked_out():
    given = {name: value for name, value in asdict(make_row()).items() if name in REQUIRED}
    row = row_of({**given, "duration_ms": 1_500.4, "input_tokens": 9, "cached_tokens": 2})
    assert (START_MS + 1_500, START_MS + 1_500) == (row.ended_at, row.recorded_at)
    assert (7, None) == (row.non_cached_tokens, row.total_tokens)
    assert START_MS == row_of(given).ended_at
    assert 11 == row_of({**given, "input_tokens": 9, "output_tokens": 2}).total_tokens


@pytest.mark.parametrize(
    ("changes", "column", "reason"),
    [
        ({"turn_id": ""}, "turn_id", "is empty"),
        ({"tenant": None}, "tenant", "is empty"),
        ({"kind": "new"}, "kind", "none of the words"),
        ({"mode": "pigeon"}, "mode", "none of the words"),
        ({"ended_at": START_MS - 1}, "ended_at", "before started_at"),
        ({"cached_tokens": 1_001}, "cached_tokens", "more than input_tokens"),
        ({"non_cached_tokens": 99}, "non_cached_tokens", "does not agree"),
        ({"total_tokens": 99}, "total_tokens", "does not agree"),
    ],
)
def test_a_row_that_cannot_be_is_refused(changes, column: str, reason: str):
    with pytest.raises(BadCell) as caught:
        row_of(asdict(make_row(**changes)))
    assert (column, True) == (caught.value.column, reason in caught.value.reason)


@pytest.mark.parametrize(
    ("of", "name", "value", "expected"),
    [
        (time_of, "started_at", "2027-01-15T08:00:00.007Z", START_MS + 7),
        (time_of, "started_at", "2027-01-15T09:00:00.007999+01:00", START_MS + 7),
        (count_of, "attempts", 0, 0),
        (count_of, "bytes_sent", 2**40, 2**40),
        (milliseconds_of, "ttft_ms", 3, 3.0),
        (money_of, "cost_usd", "0.0000001", Decimal("1E-7")),
        (flag_of, "store", False, False),
        (text_of, "model", "m" * 128, "m" * 128),
        (evidence_of, "evidence", '{"a": 1}', '{"a": 1}'),
    ],
)
def test_a_good_value_is_taken_as_it_is(of, name: str, value, expected):
    assert expected == of(name, value)


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [
        (time_of, "started_at", "2027-01-15"),
        (time_of, "started_at", "yesterday"),
        (time_of, "started_at", 7),
        (time_of, "started_at", "1969-12-31T23:59:59Z"),
        (count_of, "attempts", -1),
        (count_of, "attempts", 2**31),
        (count_of, "input_tokens", 2**30),
        (count_of, "attempts", True),
        (count_of, "attempts", 1.5),
        (milliseconds_of, "ttft_ms", float("nan")),
        (milliseconds_of, "ttft_ms", -0.5),
        (milliseconds_of, "ttft_ms", "3"),
        (money_of, "cost_usd", "NaN"),
        (money_of, "cost_usd", "-1"),
        (money_of, "cost_usd", "a lot"),
        (flag_of, "store", 1),
        (text_of, "model", "m" * 129),
        (text_of, "model", "a\x00b"),
        (text_of, "model", ["m"]),
        (evidence_of, "evidence", "[1]"),
        (evidence_of, "evidence", "{"),
        (evidence_of, "evidence", '{"a":' + "[" * 9 + "]" * 9 + "}"),
        (evidence_of, "evidence", '{"a":' * 999 + "1" + "}" * 999),
    ],
)
def test_a_bad_value_is_refused_and_not_told(of, name: str, value):
    with pytest.raises(BadCell) as caught:
        of(name, value)
    assert name == caught.value.column
    assert not isinstance(value, str) or len(value) < 3 or value not in caught.value.reason
