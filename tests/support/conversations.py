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

from app.demo.provider.actions import Gate
from app.demo.provider.faults import Hold
from app.demo.provider.verdict import Oracle
from engine.driver import Answer
from engine.model import Status
from tests.support import edits, regimes
from tests.support.agents import Agent, body_of, sent_by, taken
from tests.support.judge import FLAWS, Judge, Report, Sent
from tests.support.loopback import Stack
from tests.support.model import Model
from tests.support.provider import Now, make_core
from tests.support.spellings import answered, said

TENANTS = ("sk-one", "sk-two")
HANGS_AFTER = 5.0
"""Seconds of real time: nothing in a run waits for anything, so that a step takes milliseconds."""
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
        self.seed, self._left_out, self._trace = seed, left_out, trace
        self.random = random.Random(seed)
        self.regime = regimes.choose(self.random)
        self.model = Model(self.random)
        self.now = Now()
        self.core = make_core(self.regime.flavour, now=self.now, responder=self.model)
        self.stack = Stack(self.core, self.regime.policy, bounds=self.regime.bounds)
        self.report = Report()
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
        kinds = (
            (self._plain, 58),
            (self._edited, 14),
            (self._in_parallel, 9),
            (self._forked, 5),
            (self._side_request, 4),
            (self._warm_up, 3),
            (self._compaction, 2),
            (self._reset, 2),
            (self._reconnect, 2),
            (self._left, 3),
            (self._thief, 1),
        )
        (act,) = self.random.choices([k for k, _ in kinds], [w for _, w in kinds])
        self._trace(f"step {self._step}: {act.__name__.strip('_')}")
        try:
            async with asyncio.timeout(HANGS_AFTER):
                await act(self.random.choice(self.agents[-7:]))
        except TimeoutError:
            self.report.faults.append(f"hang: step {self._step} did not end")

    def finish(self) -> None:
        """Every turn has left exactly one row."""
        ids = [row.turn_id for row in self.stack.facts]
        if len(ids) != len(set(ids)) or len(ids) != self.report.turns:
            self.report.faults.append(f"rows: {len(ids)} rows of {self.report.turns} turns")

    async def _plain(self, agent: Agent) -> None:
        self._let_speak(agent)
        fault = self._plant(agent)
        await self._turn(agent, fault=fault)

    async def _edited(self, agent: Agent) -> None:
        """The history or the fields change, in one of the ways that clients do."""
        name = edits.change(agent, self.random, self._number())
        self._trace(f"  {name}")
        self._let_speak(agent)
        await self._turn(agent)

    async def _forked(self, agent: Agent) -> None:
        twin = agent.twin(self._socket() if agent.socket else None)
        self.agents.append(twin)
        self._let_speak(twin)
        await self._turn(twin)

    async def _side_request(self, agent: Agent) -> None:
        """A title or a summary: the same session, another prompt, or the same history."""
        side = agent.twin(agent.socket)
        side.anchor = None
        side.fields["instructions"] = "make a title"
        if self.random.random() < 0.6:
            side.history = []
        side.history.append(json.dumps(said(agent.client, "a title, please", self._number())))
        if edits.calls_without_output(side.history):
            return
        await self._turn(side)

    async def _warm_up(self, agent: Agent) -> None:
        """Codex warms up a connection, then hangs its turn on it."""
        if agent.transport != "ws" or not agent.client.warms_up:
            return
        warm = agent.twin(agent.socket)
        warm.anchor = None
        if self.random.random() < 0.3:
            warm.history = []
        warm.fields["generate"] = False
        sent, answer = await self._begin(warm, kind="warmup")
        row_id = await self._end(warm, sent, answer)
        if row_id is not None and self.random.random() < 0.7:
            agent.anchor = (row_id, len(warm.history))
            self._let_speak(agent)
            anchoring, agent.anchoring = agent.anchoring, True
            await self._turn(agent)
            agent.anchoring = anchoring

    async def _compaction(self, agent: Agent) -> None:
        """The history is replaced by what the provider, or a side request, made of it."""
        if not agent.client.typed or not agent.history:
            return
        if edits.calls_without_output(agent.history):
            return
        users = [text for text in agent.history if edits.is_user(text)]
        trigger = agent.twin(agent.socket)
        trigger.anchor = None
        trigger.history.append('{"type": "compaction_trigger"}')
        sent, answer = await self._begin(trigger, kind="compaction")
        if await self._end(trigger, sent, answer) is None:
            return
        agent.history = [*users[-2:], trigger.history[-1]]
        agent.anchor = None
        self._let_speak(agent)
        await self._turn(agent)

    async def _reset(self, agent: Agent) -> None:
        """The caller ends the epoch, by the API or with the request itself."""
        self._let_speak(agent)
        name = agent.session or self._engine_session(agent)
        if name is None:
            return
        if self.random.random() < 0.5:
            self.stack.driver.reset_epoch(agent.tenant, "default", name, "summarize")
            self.judge.reset(agent.tenant, agent.session or "", name)
            await self._turn(agent)
        elif agent.session is not None and not (agent.anchoring and agent.anchor):
            self.judge.reset(agent.tenant, agent.session, name)
            await self._turn(agent, epoch_reset="summarize")

    async def _reconnect(self, agent: Agent) -> None:
        """The client's socket ends; it, or another transport of it, resumes."""
        if agent.socket is not None:
            self.stack.driver.socket_closed(agent.socket)
            self.judge.oracle.socket_closed(agent.socket)
            for other in self.agents:
                if other.socket == agent.socket:
                    other.socket = self._socket()
        self._let_speak(agent)
        await self._turn(agent)

    async def _left(self, agent: Agent) -> None:
        """The client leaves in the middle of an answer: it is drained, or cut at once."""
        self._let_speak(agent)
        sent, answer = await self._begin(agent)
        if not answer.streamed:
            await self._end(agent, sent, answer)
            return
        events = answer.events
        assert events is not None
        for _ in range(self.random.randrange(1, 4)):
            await anext(events, None)
        if self.random.random() < 0.5:
            answer.client_left()
            async for _event in events:
                pass
        else:
            await events.aclose()  # type: ignore[attr-defined]
        self._judge(sent, answer, None)

    async def _thief(self, agent: Agent) -> None:
        """Another tenant's response id is not found, and nothing is sent with it."""
        others = [a for a in self.agents if a.tenant != agent.tenant and a.anchor]
        if not others:
            return
        other = self.random.choice(others)
        thief = agent.twin(agent.socket)
        thief.anchoring, thief.anchor = True, (other.anchor[0], len(thief.history))
        self._let_speak(thief)
        sent, answer = await self._begin(thief)
        await self._end(thief, sent, answer, keeps=False)
        if answer.status == 200 and answer.streamed and self.stack.last.status is Status.COMPLETED:
            self.report.faults.append(f"tenant: {answer.turn_id}: another's response was continued")

    async def _in_parallel(self, agent: Agent) -> None:
        """One, two or three more turns while the first one streams."""
        self._let_speak(agent)
        if self.regime.name == "epochs":
            await self._turn(agent)  # which turn is the last of an epoch is a race otherwise
            return
        gate = Gate()
        self.core.faults.on_request(Hold(gate, after=self.random.choice((1, 2, -1))))
        if agent.transport == "http":
            return  # such an answer is complete before anything else can be sent
        sent, answer = await self._begin(agent)
        held = answer.streamed and not gate.opened
        for _ in range(self.random.choice((1, 1, 2, 3)) if held else 0):
            if self.random.random() < 0.5:
                other = agent.twin(self._socket() if agent.socket else None)
            else:
                other = self.random.choice(self.agents[-7:])
                if other is agent or (other.socket and other.socket == agent.socket):
                    continue
            self._let_speak(other)
            await self._turn(other)
        gate.open()
        await self._end(agent, sent, answer)

    # --- one turn -----------------------------------------------------------------------------

    async def _turn(
        self, agent: Agent, *, fault: str | None = None, epoch_reset: str | None = None
    ) -> None:
        sent, answer = await self._begin(agent, fault=fault, epoch_reset=epoch_reset)
        await self._end(agent, sent, answer)

    async def _begin(
        self,
        agent: Agent,
        *,
        kind: str = "generation",
        fault: str | None = None,
        epoch_reset: str | None = None,
    ) -> tuple[Sent, Answer]:
        await asyncio.sleep(0)  # what was given up is closed before the oracle looks
        sent = sent_by(agent, kind, self.core)
        sent.fault = fault
        self.judge.expect(sent)
        self.stack.clock.advance(0.001)
        self.now.advance(0.001)
        self.report.clients[f"{agent.client.name} {agent.transport}"] += 1
        answer = await self.stack.answer(
            body_of(agent, sent, self.random, self._number),
            headers=tuple(sent.headers.items()),
            tenant=agent.tenant,
            session=agent.session,
            transport=agent.transport,
            socket=agent.socket,
            epoch_reset=epoch_reset,
        )
        return sent, answer

    async def _end(
        self, agent: Agent, sent: Sent, answer: Answer, *, keeps: bool = True
    ) -> str | None:
        """Take the answer and judge it; the response's id if the client may go on from it."""
        outputs = await taken(answer)
        row = self._judge(sent, answer, outputs)
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
                given = answered(agent.client, item, output, self._number())
                agent.history.append(json.dumps(given))
        return row.response_id or ""

    def _judge(self, sent: Sent, answer: Answer, outputs: list[Any] | None) -> Any:
        row = next(row for row in reversed(self.stack.facts) if row.turn_id == answer.turn_id)
        self._trace(
            f"  {answer.turn_id} {sent.session} {sent.socket} {sent.kind} {sent.fault or ''}"
            f" → {row.mode} {row.reason} {row.fallback_reason or ''} {row.status}"
            f" {row.error_code or ''} (oracle: {sent.expected.reason})"
        )
        self.judge.conclude(sent, row, outputs)
        limit = self.regime.policy.epoch_turns
        counts = row.kind == "generation" and row.baseline_digest is not None
        if limit and counts and (row.epoch_turn or 0) >= limit:
            self.judge.reset(row.tenant, sent.session or "", row.session)
        return row

    # --- the world ----------------------------------------------------------------------------

    def _agent(self) -> Agent:
        client = self.random.choice(regimes.clients(self.regime))
        transport = self.random.choice(client.transports)
        return Agent(
            client,
            transport,
            self.random.choice(TENANTS),
            self.random.choice(SESSIONS),
            self._socket() if transport == "ws" else None,
            regimes.fields(client),
            anchoring=client.anchors and transport == "ws" and self.random.random() < 0.5,
        )

    def _let_speak(self, agent: Agent) -> None:
        if not agent.history and self.random.random() < 0.1:
            agent.history.append('{"role": "developer", "content": "be exact"}')
        if not agent.history or not edits.awaits_model(agent.history[-1]):
            text = f"tell me {self._number()}"
            agent.history.append(json.dumps(said(agent.client, text, self._numbers)))

    def _plant(self, agent: Agent) -> str | None:
        if self.random.random() > 0.12:
            return None
        name, fault = self.random.choice(regimes.FAULTS)
        if agent.transport == "http" and (
            name == "empty_terminal" or (self.regime.name == "store" and name in FLAWS)
        ):
            return None  # there is but the one list: nobody could know what the provider holds
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

    def _engine_session(self, agent: Agent) -> str | None:
        known = None if agent.anchor is None else self.judge.sessions.get(agent.anchor[0])
        return None if known is None else known[1]

    def _socket(self) -> str:
        self._sockets += 1
        return f"sock_{self._sockets}"

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers
