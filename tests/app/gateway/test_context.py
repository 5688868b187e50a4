from dataclasses import replace

from app.gateway.identity import Identity
from app.gateway.rows import Receipt, facts
from engine.model import EpochReason, Status
from engine.turn import session_key
from tests.support.fake_driver import ENGINE_KEY, Edge

WHO = Identity("tenant", "s", None, None, None, None, compaction=False, epoch_reset=None)


async def test_one_http_client_serves_all_and_ends_with_the_gateway():
    context = Edge().gateway._context
    client = context.http()
    assert context.http() is client
    await context.aclose()
    assert client.closed


def test_session_keys_are_the_engines():
    context = Edge().gateway._context
    assert context.session_key(WHO, "u", "s") == session_key(ENGINE_KEY, "tenant", "u", "s")


def test_a_compaction_without_a_session_is_told_to_nobody():
    edge = Edge()
    edge.gateway._context.compacted(replace(WHO, session=None), "u")
    assert list(edge.driver.sessions.scopes()) == []
    edge.gateway._context.compacted(WHO, "u")
    [scope] = edge.driver.sessions.scopes()
    assert scope.epoch("s").pending == EpochReason.COMPACTION


def test_a_ledger_that_fails_fails_no_turn(caplog):
    context = Edge().gateway._context

    def broken(_facts):
        raise RuntimeError("canary")

    context.on_turn = broken
    context.record(facts(context, Receipt.now(context, "u", "http"), WHO, Status.ERROR))
    assert "RuntimeError" in caplog.text
    assert "canary" not in caplog.text
