from app.gateway.calls import call_of
from app.gateway.identity import Identity
from app.gateway.rows import Receipt
from app.gateway.upstreams import Target
from engine.driver import Upstream


def test_a_call_holds_what_was_received_and_who_sent_it():
    upstream = Upstream("u", "https://h.example/v1")
    memory = {}
    call = call_of(
        Receipt("t1", 10.0, 20.0, "u", "ws"),
        Target(upstream, "/responses"),
        b"{}",
        Identity("tenant", "s", "root", "turn", "codex", "1.0", compaction=True, epoch_reset="x"),
        (("a", "b"),),
        transport="ws",
        socket="socket_1",
        epoch_reset="summarize",
        memory=memory,
    )
    assert (call.turn_id, call.received_at, call.received_mono) == ("t1", 10.0, 20.0)
    assert (call.body, call.upstream, call.headers) == (b"{}", upstream, (("a", "b"),))
    assert (call.tenant, call.session, call.root_session) == ("tenant", "s", "root")
    assert (call.turn_group, call.client, call.client_version) == ("turn", "codex", "1.0")
    assert (call.transport, call.socket, call.compaction) == ("ws", "socket_1", True)
    assert call.epoch_reset == "summarize"
    assert call.memory is memory
