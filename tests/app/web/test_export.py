import csv
import gzip
import io
import json
from functools import partial

import anyio
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.middleware import Middleware

from app.ledger.rows import COLUMNS, TIME_COLUMNS
from app.web import export, faults
from app.web.export import Bounds, ReaderTooSlow, router
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


@pytest.mark.parametrize(
    "query",
    ["columns=nothing", "bom=2", "raw=yes", "pseudonymize=yes", "mod=ws_full", "limit=3"],
)
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


def test_names_are_hashed_as_the_setting_would_hash_them(site):
    site.write([make_row(session="=name", turn_group="g", model="m", started_at=START_MS - 1)])
    query = "columns=session,turn_group,root_session,model&pseudonymize=1"
    hashed = [site.web.pseudonym("=name"), site.web.pseudonym("g")]
    csv_file = site.client.get(f"/api/requests.csv?{query}").text
    assert csv_file.splitlines()[1] == f"{hashed[0]},{hashed[1]},,m"
    (line,) = site.client.get(f"/api/requests.jsonl?{query}").text.splitlines()
    assert list(json.loads(line).values()) == [*hashed, None, "m"]


def test_names_are_never_shown_because_there_is_no_key(site):
    site.web.keys = None
    answer = site.client.get("/api/requests.csv?pseudonymize=1")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")


def test_a_head_says_how_many_rows_the_file_would_hold(site):
    site.write(make_row(started_at=START_MS - n, model="ab"[n % 2]) for n in range(1, 8))
    for path in ("/api/requests.csv", "/api/requests.jsonl"):
        head = site.client.head(f"{path}?model=b")
        assert (head.status_code, head.content, head.headers["x-ledger-rows"]) == (200, b"", "4")
        whole = site.client.get(f"{path}?model=b", headers={"accept-encoding": "identity"})
        assert {*head.headers} == {*whole.headers, "x-ledger-rows"}
        assert site.client.head(f"{path}?columns=nothing").status_code == 400


def test_nothing_is_left_out_and_nothing_says_so(site):
    site.write(make_row(started_at=START_MS - n) for n in range(1, 2_100))
    answer = site.client.get("/api/requests.csv?columns=turn_id")
    assert len({row["turn_id"] for row in read_csv(answer)}) == 2_099
    assert "x-truncated" not in answer.headers


def test_the_zone_shifts_the_window_and_never_an_instant(site):
    site.write([make_row(turn_id="t", started_at=START_MS)])  # 08:00 UTC, 09:00 in Berlin
    query = "from=2027-01-15T08:30&to=2027-01-15T09:30&columns=turn_id,started_at"
    assert len(read_csv(site.client.get(f"/api/requests.csv?{query}"))) == 0
    answer = site.client.get(f"/api/requests.csv?{query}&tz=Europe/Berlin")
    assert read_csv(answer) == [{"turn_id": "t", "started_at": "2027-01-15T08:00:00.000Z"}]
    assert "ledger_20270115T073000Z_20270115T083000Z.csv" in answer.headers["content-disposition"]


# --- what a reader may take ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "begins"), [("/api/requests.csv", b"turn_id,"), ("/api/requests.jsonl", b"")]
)
def test_a_reader_gets_the_head_of_the_file_before_any_row_is_looked_for(
    site, monkeypatch, path, begins
):
    head, looked = [], []

    def never(*_arguments):
        looked.append(len(head))
        return iter(())

    monkeypatch.setattr("app.ledger.exporting._body", never)

    async def send(message):
        head.append(message)

    anyio.run(partial(read, path=path), site.app, send)
    assert (looked, head[1]["body"][:8]) == ([2], begins)


async def read(app, send, receive=anyio.sleep_forever, path="/api/requests.csv"):
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [(b"host", b"127.0.0.1:8787")], "scheme": "http",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8787), "http_version": "1.1",
    }  # fmt: skip
    await app(scope, receive, send)


@pytest.fixture
def files(site):
    """The routes alone with bounds of a test's own; tells how many snapshots are open."""
    site.write(make_row(started_at=START_MS - n) for n in range(1, 2_100))
    opened = []
    begin = export.export

    def counted(*arguments):
        parts = begin(*arguments)
        opened.append(parts)
        return parts

    def make(**bounds):
        app = FastAPI(middleware=[Middleware(faults.Faults)])
        faults.install(app)
        app.include_router(router(site.web, Bounds(**bounds)))
        return app

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "export", counted)
        yield make, lambda: sum(parts.gi_frame is not None for parts in opened)


@pytest.mark.parametrize("bounds", [{"patience": 0.05}, {"whole": 0.3}])
def test_a_reader_that_stops_reading_is_cut_off_and_holds_no_snapshot(files, bounds):
    make, snapshots = files
    sent, held = [], []

    async def stuck(message):
        sent.append(message)
        if len(sent) == 3:
            held.append(snapshots())
            await anyio.sleep_forever()

    with pytest.raises(ReaderTooSlow):
        anyio.run(read, make(**bounds), stuck)
    assert (held, snapshots()) == ([1], 0)
    assert all(message.get("more_body", True) for message in sent)  # it was not said to be whole


def test_a_reader_that_leaves_holds_no_snapshot(files):
    make, snapshots = files
    held = []

    async def main():
        gone = anyio.Event()

        async def send(message):
            if message["type"] == "http.response.body":
                held.append(snapshots())
                gone.set()
                await anyio.sleep_forever()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        await read(make(), send, receive)

    anyio.run(main)
    assert (held, snapshots()) == ([1], 0)


def test_a_reader_that_left_before_the_first_byte_holds_nothing(files):
    make, snapshots = files
    app = make(at_once=1)
    sent = []

    async def send(message):
        sent.append(message)

    async def gone():
        return {"type": "http.disconnect"}

    async def main():
        for _ in range(2):
            await read(app, send, gone)

    anyio.run(main)
    assert snapshots() == 0
    assert 503 not in [message.get("status") for message in sent]


def test_no_more_exports_at_once_than_there_may_be(files):
    make, _ = files
    app = make(at_once=2)
    answers = []

    async def main():
        begun, end = anyio.Event(), anyio.Event()
        waiting = []

        async def slow(message):
            waiting.append(message)
            if len(waiting) == 2:
                begun.set()
            await end.wait()

        async def keep(message):
            answers.append(message)

        async with anyio.create_task_group() as group:
            group.start_soon(read, app, slow)
            group.start_soon(read, app, slow)
            await begun.wait()
            await read(app, keep)
            end.set()
        await read(app, keep)

    anyio.run(main)
    refused, answered = (message for message in answers if message["type"] == "http.response.start")
    assert (refused["status"], answered["status"]) == (503, 200)
    assert b"too_many_exports" in answers[1]["body"]


def test_an_export_that_could_not_begin_is_not_counted(site, monkeypatch):
    with site.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE turns RENAME TO gone")
    for _ in range(Bounds().at_once + 1):
        error = site.client.get("/api/requests.csv").json()["error"]
        assert error["code"] == "ledger_unavailable"
