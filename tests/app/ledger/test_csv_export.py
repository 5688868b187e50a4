import csv
import io
import json
from collections.abc import Iterable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.errors import BadParameterError
from app.ledger.csv_export import (
    file_name,
    guard,
    read_columns,
    unguard,
    write_csv,
    write_jsonl,
)
from app.ledger.queries import page, stream
from app.ledger.rows import (
    BOOL_COLUMNS,
    COLUMNS,
    DECIMAL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    iso,
)
from app.ledger.writer import write_rows
from tests.support.ledger import everything, rows
from tests.support.rows import START_MS, make_row, unknown_usage


def export(found: Iterable, *, columns=COLUMNS, **options) -> bytes:
    values = [tuple(getattr(row, name) for name in columns) for row in found]
    return b"".join(write_csv([values], columns=columns, **options))


def parse(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


def one_cell(column: str, value, **options) -> str:
    return parse(export([make_row(**{column: value})], columns=(column,), **options))[1][0]


def test_lines_end_in_crlf_and_quotes_are_doubled():
    data = export([make_row(session='a,"b"\nc')], columns=("session", "attempts"))
    assert b'session,attempts\r\n"a,""b""\nc",1\r\n' == data


def test_the_header_is_there_without_any_row():
    assert [list(COLUMNS)] == parse(export([]))


def test_the_header_comes_before_the_first_row_was_read():
    def chunks():
        raise AssertionError("not yet")
        yield []

    assert next(write_csv(chunks())).startswith(b"turn_id,started_at,")


def test_there_is_one_piece_per_chunk():
    chunks = [[make_row().values()] * 2, [make_row().values()]]
    pieces = list(write_csv(chunks))
    assert [1, 2, 1] == [piece.count(b"\r\n") for piece in pieces]


def test_unknown_is_empty_and_zero_is_zero():
    _, unknown, zero = parse(
        export([unknown_usage(), make_row(cached_tokens=0)], columns=("cached_tokens", "model"))
    )
    assert (["", "gpt-5.6-sol"], ["0", "gpt-5.6-sol"]) == (unknown, zero)


@pytest.mark.parametrize(
    ("column", "value", "cell"),
    [
        ("started_at", START_MS + 7, "2027-01-15T08:00:00.007Z"),
        ("eligible", False, "false"),
        ("store", True, "true"),
        ("cost_usd", Decimal("1E-7"), "0.0000001"),
        ("ttft_ms", 12.5, "12.5"),
        ("ttft_ms", -1.5, "-1.5"),
        ("epoch", -3, "-3"),
        ("evidence", '{"index":3}', '{"index":3}'),
    ],
)
def test_each_type_has_its_form(column: str, value, cell: str):
    assert cell == one_cell(column, value)


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+x",
        "-x",
        "@x",
        "\tx",
        "\rx",
        "\nx",
        " =1+1",
        "  \t@x",
        "\u00a0=1",
        "-5",
        "'=1",
        "''\tx",
    ],
)
def test_text_that_a_spreadsheet_would_run_is_guarded_unless_raw_is_asked_for(text: str):
    assert "'" + text == one_cell("model", text)
    assert text == one_cell("model", text, raw=True)


@pytest.mark.parametrize("text", ["gpt-5.6", "a=b", "x\ty", "'", "it's", "'a", "", "é"])
def test_other_text_stays_as_it_is(text: str):
    assert text == one_cell("model", text)


def test_every_text_column_is_guarded():
    for name in sorted(TEXT_COLUMNS):
        assert "'=x" == one_cell(name, "=x"), name


def test_a_byte_order_mark_only_if_asked_for():
    assert export([], bom=True).startswith(b"\xef\xbb\xbfturn_id,")
    assert export([]).startswith(b"turn_id,")


def test_columns_come_in_the_order_asked_for():
    assert ("model", "turn_id") == read_columns(" model, turn_id")
    assert COLUMNS == read_columns(None) == read_columns(" ")
    row = make_row(model="m")
    assert [["model", "turn_id"], ["m", row.turn_id]] == parse(
        export([row], columns=("model", "turn_id"))
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modell", "Did you mean model?"),
        ("zzzz", "Columns are turn_id,"),
        ("model,", "no column ''"),
        ("model,model", "asked for twice"),
    ],
)
def test_a_column_that_is_not_there_is_an_error(text: str, message: str):
    with pytest.raises(BadParameterError) as caught:
        read_columns(text)
    assert "columns" == caught.value.name
    assert message in str(caught.value)


def test_the_file_is_named_after_its_window():
    assert "ledger_20270115T080000Z_20270115T090000Z.csv" == file_name(
        START_MS, START_MS + 3_600_000, "csv"
    )


def back(name: str, cell: str):
    """A cell's value, as somebody would read it who knows only the documentation."""
    if cell == "":
        return None
    if name in TIME_COLUMNS:
        return cell
    if name in BOOL_COLUMNS:
        return {"true": True, "false": False}[cell]
    if name in INT_COLUMNS:
        return int(cell)
    if name in FLOAT_COLUMNS:
        return float(cell)
    return Decimal(cell) if name in DECIMAL_COLUMNS else cell


@given(st.lists(rows, max_size=6))
def test_reading_a_raw_file_gives_the_rows_back(found):
    header, *lines = parse(export(found, raw=True))
    assert list(COLUMNS) == header
    assert len(found) == len(lines)
    for row, line in zip(found, lines, strict=True):
        assert len(header) == len(line)
        for name, cell in zip(header, line, strict=True):
            value = getattr(row, name)
            expected = iso(value) if name in TIME_COLUMNS else (None if value == "" else value)
            assert expected == back(name, cell), name


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=30))
def test_any_text_survives_and_nothing_guarded_looks_like_a_formula(text: str):
    assert text == one_cell("session", text, raw=True)
    cell = one_cell("session", text)
    assert cell in (text, "'" + text)
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert guard(text) == cell
    assert text == unguard(cell)


@given(st.text("'= x", max_size=5))
def test_what_the_guard_has_put_there_can_be_told_from_what_was_there(text: str):
    assert text == unguard(guard(text))


def test_a_file_holds_the_rows_of_the_screen_and_its_sums(engine: Engine):
    found = [
        make_row(started_at=START_MS + offset, model="=cmd", session='s"1"') for offset in range(7)
    ]
    write_rows(engine, [*found, make_row(model="other")])
    view = everything().narrow("model", "=cmd")
    lines = list(
        csv.DictReader(
            io.StringIO(b"".join(write_csv(stream(engine, view, chunk=3))).decode(), newline="")
        )
    )
    shown = page(engine, view).rows
    assert [row.turn_id for row in shown[::-1]] == [line["turn_id"] for line in lines]
    assert sum(row.cached_tokens for row in shown) == sum(
        int(line["cached_tokens"]) for line in lines
    )


def test_json_lines_hold_what_the_api_shows():
    found = [make_row(evidence='{"index":1}', session="ü\n"), unknown_usage()]
    data = b"".join(write_jsonl([[row.values() for row in found], []]))
    assert [row.as_dict() for row in found] == [json.loads(line) for line in data.splitlines()]
    assert data.endswith(b"}\n")
    assert [{"model": "gpt-5.6-sol"}] == [
        json.loads(line)
        for line in b"".join(write_jsonl([[("gpt-5.6-sol",)]], columns=("model",))).splitlines()
    ]
