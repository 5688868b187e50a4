"""What Codex and the ledger get when the upstream refuses or breaks its WebSockets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.demo.provider import faults
from tests.support import provider
from tests.support.codex import Codex
from tests.support.stack import Stack, stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(150)]

WIRES = pytest.mark.parametrize("websocket", [True, False], ids=["ws", "http"])
RETRY_AFTER = (("retry-after", "1"),)


def refusing(status: int, times: int | None = None) -> Callable[[provider.Running], None]:
    def prepare(up: provider.Running) -> None:
        fault = faults.RefuseUpgrade(status, headers=RETRY_AFTER if status == 429 else ())
        up.core.faults.on_upgrade(fault, times=times)

    return prepare


def warmups(websocket: bool) -> int:
    return 1 if websocket else 0


@WIRES
@pytest.mark.parametrize("status", [426, 404])
def test_an_upstream_without_websockets_serves_over_http(
    tmp_path: Path, status: int, websocket: bool
) -> None:
    with stack(tmp_path, prepare=refusing(status)) as it:
        result = Codex(tmp_path, it.url, websocket=websocket).run("run echo hi 2 times")
        rows = it.rows()

        assert result.code == 0, result.errors
        assert len(result.named("command_execution")) == 2
        turns = rows[warmups(websocket) :]
        assert [row.kind for row in turns] == 3 * ["generation"]
        assert {(row.mode, row.reason, row.fallback_reason) for row in turns} == {
            ("http_full", "ws_rejected", f"upgrade_{status}")
        }
        assert {row.eligible for row in turns} == {False}
        assert [row.items_sent for row in turns] == [row.items_total for row in turns]
        # Asked once, then remembered.
        assert [upgrade.status for upgrade in it.up.core.upgrades] == [status]
        assert it.checked() == len(rows)


def test_a_warm_up_is_answered_here_where_the_upstream_has_only_http(tmp_path: Path) -> None:
    with stack(tmp_path, prepare=refusing(426)) as it:
        Codex(tmp_path, it.url, websocket=True).run("hello")
        warm, turn = it.rows()

        assert (warm.kind, warm.mode, warm.items_sent) == ("warmup", None, None)
        assert it.tap.exchanges[1].body["previous_response_id"] == warm.response_id
        assert turn.items_sent == 4
        assert [attempt.transport for attempt in it.up.core.log] == ["sse"]


@WIRES
def test_a_server_error_at_the_upgrade_is_retried_once_then_http(
    tmp_path: Path, websocket: bool
) -> None:
    with stack(tmp_path, prepare=refusing(500)) as it:
        result = Codex(tmp_path, it.url, websocket=websocket).run("hello")
        rows = it.rows()

        assert result.code == 0, result.errors
        turn = rows[-1]
        assert (turn.mode, turn.reason, turn.fallback_reason) == (
            "http_full",
            "ws_unavailable",
            "upgrade_500",
        )
        assert len(it.up.core.upgrades) == 2 * len(rows)
        assert it.checked() == len(rows)


def test_a_server_error_at_one_upgrade_is_not_felt(tmp_path: Path) -> None:
    with stack(tmp_path, prepare=refusing(500, times=1)) as it:
        result = Codex(tmp_path, it.url).run("run echo hi")
        rows = it.rows()

        assert result.code == 0, result.errors
        assert [row.mode for row in rows] == ["ws_full", "ws_incremental"]
        assert [upgrade.status for upgrade in it.up.core.upgrades] == [500, 101]


@WIRES
@pytest.mark.parametrize(("status", "outcome"), [(401, "error"), (429, "rate_limited")])
def test_a_refused_credential_or_limit_reaches_the_client(
    tmp_path: Path, status: int, outcome: str, websocket: bool
) -> None:
    with stack(tmp_path, prepare=refusing(status)) as it:
        result = Codex(tmp_path, it.url, websocket=websocket).run("hello")
        rows = it.rows()

        assert result.code == 1
        assert any(str(status) in str(event) for event in result.events)
        assert {(row.status, row.http_status, row.mode) for row in rows} == {
            (outcome, status, None)
        }
        assert it.up.core.log == []  # no turn was sent
        if not websocket:
            assert {exchange.status for exchange in it.tap.exchanges} == {status}


@WIRES
def test_a_stream_cut_in_the_middle_is_one_failure_and_served_again(
    tmp_path: Path, websocket: bool
) -> None:
    def prepare(up: provider.Running) -> None:
        up.core.faults.on_request(
            faults.abort(after="response.output_text.delta"),
            when=lambda attempt: attempt.body.get("generate") is not False,
        )

    with stack(tmp_path, prepare=prepare) as it:
        result = Codex(tmp_path, it.url, websocket=websocket).run("hello")
        lost, served = it.rows()[warmups(websocket) :]

        assert result.code == 0, result.errors
        assert result.last.startswith("Done:")
        mode = "ws_incremental" if websocket else "ws_full"  # on top of the warm-up
        assert (lost.status, lost.mode, lost.error_code) == ("error", mode, "connection_lost")
        broken = it.tap.exchanges[warmups(websocket)]
        assert [e["type"] for e in broken.events].count("response.failed") == 1
        assert (served.status, served.mode) == ("completed", "ws_full")
        assert_answered(it)


@WIRES
def test_a_connection_lost_before_the_first_event_is_no_second_run(
    tmp_path: Path, websocket: bool
) -> None:
    def prepare(up: provider.Running) -> None:
        up.core.faults.on_request(
            faults.abort(after=0), when=lambda attempt: attempt.body.get("generate") is not False
        )

    with stack(tmp_path, prepare=prepare) as it:
        result = Codex(tmp_path, it.url, websocket=websocket).run("hello")
        lost, served = it.rows()[warmups(websocket) :]

        assert result.code == 0, result.errors
        assert (lost.status, lost.http_status, lost.attempts) == ("error", 502, 1)
        assert (served.status, served.mode) == ("completed", "ws_full")
        assert_answered(it)


def assert_answered(it: Stack) -> None:
    """Every turn with an answer was compared, and there were some."""
    completed = [row for row in it.rows() if row.status == "completed"]
    assert it.checked() == len(completed) > 0
