"""What the upstream says about one turn in the midst of a run, and what Codex makes of the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.demo.provider import faults
from tests.support.codex import Codex
from tests.support.stack import Stack, stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(150)]

WIRES = pytest.mark.parametrize("websocket", [True, False], ids=["ws", "http"])
Told = tuple[Any, ...]


def third_turn_meets(it: Stack, fault: faults.RequestFault) -> None:
    """The third request on the first connection; it continues the second."""
    it.up.core.faults.on_request(fault, connection=0, nth=2)


def told(it: Stack) -> list[Told]:
    """From the turn that met the fault on."""
    rows = it.rows()[2:]
    return [(r.mode, r.reason, r.fallback_reason, r.status, r.attempts) for r in rows]


SENT_AGAIN: dict[str, tuple[faults.RequestFault, Told]] = {
    "previous_response_not_found": (
        faults.previous_response_not_found(),
        ("ws_full", "previous_response_not_found", None, "completed", 2),
    ),
    "previous_response_not_found in response.failed": (
        faults.previous_response_not_found(shape="failed"),
        ("ws_full", "previous_response_not_found", None, "completed", 2),
    ),
    "connection limit": (
        faults.connection_limit_reached(),
        ("ws_full", "connection_lost", "limit_reached", "completed", 2),
    ),
    "close 1009": (
        faults.close(1009),
        ("http_full", "payload_too_large", "closed_1009", "completed", 2),
    ),
}


@WIRES
@pytest.mark.parametrize("name", SENT_AGAIN)
def test_a_turn_that_was_not_processed_is_sent_again_unnoticed(
    tmp_path: Path, name: str, websocket: bool
) -> None:
    fault, expected = SENT_AGAIN[name]
    with stack(tmp_path) as it:
        third_turn_meets(it, fault)
        result = Codex(tmp_path, it.url, websocket=websocket).run("run echo hi 3 times")
        rows = it.rows()

        assert result.code == 0, result.errors
        assert not [event for event in result.events if event["type"] == "error"]
        assert len(result.named("command_execution")) == 3
        assert told(it)[0] == expected
        assert rows[2].items_sent == rows[2].items_total
        assert len(it.tap.exchanges) == len(rows)  # the client asked each of its turns once
        assert it.up.core.faults.pending == 0
        assert it.checked() == len(rows)


FAILED: dict[str, tuple[faults.RequestFault, str]] = {
    "response.failed": (faults.ErrorFrame(code="server_error", shape="failed", after=2), "failed"),
    "an error frame": (faults.ErrorFrame(code="server_error"), "error"),
}


@WIRES
@pytest.mark.parametrize("name", FAILED)
def test_a_failed_turn_reaches_codex_whose_next_attempt_is_full(
    tmp_path: Path, name: str, websocket: bool
) -> None:
    fault, status = FAILED[name]
    with stack(tmp_path) as it:
        third_turn_meets(it, fault)
        result = Codex(tmp_path, it.url, websocket=websocket).run("run echo hi 3 times")
        rows = it.rows()

        assert result.code == 0, result.errors
        assert told(it)[:2] == [
            ("ws_incremental", "ok", None, status, 1),
            ("ws_full", "connection_lost", "after_failed", "completed", 1),
        ]
        assert rows[2].error_code == "server_error"
        assert it.checked() == len(rows) - 1


@WIRES
def test_a_rate_limit_reaches_codex_with_its_status(tmp_path: Path, websocket: bool) -> None:
    limit = faults.ErrorFrame(
        code="rate_limit_exceeded", message="Slow down.", status=429, kind="rate_limit_error"
    )
    with stack(tmp_path) as it:
        third_turn_meets(it, limit)
        result = Codex(tmp_path, it.url, websocket=websocket).run("run echo hi 3 times")
        rows = it.rows()

        assert result.code == 1
        assert "429" in str(result.events[-1])
        assert (rows[-1].status, rows[-1].http_status) == ("rate_limited", 429)
        assert rows[-1].error_code == "rate_limit_exceeded"
        assert it.checked() == 2
