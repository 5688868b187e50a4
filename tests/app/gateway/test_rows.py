from app.gateway.identity import Identity
from app.gateway.rows import Receipt, facts, record_refusal, turn_headers
from app.gateway.wire import Refusal
from engine.model import Kind, Mode, Reason, Status
from engine.turn import session_key
from tests.support.fake_driver import ENGINE_KEY, Edge

WHO = Identity("tenant", "s", "root", "turn", "codex", "1.0", compaction=False, epoch_reset=None)


def test_a_row_has_the_times_and_the_identity_of_its_request():
    edge = Edge()
    context = edge.gateway._context
    receipt = Receipt.now(context, "azure", "ws")
    edge.clock.advance(2.5)
    row = facts(context, receipt, WHO, Status.ERROR, http_status=502)
    assert (row.ended_at - row.started_at, row.duration_ms) == (2.5, 2500)
    assert (row.turn_id, row.upstream, row.client_transport) == (receipt.turn_id, "azure", "ws")
    assert (row.session, row.root_session, row.turn_group) == ("s", "root", "turn")
    assert (row.client, row.client_version, row.http_status) == ("codex", "1.0", 502)
    assert row.session_key == session_key(ENGINE_KEY, "tenant", "azure", "s")


def test_a_refusal_is_a_row_with_its_status_and_code():
    edge = Edge()
    context = edge.gateway._context
    record_refusal(context, Receipt.now(context, "u", "http"), WHO, Refusal(413, "c", "m"))
    [row] = edge.facts
    assert (row.kind, row.status, row.http_status, row.error_code) == (
        Kind.GENERATION,
        Status.REFUSED,
        413,
        "c",
    )


def test_a_turn_that_was_not_sent_has_no_mode():
    assert dict(turn_headers("t1")) == {
        b"x-warmline-turn": b"t1",
        b"x-warmline-mode": b"none",
        b"x-warmline-reason": b"none",
    }
    found = dict(turn_headers("t1", Mode.WS_FULL, Reason.NO_BASELINE))
    assert (found[b"x-warmline-mode"], found[b"x-warmline-reason"]) == (b"ws_full", b"no_baseline")
