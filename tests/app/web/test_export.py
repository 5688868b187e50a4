import csv
import gzip
import io
import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ledger.rows import COLUMNS, TIME_COLUMNS
from app.web.export import packed
from app.web.shown import WHY
from tests.support.random_rows import new_source, rows
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000


def read_csv(answer):
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text, newline="")))


def cell(value):
    """A value of the API as the CSV writes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    return str(value)


FILTERS = [
    {},
    {"mode": "ws_full"},
    {"mode": "!ws_full"},
    {"mode": "unknown"},
    {"cache": ["hit", "miss"]},
    {"eligible": "true", "kind": "generation"},
    {"q": "session", "session": "a"},
    {"status": "!completed", "model": "unknown"},
]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), chosen=st.sampled_from(FILTERS))
def test_the_file_holds_exactly_the_rows_on_the_screen(shared_site, data, chosen):
    source = new_source()
    shared_site.write(data.draw(rows(start=START_MS - HOUR, end=START_MS, source=source)))
    view = {"source": source, "from": "now-2h"} | chosen
    screen = shared_site.get("/api/requests", limit=500, **view)
    file = read_csv(shared_site.client.get("/api/requests.csv", params=view))
    assert len(file) == screen["count"] == len(screen["rows"])
    on_screen = {row["turn_id"]: row for row in screen["rows"]}
    for entry in file:
        row = on_screen.pop(entry["turn_id"])
        for name in COLUMNS:
            assert entry[name] == cell(row[name]), name
    assert not on_screen
    lines = shared_site.client.get("/api/requests.jsonl", params=view).text.splitlines()
    expected = [{k: v for k, v in row.items() if k not in WHY} for row in screen["rows"]]
    assert sorted(map(json.loads, lines), key=lambda row: row["turn_id"]) == sorted(
        expected, key=lambda row: row["turn_id"]
    )


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_the_sums_of_the_file_are_the_figures_of_the_page(shared_site, data):
    source = new_source()
    shared_site.write(data.draw(rows(start=START_MS - HOUR, end=START_MS, source=source)))
    view = {"source": source}
    file = read_csv(shared_site.client.get("/api/requests.csv", params=view))
    summary = shared_site.get("/api/summary", **view)
    turns = [
        row for row in file
        if row["kind"] == "generation" and row["status"] in ("completed", "incomplete")
    ]  # fmt: skip
    known = [row for row in turns if row["input_tokens"] and row["cached_tokens"]]
    assert summary["turns"]["generation"] == len(turns)
    assert (summary["tokens"]["input"] or 0) == sum(int(row["input_tokens"]) for row in known)
    assert (summary["tokens"]["cached"] or 0) == sum(int(row["cached_tokens"]) for row in known)
    assert (summary["tokens"]["non_cached"] or 0) == sum(
        int(row["non_cached_tokens"]) for row in known
    )


def test_the_header_is_the_ledgers_columns_and_times_are_utc(site):
    site.write([make_row(started_at=START_MS - 1)])
    (row,) = read_csv(site.client.get("/api/requests.csv?tz=Europe/Berlin"))
    assert tuple(row) == COLUMNS
    assert all(row[name].endswith("Z") for name in TIME_COLUMNS)


def test_the_headers_name_range_and_schema(site):
    answer = site.client.get("/api/requests.csv?from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert answer.headers["x-ledger-schema"] == "1"
    name = "ledger_20261101T000000Z_20261102T000000Z.csv"
    disposition = answer.headers["content-disposition"]
    assert disposition == f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}"
    jsonl = site.client.get("/api/requests.jsonl")
    assert jsonl.headers["content-disposition"].endswith(".jsonl")


def test_an_empty_view_is_a_header_and_no_row(site):
    assert site.client.get("/api/requests.csv").text == ",".join(COLUMNS) + "\r\n"
    assert site.client.get("/api/requests.jsonl").text == ""


def test_a_formula_is_guarded_unless_raw_is_asked_for(site):
    site.write([make_row(session="=1+1", started_at=START_MS - 1)])
    guarded = site.client.get("/api/requests.csv?columns=session").text
    raw = site.client.get("/api/requests.csv?columns=session&raw=1").text
    assert (guarded, raw) == ("session\r\n'=1+1\r\n", "session\r\n=1+1\r\n")


def test_columns_come_in_the_order_asked_for(site):
    site.write([make_row(started_at=START_MS - 1)])
    answer = site.client.get("/api/requests.csv?columns=mode,turn_id")
    assert answer.text.startswith("mode,turn_id\r\nws_incremental,turn-")


def test_a_byte_order_mark_only_on_demand(site):
    assert site.client.get("/api/requests.csv?bom=1").content[:3] == b"\xef\xbb\xbf"
    assert site.client.get("/api/requests.csv").content[:4] == b"turn"


@pytest.mark.parametrize("query", ["columns=nothing", "bom=2", "raw=yes", "mod=ws_full", "limit=3"])
def test_what_cannot_be_read_is_an_error_before_any_byte(site, query):
    answer = site.client.get(f"/api/requests.csv?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_parameter")


def test_it_is_packed_only_for_whom_takes_it(site):
    site.write(make_row(started_at=START_MS - n) for n in range(1, 50))
    plain = site.client.get("/api/requests.csv", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with site.client.stream("GET", "/api/requests.csv") as answer:
        assert answer.headers["content-encoding"] == "gzip"
        body = b"".join(answer.iter_raw())
    assert gzip.decompress(body) == plain.content


def test_a_packed_stream_can_be_read_while_it_grows():
    reader = zlib.decompressobj(31)
    parts = packed(iter([b"first", b"second"]))
    assert reader.decompress(next(parts)) == b"first"
    assert reader.decompress(next(parts)) == b"second"


def test_a_long_file_comes_in_pieces(site):
    site.write(make_row(started_at=START_MS - n) for n in range(1, 3_501))
    with site.client.stream("GET", "/api/requests.csv", headers={"accept-encoding": ""}) as answer:
        pieces = list(answer.iter_raw())
    assert len(pieces) == 5  # the header, and one piece for each thousand rows
    assert b"".join(pieces).count(b"\r\n") == 3_501


def test_a_ledger_that_cannot_be_read_is_an_error_and_no_empty_file(site):
    with site.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE turns RENAME TO gone")
    answer = site.client.get("/api/requests.csv")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "ledger_unavailable")
