"""Random conversations of many clients, each turn judged by the provider's oracle.

A run is a function of its seed, and each of its steps of the seed and the step's number: a step can
be left out, and the others still do what they did. That is how a failing run is made shorter.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Container
from typing import Any

from app.demo.provider.verdict import Oracle
from engine.driver import Answer, Call, Upstream
from engine.model import Status, TurnFacts
from tests.support import edits, regimes
from tests.support.acts import ACTS
from tests.support.agents import Agent, body_of, sent_by, taken
from tests.support.judge import FLAWS, SENT_AGAIN, Judge
from tests.support.loopback import Stack
from tests.support.model import Model
from tests.support.provider import Now, make_core
from tests.support.report import Report, Sent
from tests.support.spellings import answered, said
from tests.support.twins import Twin

TENANTS = ("sk-one", "sk-two")
HANGS_AFTER = 100_000.0
"""Seconds of the loop's time, which is put on where nothing happens; no time-out is as long."""
UPSTREAMS = ("default", "default", "second")
"""Two names, that is two policies and two registries, of one provider."""
SESSIONS = ("s1", "s2", "s3", None, None)


class Conversations:
    """One provider, one driver, some clients. ``left_out``: numbers of steps that are not taken."""

    def __init__(
        self,
        seed: int,
        *,
        left_out: Container[int] = (),
        trace: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.seed, self._left_out, self.trace = seed, left_out, trace
        self.random = random.Random(seed)
        self.regime = regimes.choose(self.random)
        self.model = Model(self.random)
        self.now = Now()
        self.core = make_core(self.regime.flavour, now=self.now, responder=self.model)
        self.stack = Stack(self.core, self.regime.policy, bounds=self.regime.bounds)
        # A twin that is told one event after the other would lag behind.
        observes = self.regime.policy.continuation == "observe"
        self.stack.sockets.are_eager = self.random.random() < 0.5 and not observes
        self.report = Report()
        second = Upstream("second", self.stack.upstream.base_url, self.regime.policy)
        self.upstreams = {one.name: one for one in (self.stack.upstream, second)}
        self.twin: Twin | None = None
        if observes:
            self.twin = Twin(
                self.regime.policy, self.regime.bounds, self.stack.clock, self.stack.facts
            )
        self.judge = Judge(self.core, Oracle(self.core), self.report, self.regime)
        self._step = 0
        self._numbers = 0
        self._sockets = 0
        self.agents = [self._agent() for _ in range(3)]

    # --- the steps ----------------------------------------------------------------------------

    async def run(self, steps: int) -> Report:
        """So many steps, then the checks of the whole."""
        for _ in range(steps):
            await self.step()
        self.finish()
        return self.report

    async def step(self) -> None:
        self._step += 1
        if self._step in self._left_out:
            return
        self.random.seed(f"{self.seed}/{self._step}")
        self.core.faults.clear()
        self._pass_time()
        self._environment()
        (act,) = self.random.choices([act for act, _ in ACTS], [weight for _, weight in ACTS])
        self.trace(f"step {self._step}: {act.__name__}")
        try:
            async with asyncio.timeout(HANGS_AFTER):
                await act(self, self.random.choice(self.agents[-7:]))
        except TimeoutError:
            self.report.faults.append(f"hang: step {self._step} did not end")

    async def aclose(self) -> None:
        """Close what is open."""
        await self.stack.driver.aclose()

    def finish(self) -> None:
        """Every turn has left exactly one row."""
        ids = [row.turn_id for row in self.stack.facts]
        if len(ids) != len(set(ids)) or len(ids) != self.report.turns:
            self.report.faults.append(f"rows: {len(ids)} rows of {self.report.turns} turns")

    # --- one turn -----------------------------------------------------------------------------

    async def turn(
        self, agent: Agent, *, fault: str | None = None, epoch_reset: str | None = None
    ) -> None:
        """One turn from its request to its judgement."""
        sent, answer = await self.begin(agent, fault=fault, epoch_reset=epoch_reset)
        await self.end(agent, sent, answer)

    def prepare(
        self,
        agent: Agent,
        *,
        kind: str = "generation",
        fault: str | None = None,
        epoch_reset: str | None = None,
    ) -> tuple[Sent, Call]:
        """Ask the oracle, and write the request down."""
        sent = sent_by(agent, kind, self.core)
        sent.fault = fault
        sent.body = body_of(agent, sent, self.random, self.number)
        self.judge.expect(sent)
        self.stack.clock.advance(0.001)
        self.now.advance(0.001)
        call = self.stack.call(
            sent.body,
            headers=tuple(sent.headers.items()),
            tenant=agent.tenant,
            upstream=self.upstreams[agent.upstream],
            session=agent.session,
            transport=agent.transport,
            socket=agent.socket,
            epoch_reset=epoch_reset,
        )
        return sent, call

    async def begin(self, agent: Agent, **more: Any) -> tuple[Sent, Answer]:
        """Send it; what is answered may still be on its way. ``more`` as for ``prepare``."""
        await asyncio.sleep(0)  # what was given up is closed before the oracle looks
        sent, call = self.prepare(agent, **more)
        answer = await self.stack.driver.run(call)
        if self.twin is not None:
            await self.twin.begin(call, answer)
        return sent, answer

    async def end(
        self, agent: Agent, sent: Sent, answer: Answer, *, keeps: bool = True
    ) -> str | None:
        """Take the answer and judge it; the response's id if the client may go on from it."""
        outputs = await taken(answer)
        row = self.conclude(sent, answer.turn_id, outputs)
        status = row.status in (Status.COMPLETED, Status.INCOMPLETE)
        if not status or outputs is None:
            agent.anchor = None
            return None
        if not keeps or sent.kind == "warmup":
            return row.response_id
        for item in outputs:
            given = agent.client.spelled(item)
            if given is not None:
                agent.history.append(json.dumps(given, ensure_ascii=self._step % 2 == 0))
        agent.anchor = None
        if row.response_id and all(agent.client.spelled(item) is not None for item in outputs):
            agent.anchor = (row.response_id, len(agent.history))
        for item in outputs:
            if item["type"] in ("function_call", "custom_tool_call"):
                output = self.random.choice(("done", '{"_meta": 1, "x": 2}', "é\n", ""))
                given = answered(agent.client, item, output, self.number())
                agent.history.append(json.dumps(given))
        return row.response_id or ""

    def conclude(self, sent: Sent, turn_id: str, outputs: list[Any] | None) -> TurnFacts:
        """The turn has ended: judge its row."""
        row = next(row for row in reversed(self.stack.facts) if row.turn_id == turn_id)
        self.trace(
            f"  {turn_id} {sent.session} {sent.socket} {sent.kind} {sent.fault or ''}"
            f" → {row.mode} {row.reason} {row.fallback_reason or ''} {row.status}"
            f" {row.error_code or ''} (oracle: {sent.expected.reason})"
        )
        self.judge.conclude(sent, row, outputs)
        if self.twin is not None:
            self.report.checked["shadows"] += 1
            if (what := self.twin.differs(row)) is not None:
                self.report.faults.append(f"shadow: {turn_id}: {what}")
        limit = self.regime.policy.epoch_turns
        counts = row.kind == "generation" and row.baseline_digest is not None
        if limit and counts and (row.epoch_turn or 0) >= limit:
            self.judge.reset(row.tenant, sent.session, row.session)
        return row

    # --- the world ----------------------------------------------------------------------------

    def _agent(self) -> Agent:
        client = self.random.choice(regimes.clients(self.regime))
        transport = self.random.choice(client.transports)
        anchors = 0.5 if transport == "ws" else 0.2
        return Agent(
            client,
            transport,
            self.random.choice(TENANTS),
            self.random.choice(UPSTREAMS),
            self.random.choice(SESSIONS),
            self.socket() if transport == "ws" else None,
            regimes.fields(client),
            anchoring=client.anchors and self.random.random() < anchors,
        )

    def let_speak(self, agent: Agent) -> None:
        if self.regime.policy.freeze and self.random.random() < 0.5:
            edits.move_metadata(agent.history)
        if not agent.history and self.random.random() < 0.1:
            agent.history.append('{"role": "developer", "content": "be exact"}')
        if not agent.history or not edits.awaits_model(agent.history[-1]):
            text = f"tell me {self.number()}"
            agent.history.append(json.dumps(said(agent.client, text, self._numbers)))

    def plant(self, agent: Agent) -> str | None:
        if self.random.random() > 0.12:
            return None
        name, fault = self.random.choice(regimes.FAULTS)
        if agent.transport == "http" and (
            name == "empty_terminal" or (self.regime.name in ("store", "observe") and name in FLAWS)
        ):
            return None  # there is but the one list: nobody could know what the provider holds
        if self.twin is not None and name in SENT_AGAIN:
            return None  # there the two would part
        self.core.faults.on_request(*fault())
        return name

    def _environment(self) -> None:
        """What the provider does between turns."""
        if self.random.random() < 0.05:
            live = [c for c in self.stack.sockets.opened if not c.closed and c.lane.idle]
            if live:
                self.random.choice(live).drop(1000)
        regimes.trouble(self.regime, self.core, self.random)

    def _pass_time(self) -> None:
        seconds = regimes.pause(self.regime, self.random)
        self.stack.clock.advance(seconds)
        self.now.advance(seconds)

    def reset(self, agent: Agent, name: str) -> None:
        """The session, by the engine's name for it, begins a new epoch."""
        self.stack.driver.reset_epoch(agent.tenant, agent.upstream, name, "summarize")
        if self.twin is not None:
            self.twin.reset_epoch(agent.tenant, agent.upstream, name, "summarize")
        self.judge.reset(agent.tenant, agent.scope, name)

    def close(self, socket: str) -> None:
        """The client's socket ends; who used it takes another."""
        self.stack.driver.socket_closed(socket)
        if self.twin is not None:
            self.twin.driver.socket_closed(socket)
        self.judge.oracle.socket_closed(socket)
        for agent in self.agents:
            if agent.socket == socket:
                agent.socket = self.socket()

    def engine_session(self, agent: Agent) -> str | None:
        known = None if agent.anchor is None else self.judge.sessions.get(agent.anchor[0])
        return None if known is None else known[1]

    def socket(self) -> str:
        self._sockets += 1
        return f"sock_{self._sockets}"

    def number(self) -> int:
        self._numbers += 1
        return self._numbers
