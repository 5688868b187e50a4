"""Logs of every format with a secret wherever its tool writes what was said, done or known: none of
it comes into the ledger, and a value that is nothing of what it should be ends no import."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.importers import report as reports
from app.importers.formats import IMPORTERS, detect
from app.importers.importer import NotReadable
from app.ledger.database import prepare
from tests.support.importing import IDENTITY, imported
from tests.support.rollouts import Rollout, usage

CANARY = "c4n4ry"
AT = "2026-11-01T10:00:00.000Z"
SAID = [{"type": "text", "text": CANARY, CANARY: CANARY}]


def codex() -> bytes:
    file = Rollout(cwd=f"/{CANARY}", git={"branch": CANARY}, base_instructions={"text": CANARY})
    file.started("t").context(cwd=CANARY, user_instructions=CANARY, summary=CANARY)
    file.line("response_item", {"type": "message", "role": "user", "content": SAID})
    file.line("response_item", {"type": "function_call", "name": CANARY, "arguments": CANARY})
    file.line("response_item", {"type": "function_call_output", "output": CANARY})
    file.event("user_message", message=CANARY).event("agent_message", message=CANARY)
    file.counted(usage(100)).line("compacted", {"message": CANARY, "replacement_history": SAID})
    file.line("unheard_of", {"text": CANARY}).raw(b'{"torn":"' + CANARY.encode())
    file.raw(json.dumps({"type": "message", "content": SAID}).encode())
    file.event("error", message=CANARY, codex_error_info={"bad_request": {"detail": CANARY}})
    file.answered().done("t", last_agent_message=CANARY, error={"message": CANARY})
    return b"".join(line + b"\n" for line in file.lines)


CLAUDE = {
    "type": "assistant", "uuid": "u", "sessionId": "s", "timestamp": AT, "cwd": CANARY,
    "gitBranch": CANARY, "requestId": "r", "toolUseResult": CANARY,
    "message": {"id": "m", "model": "claude", "content": SAID,
                "usage": {"input_tokens": 5, "output_tokens": 1}},
}  # fmt: skip
PI: list[dict[str, Any]] = [
    {"type": "session", "id": "s", "timestamp": AT, "cwd": CANARY, "title": CANARY},
    {"type": "message", "id": "b", "timestamp": AT, "message": {"role": "user", "content": SAID}},
    {"type": "compaction", "id": "d", "timestamp": AT, "summary": CANARY},
    {"type": "message", "id": "c", "timestamp": AT, "message": {
        "role": "assistant", "content": SAID, "errorMessage": CANARY, "stopReason": "error",
        "model": "m", "usage": {"input": 5, "output": 1}}},
]  # fmt: skip
LINGTAI = {
    "ts": AT, "input": 5, "output": 1, "model": "m", "api_call_id": "a", "prompt": CANARY,
    "endpoint": f"https://u:{CANARY}@host/{CANARY}?key={CANARY}",
    "codex_fallback_error_type": CANARY, "codex_fallback_error_message": CANARY,
    "codex_account_id_sha8": CANARY,
}  # fmt: skip
EVENTS = {"type": "llm_response", "ts": 1.0, "api_call_id": "a", "text": CANARY}
LITELLM = {
    "request_id": "r", "startTime": AT, "endTime": AT, "prompt_tokens": 5, "completion_tokens": 1,
    "api_base": f"https://u:{CANARY}@host/{CANARY}?key={CANARY}", "api_key": CANARY,
    "messages": SAID, "response": SAID, "proxy_server_request": {"body": CANARY}, "user": CANARY,
    "end_user": CANARY, "request_tags": [CANARY], "requester_ip_address": CANARY,
    "metadata": {"status": "failure", "user_api_key": CANARY, "error_information": {
        "error_class": "APIError", "error_message": CANARY, "traceback": CANARY}},
}  # fmt: skip
RESPONSES = {
    "object": "response", "id": "resp", "created_at": 1_790_000_000, "status": "failed",
    "instructions": CANARY, "output": SAID, "metadata": {CANARY: CANARY}, "user": CANARY,
    "error": {"code": "server_error", "message": CANARY}, "usage": {"input_tokens": 5},
}  # fmt: skip
NEUTRAL = {"t": AT, "input": 5, "output": CANARY, "prompt": CANARY}
OWN = {"turn_id": "t", "started_at": AT, "kind": CANARY, "prompt": CANARY}


def jsonl(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


FILES = {
    "codex": codex(),
    "claude-code": jsonl(CLAUDE, CLAUDE | {"timestamp": CANARY}),
    "pi": jsonl(*PI),
    "lingtai": jsonl(LINGTAI, LINGTAI | {"ts": CANARY}),
    "litellm": json.dumps([LITELLM, LITELLM | {"startTime": CANARY}]).encode(),
    "responses": jsonl(RESPONSES, RESPONSES | {"status": CANARY}, {"type": CANARY}),
    "neutral": jsonl(NEUTRAL, {"t": AT, "input": 5}, {"t": CANARY, "input": 1}),
    "jsonl": jsonl(OWN),
    "csv": f"turn_id,started_at,prompt\nt,{CANARY},{CANARY}\n".encode(),
}


def holds_canary(ledger: Path) -> bool:
    files = (ledger, Path(f"{ledger}-wal"))
    return any(path.exists() and CANARY.encode() in path.read_bytes() for path in files)


def test_no_secret_of_a_log_comes_into_the_ledger_or_into_what_is_told_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / CANARY
    for name, data in FILES.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "log").write_bytes(data)
    (folder / "lingtai" / "events.jsonl").write_bytes(jsonl(EVENTS))
    ledger = tmp_path / "ledger.db"
    engine = prepare(str(ledger))
    report = imported(engine, folder)
    engine.dispose()
    assert {one.name for one in IMPORTERS} == {file.format for file in report.files}
    brought = {file.format for file in report.files if file.counts.new}
    assert {one.name for one in IMPORTERS} - {"jsonl", "csv"} == brought
    assert not holds_canary(ledger)
    assert [] == [line for line in (*reports.text(report), caplog.text) if CANARY in line]


@pytest.mark.parametrize("hidden", [False, True])
def test_names_that_a_client_chose_come_into_no_ledger_that_hides_them(
    tmp_path: Path, hidden: bool
) -> None:
    log, ledger = tmp_path / f"{CANARY}.jsonl", tmp_path / "ledger.db"
    names = dict.fromkeys(("chain", "session", "root", "turn", "cache_key"), CANARY)
    log.write_bytes(jsonl({"t": AT, "input": 5, **names}))
    engine = prepare(str(ledger))
    assert 1 == imported(engine, log, identity=replace(IDENTITY, pseudonymize=hidden)).counts.new
    engine.dispose()
    assert hidden != holds_canary(ledger)


OTHER: list[Any] = [None, True, -1, 2**63, 1e308, "", "\x00", [], {}, ["type"], {"type": []}]


def changed(value: Any) -> Iterator[Any]:
    """The value with another one in each of its places, one at a time."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            for other in [*OTHER, *changed(value[key])]:
                copy = value.copy()
                copy[key] = other
                yield copy


@pytest.mark.parametrize("name", [name for name in FILES if name != "csv"])
def test_whatever_stands_in_a_record_it_is_read_or_told(name: str) -> None:
    (importer,) = (one for one in IMPORTERS if one.name == name)
    found = importer.split(io.BufferedReader(io.BytesIO(FILES[name])))
    records = [json.loads(line.data) for line in found if line.data.endswith(b"}")]
    lines = [json.dumps(other).encode() for record in records for other in changed(record)]
    assert len(lines) > 40
    for line in lines:
        with contextlib.suppress(NotReadable):
            detect(line)
    whole = io.BufferedReader(io.BytesIO(FILES[name] + b"\n" + b"\n".join(lines)))
    assert list(importer.read(importer.split(whole)))
