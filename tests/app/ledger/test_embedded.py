"""What an embedded session tells of its turns becomes rows like any other."""

import pytest
from sqlalchemy import Engine

from app.ledger.facts import to_row
from app.ledger.filters import parse
from app.ledger.queries import stream
from app.ledger.rows import TurnRow
from app.ledger.writer import LedgerWriter
from engine.errors import TurnFailed
from engine.testing import Fail, function_call
from tests.support.clock import START
from tests.support.clock import ManualClock as LedgerClock
from tests.support.embedded import Rig, gave, said, session


def recorded(engine: Engine, **filters: str) -> list[TurnRow]:
    chosen = parse([("from", "now-1h"), *filters.items()], now=START + 1800)
    found = (values for chunk in stream(engine, chosen) for values in chunk)
    return [TurnRow.of(values) for values in found]


async def test_turns_of_an_embedded_session_are_rows_of_the_ledger(engine: Engine):
    writer = LedgerWriter(engine, LedgerClock())
    rig = Rig(function_call("f", "a"), "first", Fail("overloaded", status=503), "second")

    def record(facts):
        writer.record(to_row(facts, gateway_version=None))

    rig.session = session(rig.upstream, clock=rig.clock, on_turn=record)
    await rig.turn(said("go"))
    rig.clock.advance(1)
    await rig.turn(gave("a", "seen"))
    rig.history[2]["output"] = "moved"
    rig.clock.advance(1)
    with pytest.raises(TurnFailed):
        await rig.turn(said("more"))
    rig.clock.advance(1)
    await rig.turn()
    writer.close(timeout=10)

    rows = recorded(engine, source="embedded")
    assert [
        ("completed", "ws_full", "no_baseline", 0),
        ("completed", "ws_incremental", "ok", 0),
        ("error", "ws_incremental", "ok", 1),
        ("completed", "ws_full", "connection_lost", 1),
    ] == [(row.status, row.mode, row.reason, row.frozen_items) for row in rows]
    assert rows[1].prefix_digest == rows[0].baseline_digest
    assert rows[1].previous_response_id == rows[0].response_id
    assert {("agent-7", "test-agent", "embedded", "agent-7")} == {
        (row.session, row.client, row.client_transport, row.prompt_cache_key) for row in rows
    }
    assert 1 == len({row.session_key for row in rows})
    assert rows[0].input_tokens > 0
    assert [] == recorded(engine, source="gateway")
