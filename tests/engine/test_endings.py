"""How a turn is concluded: one row, whatever happens, and nothing left under way."""

from __future__ import annotations

from engine.endings import Endings
from engine.keeper import Keeper
from engine.model import Reason, Status
from engine.outcome import Ended
from engine.request import split
from engine.sessions import Bounds
from engine.turn import Call, Turn, Upstream
from tests.support.clock import ManualClock

BODY = b'{"model":"m","input":"hi"}'


def made(on_turn) -> tuple[Endings, Turn]:
    clock = ManualClock()
    keeper = Keeper(
        clock=clock,
        new_id=lambda prefix: prefix + "1",
        key=b"k",
        close=lambda connection: None,
        bounds=Bounds(),
    )
    endings = Endings(
        keeper=keeper, clock=clock, new_id=lambda prefix: prefix + "1", key=b"k", on_turn=on_turn
    )
    call = Call(
        turn_id="t",
        received_at=clock.now(),
        received_mono=clock.monotonic(),
        body=BODY,
        upstream=Upstream("default", "https://provider/v1"),
        tenant="a",
    )
    turn = Turn(call=call, request=split(BODY), scope=keeper.sessions.scope(("a", "default", None)))
    endings.begin(turn)
    return endings, turn


def test_a_turn_has_one_row_however_often_it_ends():
    rows = []
    endings, turn = made(rows.append)
    assert {"t": turn} == endings.active
    endings.emit(turn)
    endings.emit(turn)
    assert ["t"] == [row.turn_id for row in rows]
    assert ({}, 0, True) == (endings.active, turn.scope.turns, turn.ended)


def test_a_refusal_is_answered_as_it_is_and_its_code_recorded():
    rows = []
    endings, turn = made(rows.append)
    turn.reason = Reason.NO_BASELINE
    body = b'{"error":{"code":"slow_down"}}'
    answer = endings.finish(turn, Ended(503, body, [("retry-after", "1")], b"frame"))
    assert (503, body, [("retry-after", "1")], b"frame", Reason.NO_BASELINE) == (
        answer.status,
        answer.body,
        answer.headers,
        answer.frame,
        answer.reason,
    )
    assert ("slow_down", 503, Status.ERROR, "anon-1") == (
        rows[0].error_code,
        rows[0].http_status,
        rows[0].status,
        rows[0].session,
    )


def test_a_ledger_that_fails_does_not_fail_the_turn():
    def broken(row):
        raise OSError("full")

    endings, turn = made(broken)
    assert 500 == endings.finish(turn, Ended(500, b"")).status
    assert {} == endings.active


def test_an_answer_that_cannot_be_kept_still_has_its_row(monkeypatch):
    def broken(self, turn):
        raise RuntimeError("fault")

    monkeypatch.setattr(Keeper, "commit", broken)
    rows = []
    endings, turn = made(rows.append)
    turn.fold.feed(b'{"type":"response.completed","response":{"id":"r","status":"completed"}}')
    endings.conclude(turn)
    assert [Status.COMPLETED] == [row.status for row in rows]
    assert {} == turn.scope.anchors
