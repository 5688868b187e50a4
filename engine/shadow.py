"""``continuation = "observe"``: decide as if, keep anchors as if, and change nothing.

A chain in the shadow is like any other but for its connection, which does not exist: turns take it,
lease it and commit to it, so that the row can say what a WebSocket would have done. What goes
upstream is the client's own, and no part of it depends on what is decided here (DESIGN 4.7).
"""

from __future__ import annotations

from collections.abc import Callable

from engine import kept
from engine.chain import Chain, stage
from engine.errors import NotKept
from engine.keeper import Keeper
from engine.model import Kind, Mode, Reason
from engine.outcome import Ended
from engine.request import own_copy
from engine.transports.base import Clock
from engine.turn import Turn, is_understood

NO_CONNECTION = ""
"""The name of the connection of a chain in the shadow."""


class Shadow:
    def __init__(self, *, keeper: Keeper, clock: Clock, new_id: Callable[[str], str]) -> None:
        self._keeper, self._clock, self._new_id = keeper, clock, new_id

    def cast(self, turn: Turn) -> None:
        """Note what the client sends by itself, then what Warmline would have made of it."""
        request, call = turn.request, turn.call
        named = None if request is None else request.text("previous_response_id")
        turn.observed = True
        turn.previous_response_id = named
        turn.items_sent = None if request is None else len(request.items)
        turn.reason = Reason.CONTINUATION_OFF if named is None else Reason.CLIENT_ANCHORED
        # What a client sends by itself over HTTP, and what is not understood, would stay as it is.
        over_http = call.transport != "ws"
        turn.shadow = (_mode(over_socket=not over_http, named=named), turn.reason)
        if (
            request is None
            or not is_understood(request)
            or not kept.covers(call.upstream.policy.models, request.text("model"))
            or (over_http and turn.kind is Kind.WARMUP)
        ):
            if call.epoch_reset and turn.session:
                self._keeper.reset_by_call(turn)
            return
        if named is not None:
            try:
                is_known = self._keeper.expand(turn, named)
            except Ended:  # continued, it would be refused here; so the provider has to say it
                turn.refused = False
                return
            if not is_known:
                if not over_http:
                    self._take_named(turn, named)
                if call.epoch_reset and turn.session:
                    self._keeper.reset_by_call(turn)
                return
        if call.epoch_reset:
            self._keeper.reset_by_call(turn)
        reason = turn.reason
        try:
            self._keeper.settle(turn)
        except NotKept:  # then the provider alone knows what the client named
            turn.request, turn.anchored = request, False
            return
        assert turn.reason is not None
        chain = self._take(turn)
        fields, freeze = own_copy(turn.understood.fields), call.upstream.policy.freeze
        turn.staged = stage(turn.understood.items, fields, chain.anchor, freeze)
        mode = Mode.WS_FULL if chain.anchor is None else Mode.WS_INCREMENTAL
        turn.shadow = (mode, turn.reason)
        turn.reason, turn.fallback = reason, None

    def _take_named(self, turn: Turn, named: str) -> None:
        """What the client continues by itself is on the chain that holds it, or on a new one."""
        found = self._keeper.sessions.find(named, turn.scope.key)
        chain = None if found is None else found[1].chain
        identity = self._keeper.sender(turn).identity
        if chain is not None and chain.free_for(turn.call.socket, identity):
            chain.stage(self._clock.monotonic())
            self._keeper.sessions.move(chain, turn.scope)
            turn.chain = chain
        else:
            self._open(turn)

    def _take(self, turn: Turn) -> Chain:
        now = self._clock.monotonic()
        if turn.plan is not None and turn.plan.candidates:
            chain = turn.plan.candidates[0]
            chain.stage(now)
            turn.chain = chain
            return chain
        return self._open(turn)

    def _open(self, turn: Turn) -> Chain:
        now = self._clock.monotonic()
        turn.chain = chain = Chain(
            id=self._new_id("ch_"),
            connection=NO_CONNECTION,
            handshake=self._keeper.sender(turn).identity,
            opened=now,
            last_used=now,
        )
        turn.scope.chains[chain.id] = chain
        return chain


def _mode(*, over_socket: bool, named: str | None) -> Mode:
    if over_socket:
        return Mode.WS_FULL if named is None else Mode.WS_INCREMENTAL
    return Mode.HTTP_FULL if named is None else Mode.HTTP_INCREMENTAL
