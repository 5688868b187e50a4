"""The gateway as an ASGI application: which route a request takes.

It is pure ASGI, without a framework's request and response objects: every event of every stream
passes here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from app.clock import Clock
from app.gateway import compaction, http_turns, passthrough, ws_turns
from app.gateway.access import HostPolicy, check
from app.gateway.context import MIB, Context
from app.gateway.head import head_of
from app.gateway.resets import Reset, reset_epoch
from app.gateway.upstreams import Route, Target, Upstreams
from app.gateway.wire import Receive, Refusal, Scope, Send, refuse, refuse_upgrade
from app.keys import Keys
from engine.driver import Driver
from engine.model import TurnFacts
from engine.transports.base import WebSocketTransport

logger = logging.getLogger(__name__)


class Gateway:
    """Serves the paths of DESIGN 5. Ask ``handles`` first: other paths are not for it."""

    def __init__(
        self,
        *,
        driver: Driver,
        engine_key: bytes,
        upstreams: Upstreams,
        keys: Keys,
        clock: Clock,
        new_id: Callable[[str], str],
        on_turn: Callable[[TurnFacts], None],
        hosts: HostPolicy,
        websocket: WebSocketTransport,
        gateway_token: str | None = None,
        max_body_bytes: int = 64 * MIB,
        on_pass: Callable[[str, int], None] = lambda _upstream, _status: None,
        on_begin: Callable[[TurnFacts], None] = lambda _facts: None,
    ) -> None:
        self._context = Context(
            driver=driver,
            engine_key=engine_key,
            upstreams=upstreams,
            keys=keys,
            clock=clock,
            new_id=new_id,
            on_turn=on_turn,
            hosts=hosts,
            websocket=websocket,
            gateway_token=gateway_token,
            max_body_bytes=max_body_bytes,
            on_pass=on_pass,
            on_begin=on_begin,
        )

    @staticmethod
    def handles(scope: Scope) -> bool:
        """Whether a scope is for the gateway, by its path."""
        return scope["type"] in ("http", "websocket") and Upstreams.covers(scope["path"])

    def figures(self) -> list[tuple[str, int, int]]:
        """Per upstream: for how many tenants it keeps no responses, and its live chains."""
        return [
            (name, *self._context.driver.figures(name)) for name in self._context.upstreams.names
        ]

    def reset_epoch(self, session_key: str, reason: str) -> Reset | None:
        """Reset a session by its key; None where nothing of it is live here."""
        return reset_epoch(self._context, session_key, reason)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_websocket = scope["type"] == "websocket"
        try:
            target = self._admit(scope, is_websocket=is_websocket)
        except Refusal as refusal:
            if is_websocket:
                await receive()  # the "connect" that is answered by the refusal
                await refuse_upgrade(scope, send, refusal)
            else:
                await refuse(send, refusal)
            return
        if is_websocket:
            await ws_turns.serve(self._context, target, scope, receive, send)
        elif scope["method"] == "POST" and target.route is Route.RESPONSES:
            await http_turns.serve(self._context, target, scope, receive, send)
        elif scope["method"] == "POST" and target.route is Route.COMPACT:
            await compaction.serve(self._context, target, scope, receive, send)
        else:
            await passthrough.serve(self._context, target, scope, receive, send)

    async def aclose(self) -> None:
        """End what is still open. The driver is its owner's to close, after this."""
        await self._context.aclose()

    def _admit(self, scope: Scope, *, is_websocket: bool) -> Target:
        """The target of a request that may pass. Raises ``Refusal``."""
        context = self._context
        head = head_of(scope)
        if head.target is not None and not is_websocket:
            return head.target  # the same head came before, and passed
        refusal = check(
            head.headers, hosts=context.hosts, token=context.gateway_token, websocket=is_websocket
        )
        if refusal is not None:
            raise refusal
        target = head.target = context.upstreams.find(head.path, head.query)
        if is_websocket and target.route is not Route.RESPONSES:
            raise Refusal(404, "not_found", "WebSockets are served at …/responses only.")
        if is_websocket and not target.takes_websockets:
            # The only status at which every client goes on over HTTP at once (CASES 53).
            raise Refusal(
                426,
                "websocket_off",
                "WebSocket mode is off for this upstream. "
                "Send the request as a POST to the same path.",
            )
        return target
