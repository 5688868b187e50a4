"""Faults from the field that lose rows, or tell of them wrongly (docs/field-reports.md)."""

import asyncio
import csv
import io
import json
import threading

import pytest
from sqlalchemy import Engine, event

from app import keys
from app.clock import SystemClock
from app.demo.provider.faults import NoResponseId
from app.importers import run as imports
from app.ledger.csv_export import write_csv, write_jsonl
from app.ledger.database import open_engine
from app.ledger.filters import parse
from app.ledger.queries import stream
from app.ledger.rows import COLUMNS, to_ms
from app.ledger.writer import LedgerWriter, write_rows
from tests.support.clock import START, ManualClock
from tests.support.importing import IDENTITY
from tests.support.ledger import everything
from tests.support.provider import AUTH, MODEL, provider
from tests.support.rows import START_MS, make_row
from tests.support.service import running, settings

LONG_AGO = "2000-01-01"


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


async def turn(live, text: str, *, streamed: bool = True) -> str:
    """One turn; returns the id that its answer carries."""
    body = {"model": MODEL, "input": text, "store": False, "stream": streamed}
    async with live.http.post(f"{live.url}/v1/responses", json=body, headers=AUTH) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()
        return answer.headers["x-warmline-turn"]


# --- exports that lose rows, or repeat them -------------------------------------------------------


def test_an_export_of_one_instant_is_whole_although_rows_keep_coming(engine: Engine):
    found = [make_row(turn_id=f"t{n}", model=f"m{n % 3}") for n in range(1_200)]
    write_rows(engine, found)
    seen = []
    for number, part in enumerate(stream(engine, everything(), columns=("turn_id",), chunk=500)):
        seen += part
        later = START_MS + number
        write_rows(engine, [make_row(), make_row(started_at=later), make_row(started_at=later - 1)])
    assert [(row.turn_id,) for row in found] == seen


def test_a_filter_that_few_rows_meet_ends_no_export_early(engine: Engine):
    rare = [make_row(turn_id=f"rare-{n}", model="rare") for n in range(3)]
    crowds = [[make_row() for _ in range(50)] for _ in rare]
    write_rows(
        engine, [row for one, crowd in zip(rare, crowds, strict=True) for row in (*crowd, one)]
    )
    view = parse([("from", LONG_AGO), ("model", "rare")], now=START + 60)
    found = [
        values for part in stream(engine, view, columns=("turn_id",), chunk=1) for values in part
    ]
    assert [(row.turn_id,) for row in rare] == found


# --- files that run formulas, or whose columns shift ----------------------------------------------


def test_text_that_a_spreadsheet_would_run_is_a_text_of_one_cell(engine: Engine):
    names = ["=1+1", "+x", "@x", "-2", "\tx", "\rx", 'a,"b"\nc', "plain"]
    write_rows(engine, [make_row(model=name, session=name, ttft_ms=-1.5) for name in names])
    text = b"".join(write_csv(stream(engine, everything()))).decode()
    cells = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert {len(COLUMNS)} == {len(line) for line in cells}
    told = records(text)
    kept = ("a", "p")
    assert [n if n.startswith(kept) else f"'{n}" for n in names] == [row["model"] for row in told]
    assert [row["model"] for row in told] == [row["session"] for row in told]
    assert {"-1.5"} == {row["ttft_ms"] for row in told}


# --- turns that cannot be told apart --------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_id_of_an_answer_is_that_of_its_row_and_of_every_export(tmp_path, streamed):
    async with provider() as up, running(settings(tmp_path, up.url)) as live:
        ids = [await turn(live, "hi", streamed=streamed) for _ in range(2)]
        assert ids[::-1] == [row["turn_id"] for row in await live.rows(2)]
        assert ids == [row["turn_id"] for row in records(await live.text("/api/requests.csv"))]
        lines = (await live.text("/api/requests.jsonl")).splitlines()
        assert ids == [json.loads(line)["turn_id"] for line in lines]
        assert ids[0] == (await live.get(f"/api/requests/{ids[0]}"))["row"]["turn_id"]
    assert len(set(ids)) == 2


async def test_answers_without_an_id_are_rows_of_their_own_and_their_id_is_unknown(tmp_path):
    async with provider() as up, running(settings(tmp_path, up.url)) as live:
        up.core.faults.on_request(NoResponseId(), times=3)
        sent = {
            await turn(live, "hi"),
            await turn(live, "hi"),
            await turn(live, "x", streamed=False),
        }
        rows = await live.rows(3)
        file = records(await live.text("/api/requests.csv"))
    assert sent == {row["turn_id"] for row in rows}
    assert [(None, "")] * 3 == [
        (row["response_id"], cell["response_id"]) for row, cell in zip(rows, file, strict=True)
    ]


def test_an_id_that_the_provider_uses_again_hides_no_row(engine: Engine):
    writer = LedgerWriter(engine, ManualClock())
    rows = [make_row(response_id="resp_1", turn_group="same", session="same") for _ in range(3)]
    for row in rows:
        writer.record(row)
    assert writer.close()
    found = [
        values for part in stream(engine, everything(), columns=("turn_id",)) for values in part
    ]
    assert [(row.turn_id,) for row in rows] == found


# --- a database that is locked --------------------------------------------------------------------


async def test_sixty_four_turns_during_an_export_and_an_import_all_succeed_and_are_all_kept(
    tmp_path, database, backend
):
    keys.load_or_create(tmp_path / "key")
    named = {"database": database, "key_file": str(tmp_path / "key")}
    begun = to_ms(SystemClock().now()) - 3_600_000
    file = tmp_path / "more.jsonl"
    brought = [make_row(started_at=begun + n, source="embedded").values() for n in range(1_500)]
    file.write_bytes(b"".join(write_jsonl([brought])))
    under_way, wanted, answered = asyncio.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold(_connection) -> None:
        """The import has written and does not end, as a large one does not for a while."""
        loop.call_soon_threadsafe(under_way.set)
        assert answered.wait(60)

    def bring_in() -> int:
        engine = open_engine(database)
        event.listen(engine, "commit", hold)
        try:
            return imports.run(engine, [file], SystemClock(), identity=IDENTITY).counts.new
        finally:
            engine.dispose()

    async def export(live) -> int:
        files = 0
        while not wanted.is_set() or not files:
            text = await live.text("/api/requests.csv?from=now-2h")
            assert text.endswith("\r\n")
            files += 1
        return files

    async with provider() as up, running(settings(tmp_path, up.url, **named)) as live:
        exporting = asyncio.create_task(export(live))
        importing = asyncio.create_task(asyncio.to_thread(bring_in))
        try:
            async with asyncio.timeout(60):
                await under_way.wait()
                sent = await asyncio.gather(*(turn(live, f"agent {n}") for n in range(64)))
        finally:
            answered.set()
            wanted.set()
        assert 1_500 == await importing
        assert await exporting
        assert live.service.writer is not None
        assert await asyncio.to_thread(live.service.writer.flush)
        state = live.service.writer.state()
        kept = records(await live.text("/api/requests.csv?from=now-2h&source=gateway"))
        whole = await live.get("/api/summary", **{"from": "now-2h"})
    assert sorted(sent) == sorted(row["turn_id"] for row in kept)
    assert {"completed"} == {row["status"] for row in kept}
    assert 1_564 == whole["turns"]["total"]
    assert (0, 0, 0) == (state.dropped, state.rejected, state.failures)
