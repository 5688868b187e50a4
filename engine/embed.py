"""The engine inside an agent: one conversation, proven and continued (DESIGN 9).

::

    async with ResponsesSession(url, identity="agent-7", api_key=key, on_turn=record) as session:
        async for event in session.send(request, input_items):
            ...
        session.record(input_items_after_turn)

The agent keeps its history and hands over all of it each time; the session sends what is new. It
runs its turns on the gateway's driver, so that the same rules decide and the same proof is asked.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Self, cast

from engine import agent_request, digests
from engine.agent_turn import AgentTurn, whole
from engine.chain import Anchor
from engine.driver import Call, Driver, Event, Upstream
from engine.errors import SessionBusy, SessionClosed
from engine.frozen import Applied, Frozen, Item
from engine.model import ColdCause, EpochReason, TurnFacts
from engine.sessions import Bounds, Scope
from engine.transports.base import Clock, HttpTransport, WebSocketTransport
from engine.transports.http import Http
from engine.transports.websocket import WebSockets

EPOCH_TURNS = 20
"""Turns of an epoch unless the agent says otherwise (DESIGN 4.6)."""

_TURN_STATE = "x-codex-turn-state"
"""The provider's sticky-routing token, as it comes and goes over HTTP (DESIGN 4.7)."""

_BOUNDS = Bounds(sessions=2, anchors_per_session=16, chains_per_session=4, connections=4)


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class ResponsesSession:
    """One conversation of an agent with one upstream. Not for several threads or event loops.

    ``upstream``: the base URL, to which ``/responses`` is appended, or an ``Upstream`` with a name
    for the ledger and a policy (time-outs in seconds, sizes in bytes).
    ``identity``: the conversation's name, printable ASCII, at most 64 characters. It is sent as
    ``prompt_cache_key``, ``session-id`` and ``thread-id``, and has to stay the same as long as the
    conversation does: another name is another cache.
    ``api_key``: the credential, or a function that is asked for it before each turn. Connections
    and anchors of one credential are never used with another. It is sent, never kept or shown.
    ``on_turn``: gets the facts of every turn once, before its last event is handed out. They hold
    no content. It must not block; what it raises is logged and does not reach the agent.
    ``client``, ``client_version``: the honest name of the agent's software, sent as ``originator``
    and ``User-Agent``. ``headers``: what else is to be sent; they may replace these two. The
    handshake of a WebSocket takes those that name account, organization and beta features.
    ``epoch_turns``: turns after which a full one is sent from the agent's own history; 0 is never.
    ``placeholder``: the text with which the agent's converter fills in for the output of a tool
    call that has none yet. Needed where it does so, or that text is kept as the call's output.
    ``key``: 1 to 64 secret bytes under which the digests of the facts are made. Sessions that
    write to one ledger share it and keep it over restarts; without one it is made up here.
    ``tenant``: the ledger's name for the credential's owner; made from the credential by default.
    ``websocket``, ``http``, ``clock``, ``new_id``: the world, for tests (``engine.testing``).
    """

    def __init__(
        self,
        upstream: Upstream | str,
        *,
        identity: str,
        api_key: str | Callable[[], str] | None = None,
        on_turn: Callable[[TurnFacts], object] | None = None,
        client: str = "warmline",
        client_version: str | None = None,
        headers: Mapping[str, str] | None = None,
        epoch_turns: int = EPOCH_TURNS,
        placeholder: str | None = None,
        key: bytes | None = None,
        tenant: str | None = None,
        websocket: WebSocketTransport | None = None,
        http: HttpTransport | None = None,
        clock: Clock | None = None,
        new_id: Callable[[str], str] | None = None,
    ) -> None:
        if epoch_turns < 0:
            raise ValueError("epoch_turns is 0 or more")
        if key is not None and not 0 < len(key) <= 64:
            raise ValueError("key has 1 to 64 bytes")
        if client == "warmline" and client_version is None:
            client_version = _own_version()
        self._who = agent_request.Identity(identity, client, client_version, dict(headers or {}))
        if isinstance(upstream, str):
            upstream = Upstream("default", upstream.rstrip("/"))
        policy = dataclasses.replace(upstream.policy, epoch_turns=epoch_turns)
        self._upstream = dataclasses.replace(upstream, policy=policy)
        self._api_key, self._tenant_name = api_key, tenant
        self._key = secrets.token_bytes(32) if key is None else key
        self._on_turn = on_turn
        self._clock: Clock = clock or SystemClock()
        self._new_id = new_id or _random_id
        self._own_http = Http() if http is None else None
        self._driver = Driver(
            websocket=websocket or WebSockets(),
            http=http or cast("Http", self._own_http),
            clock=self._clock,
            new_id=self._new_id,
            key=self._key,
            on_turn=self._concluded,
            bounds=_BOUNDS,
        )
        self._frozen = Frozen(placeholder)
        self._tenant = ""
        self._turn: AgentTurn | None = None
        self._running: dict[str, AgentTurn] = {}
        self._said: tuple[int, bytes] | None = None
        self._turn_group: str | None = None
        self._turn_state = ("", "")
        self._is_closed = False

    # --- one turn -----------------------------------------------------------------------------

    def send(
        self, request: Mapping[str, Any], input_items: Iterable[Item]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Run a turn; iterate its events, as the provider sent them, to the end.

        ``request`` is the body without its input: model, instructions, tools and so on, all of it
        on each turn. ``input_items`` is the whole history. Both are read at once, and not again.

        An answer that goes wrong after it has begun ends with ``response.failed`` or ``error``, as
        the provider's own do: look at the last event. Raises ``TurnFailed`` where the turn was
        answered with an error instead of events, ``SessionBusy`` while another turn is under way,
        ``SessionClosed`` after ``aclose``, and ``ValueError`` or ``TypeError`` for a request that
        contradicts the session or is no JSON. After all but ``SessionClosed`` it can go on.
        """
        former = self._free()
        fields = agent_request.fields_of(request, self._who.name)
        api_key = self._api_key() if callable(self._api_key) else self._api_key
        headers = self._who.header_list(api_key)
        self._begin_epoch(agent_request.credentials(headers))
        sent = self._frozen.apply(agent_request.checked(input_items))
        turn = AgentTurn(
            id=self._new_id("turn_"),
            body=agent_request.body_of(fields, [agent_request.encode(i) for i in sent.items]),
            sent=sent,
            length=len(sent.items),
            headers=headers,
            group=self._group_of(sent.items),
        )
        stream = self._events(turn, former)
        turn.stream = weakref.ref(stream)
        self._turn = turn
        return stream

    def _free(self) -> AgentTurn | None:
        """Raises if no turn may begin. A former turn whose events were dropped is to be waited for.

        Events that nobody holds any more are closed by the event loop, a little later.
        """
        if self._is_closed:
            raise SessionClosed("the session is closed")
        former = self._turn
        if former is not None and former.under_way:
            raise SessionBusy("the turn before has not ended: read its events, or close them")
        return former if former is not None and former.started and not former.ended else None

    async def _events(
        self, turn: AgentTurn, former: AgentTurn | None
    ) -> AsyncGenerator[dict[str, Any], None]:
        turn.started = True
        try:
            if former is not None:
                await former.closed.wait()
            if self._is_closed:
                raise SessionClosed("the session is closed")
            self._running[turn.id] = turn
            answer = await self._driver.run(self._call(turn))
            state = next((v for name, v in answer.headers if name == _TURN_STATE), None)
            if state is not None:
                self._turn_state = (turn.group, state)
            if answer.events is None:
                yield whole(answer)
                return
            # Closed at once where the agent leaves early, not when it is collected.
            async with aclosing(cast("AsyncGenerator[Event, None]", answer.events)) as events:
                async for event in events:
                    if event.data:
                        yield json.loads(event.data)
        finally:
            turn.closed.set()

    def _call(self, turn: AgentTurn) -> Call:
        group, state = self._turn_state
        sticky = ((_TURN_STATE, state),) if group == turn.group else ()
        return Call(
            turn_id=turn.id,
            received_at=self._clock.now(),
            received_mono=self._clock.monotonic(),
            body=turn.body,
            upstream=self._upstream,
            tenant=self._tenant,
            session=self._who.name,
            turn_group=turn.group,
            headers=(*turn.headers, *sticky),
            transport="sse",
            client=self._who.client,
            client_version=self._who.client_version,
        )

    def _group_of(self, items: list[Item]) -> str:
        """One group of turns for each message of the user; sticky routing is kept within it."""
        said = agent_request.last_user_message(items)
        if self._turn_group is None or said != self._said:
            self._said, self._turn_group = said, self._new_id("group_")
        return self._turn_group

    def _concluded(self, facts: TurnFacts) -> None:
        """The driver has ended a turn: what it committed is committed here, then it is told."""
        turn = self._running.pop(facts.turn_id)
        turn.facts = dataclasses.replace(
            facts,
            source="embedded",
            client_transport="embedded",
            frozen_items=(facts.frozen_items or 0) + turn.sent.replaced,
        )
        turn.anchor = self._anchor_of(facts)
        if turn.anchor is not None:
            self._frozen.commit(turn.sent)
        turn.body, turn.sent = b"", Applied([], 0, {}, {})
        if self._on_turn is not None:
            self._on_turn(turn.facts)

    def _anchor_of(self, facts: TurnFacts) -> Anchor | None:
        """The anchor that the turn has left, if it left one."""
        anchors = self._scope.anchors
        newest = anchors[next(reversed(anchors))] if anchors else None
        if newest is None or newest.digest.hex() != facts.baseline_digest:
            return None
        return newest

    @property
    def _scope(self) -> Scope:
        return self._driver.sessions.scope((self._tenant, self._upstream.name, self._who.name))

    # --- between turns ------------------------------------------------------------------------

    def record(self, input_items: Iterable[Item]) -> bool:
        """Hand over the history, converted after the turn; True if nothing of the turn is missing.

        It has to begin with what was sent and to hold every output item of the answer. Where it
        lacks or changes one, the answer is not continued: the next turn goes in full, with
        ``output_conflict``, or with ``prefix_mismatch`` and the place where the next history still
        differs. Items behind the answer are the next turn's. False also where the last turn left
        nothing to continue. Safety does not rest on it: every turn is proven when it is sent.

        Raises ``SessionBusy`` while a turn is under way, ``SessionClosed`` after ``aclose``, and
        ``ValueError`` or ``TypeError`` for items that are no JSON.
        """
        self._free()
        anchor = None if self._turn is None else self._turn.anchor
        if anchor is None:
            return False
        arranged = self._frozen.apply(agent_request.checked(input_items)).items
        history = [agent_request.encode(item) for item in arranged]
        if anchor.matched(history) == len(anchor.items):
            return True
        self._driver.cool(
            self._tenant, self._upstream.name, self._who.name, anchor, ColdCause.OUTPUT_CONFLICT
        )
        return False

    def reset_epoch(self, reason: str = EpochReason.MANUAL) -> None:
        """The agent has rewritten its history: the next turn goes in full, from that alone.

        ``reason`` (``"summarize"``, or a word of the agent's own) stands in the ledger with the
        turn that succeeds next; of several resets before it the first one's. May be called at any
        time, also during a turn. Frozen outputs are dropped, the agent's items never touched.
        """
        self._driver.reset_epoch(self._tenant, self._upstream.name, self._who.name, reason)

    def _begin_epoch(self, credentials: tuple[str, ...]) -> None:
        """Drop what belongs to an epoch that has ended, or that the driver is about to end.

        It ends one with its connection's age; other, younger chains go on, and with them the epoch.
        """
        tenant = self._tenant_name or digests.mac(self._key, "tenant", *credentials).hex()
        if tenant != self._tenant:
            self._frozen.clear()  # another account: its model has seen nothing yet
            self._tenant, self._turn_group = tenant, None
        scope, now = self._scope, self._clock.monotonic()
        ages = [now - chain.opened for chain in scope.chains.values() if chain.is_warm]
        too_old = ages and min(ages) >= self._upstream.policy.max_connection_age
        pending = scope.epoch(self._who.name).pending
        if too_old or pending not in (None, EpochReason.COMPACTION):
            self._frozen.clear()
            self._turn_group = None

    @property
    def last_turn(self) -> TurnFacts | None:
        """The facts of the last turn that was sent; None while it is under way, or before it."""
        return None if self._turn is None else self._turn.facts

    @property
    def last_output(self) -> list[dict[str, Any]]:
        """The output items of the last turn as the provider made them; none if it failed.

        From the events that end each item: some providers leave the last event's list empty.
        """
        turn = self._turn
        if turn is None or turn.anchor is None:
            return []
        return [json.loads(bytes(item.held)) for item in turn.anchor.items[turn.length :]]

    @property
    def identity(self) -> str:
        """The conversation's name, as it is sent."""
        return self._who.name

    # --- its end ------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close all connections. A turn that is under way is lost. May be called twice."""
        self._is_closed = True
        await self._driver.aclose()
        if self._own_http is not None:
            await self._own_http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def _random_id(prefix: str) -> str:
    return prefix + secrets.token_hex(8)


def _own_version() -> str | None:
    """The version of this package; None where it runs without being installed."""
    try:
        return version("warmline")
    except PackageNotFoundError:
        return None
