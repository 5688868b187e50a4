"""Random loops of an agent on the embedded session, each turn judged by the provider's oracle.

What is expected is kept here as plainly as can be: which outputs the model has seen, when an epoch
ends, which answers were declared unfit. A run is a function of its seed.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections import Counter
from contextlib import aclosing
from typing import Any

from app.demo.provider import faults
from app.demo.provider.oracle import same_transcript
from app.demo.provider.verdict import Oracle
from engine.driver import Upstream
from engine.errors import TurnFailed
from engine.model import Mode, Policy, Status, TurnFacts
from tests.support.clock import ManualClock
from tests.support.embedded import PLACEHOLDER, converted, gave, said, session
from tests.support.loopback import LoopbackHttp, LoopbackSockets
from tests.support.provider import MODEL, Now, make_core

NAME = "agent-7"
HEADERS = {"authorization": "Bearer sk-test"}
TOOLS = [
    {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}
    for name in ("exec_command", "look_up")
]
EPOCH_TURNS = 7
ANCHORS = 16
"""How many anchors the session keeps; what lies further back it cannot be asked about."""
OVER_SOCKET = (Mode.WS_FULL, Mode.WS_INCREMENTAL)
ANSWERED = (Status.COMPLETED, Status.INCOMPLETE)


class AgentLoop:
    """One agent, its session, and the provider behind it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.core = make_core(now=Now())
        self.sockets = LoopbackSockets(self.core)
        self.clock = ManualClock()
        self.facts: list[TurnFacts] = []
        self.session = session(
            None,
            at=Upstream("default", "http://provider/v1", Policy(max_losses=10_000)),
            identity=NAME,
            websocket=self.sockets,
            http=LoopbackHttp(self.core),
            clock=self.clock,
            on_turn=self.facts.append,
            epoch_turns=EPOCH_TURNS,
            placeholder=PLACEHOLDER,
        )
        self.oracle = Oracle(self.core)
        self.verbatim = self.random.random() < 0.5
        self.fields: dict[str, Any] = {
            "model": MODEL,
            "tools": TOOLS,
            "instructions": "brief",
            "include": ["reasoning.encrypted_content"],
        }
        self.history: list[dict[str, Any]] = []
        self.seen: dict[str, str] = {}
        self.places: dict[str, int] = {}
        self.epoch_turns = 0
        self.pending = False
        self.unfit: set[str] = set()
        self.has_aged = False
        self.words = 0
        self.modes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.frozen = 0
        self.compared = 0
        """Transcripts."""
        self.wrong: list[str] = []

    # --- what the agent does ------------------------------------------------------------------

    def _say(self) -> dict[str, Any]:
        self.words += 1
        texts = ["tell me {}", "run ls {} 2 times", "run ls {} 3 times in parallel"]
        return said(self.random.choice(texts).format(self.words))

    def _outputs(self) -> list[dict[str, Any]]:
        return [item for item in self.history if "output" in item]

    def _prepare(self) -> None:
        """Answer calls, move metadata, and now and then rewrite the history."""
        for item in self._outputs():
            if item["output"] == PLACEHOLDER:
                if self.random.random() < 0.4:
                    item["output"] = self._result()
            elif self.random.random() < 0.6:
                item["output"] = item["output"].replace(',"_meta":1', "")
        chance = self.random.random()
        users = [n for n, item in enumerate(self.history) if item.get("role") == "user"]
        if chance < 0.03 and users:
            self.history[self.random.choice(users)] = self._say()
        elif chance < 0.07 and len(users) > 1:
            self.history = self.history[: self.random.choice(users[1:])]
        elif chance < 0.10:
            self.fields = {**self.fields, "tools": TOOLS[: self.random.randint(1, 2)]}
        elif chance < 0.16 and self._outputs():
            for item in self._outputs():
                item["output"] = "summary"
            self._reset("summarize")
        elif chance < 0.18:
            self._grow_old()
        answered = {item["call_id"] for item in self._outputs()}
        calls = [item["call_id"] for item in self.history if item.get("type") == "function_call"]
        for call in calls:
            if call not in answered:
                late = self.random.random() < 0.1
                self.history.append(gave(call, PLACEHOLDER if late else self._result()))
        if not self.history or not self._awaits():
            self.history.append(self._say())

    def _result(self) -> str:
        self.words += 1
        return f'{{"ok":{self.words},"_meta":1}}'

    def _awaits(self) -> bool:
        return self.history[-1].get("role") == "user" or "output" in self.history[-1]

    def _reset(self, reason: str) -> None:
        self.session.reset_epoch(reason)
        if self.oracle.turns:
            self._ended()

    def _ended(self) -> None:
        self.oracle.reset(NAME)
        self._forget()

    def _forget(self) -> None:
        self.seen.clear()
        self.places.clear()
        self.epoch_turns, self.pending = 0, True

    def _grow_old(self) -> None:
        """All connections reach the age at which they are given up."""
        self.has_aged = True
        self.clock.advance(56 * 60)
        latest = {c.latest.response_id for c in self.core.connections if c.latest is not None}
        old = [t for t in self.oracle.turns if t.response_id in latest and not t.reset]
        for turn in old:
            turn.reset = True
        if old:
            self._forget()

    def _environment(self) -> None:
        self.core.faults.clear()
        chance = self.random.random()
        if chance < 0.05 and not self.has_aged:
            live = [c for c in self.sockets.opened if not c.closed and c.lane.idle]
            if live:
                self.random.choice(live).drop(1000)
        elif chance < 0.10:
            self.core.faults.on_upgrade(faults.AbortUpgrade(), times=2)
        elif chance > 0.9:
            given = [
                faults.abort(after=2),
                faults.abort(),
                faults.close(1011, after=3),
                faults.close(1000, after=4),
                faults.previous_response_not_found(),
                faults.connection_limit_reached(),
                faults.ErrorFrame("server_error", after=2, shape="failed"),
                faults.HttpError(400, code="invalid_encrypted_content"),
                faults.Incomplete(),
                faults.TerminalOutput(()),
            ]
            self.core.faults.on_request(self.random.choice(given))

    # --- one turn -----------------------------------------------------------------------------

    def expected_input(self) -> list[dict[str, Any]]:
        """The history as it has to be sent: outputs as the model saw them, new fillers last."""
        items = copy.deepcopy(self.history)
        for item in items:
            if "output" in item:
                item["output"] = self.seen.get(item["call_id"], item["output"])
        fillers = {i["call_id"]: i for i in items if i.get("output") == PLACEHOLDER}
        items = [item for item in items if item.get("output") != PLACEHOLDER]
        for at, call in sorted((at, call) for call, at in self.places.items() if call in fillers):
            items.insert(at, fillers.pop(call))
        return [*items, *fillers.values()]

    async def step(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)  # connections that were given up are closed
        self.clock.advance(0.001)
        self.has_aged = False
        self._prepare()
        self._environment()
        given = self.expected_input()
        body = {
            **self.fields,
            "store": False,
            "stream": True,
            "prompt_cache_key": NAME,
            "input": given,
        }
        verdict = self.oracle.verdict(headers=HEADERS, session=NAME, body=body)
        before = len(self.facts)
        events = await self._run(leaves=self.random.random() < 0.04)
        if len(self.facts) != before + 1:
            self.wrong.append(f"turn {before}: {len(self.facts) - before} rows")
            return
        self._judge(body, verdict.reason, verdict.response_id, events)

    async def _run(self, *, leaves: bool) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        try:
            async with aclosing(self.session.send(self.fields, self.history)) as stream:
                async for event in stream:
                    events.append(event)
                    if leaves and len(events) == 2:
                        break
        except TurnFailed as failed:
            events.append({"type": "raised", "status": failed.status})
        return events

    def _judge(
        self, body: dict[str, Any], reason: str, compared: str | None, events: list[dict[str, Any]]
    ) -> None:
        row = self.facts[-1]
        name = f"turn {len(self.facts)}"
        self.modes[str(row.mode)] += 1
        self.reasons[str(row.reason)] += 1
        if reason == "no_baseline" and self.pending:
            reason = "epoch_reset"
        if reason == "connection_lost" and compared in self.unfit:
            reason = "output_conflict"
        sent_again = row.attempts > 1 or row.fallback_reason == "limit_reached"
        asked = row.mode in OVER_SOCKET and not sent_again and len(self.oracle.turns) <= ANCHORS
        if asked and str(row.reason) != reason:
            self.wrong.append(f"{name}: {row.reason}, the oracle says {reason}")
        replaced = sum(
            self.seen.get(item["call_id"], item["output"]) != item["output"]
            for item in self._outputs()
        )
        if row.frozen_items != replaced:
            self.wrong.append(f"{name}: {row.frozen_items} frozen, not {replaced}")
        if row.status not in ANSWERED:
            return
        response = events[-1]["response"]
        held = self.core.held(row.response_id).items
        output = self.core.held(row.response_id).items[len(body["input"]) :]
        self.compared += 1
        if not same_transcript(held[: len(body["input"])], body["input"]):
            self.wrong.append(f"{name}: the provider holds another history")
        self._answered(body, row, [json.loads(item.text) for item in output], response)

    def _answered(
        self,
        body: dict[str, Any],
        row: TurnFacts,
        output: list[dict[str, Any]],
        response: dict[str, Any],
    ) -> None:
        assert row.response_id == response["id"]
        self.oracle.answered(row.response_id, headers=HEADERS, session=NAME, body=body)
        self.places.clear()
        for at, item in enumerate(body["input"]):
            if item.get("output") == PLACEHOLDER:
                self.places[item["call_id"]] = at
            elif "output" in item:
                self.seen.setdefault(item["call_id"], item["output"])
        self.frozen += row.frozen_items or 0
        self.pending = False
        self.epoch_turns += 1
        self.history.extend(
            copy.deepcopy(item) if self.verbatim else converted(item) for item in output
        )
        self._record(row, len(output))
        if self.epoch_turns == EPOCH_TURNS:
            self._ended()

    def _record(self, row: TurnFacts, answered: int) -> None:
        chance = self.random.random()
        if chance < 0.25:
            return
        items = copy.deepcopy(self.history)
        if chance < 0.32 and answered:
            del items[-self.random.randint(1, answered)]
            assert row.response_id is not None
            if self.session.record(items):
                self.wrong.append(f"turn {len(self.facts)}: a record that lacks an item was taken")
            if row.mode in OVER_SOCKET:
                self.unfit.add(row.response_id)
        elif not self.session.record(items):
            self.wrong.append(f"turn {len(self.facts)}: a whole record was refused")
