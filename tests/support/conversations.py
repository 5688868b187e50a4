"""Random conversations of many clients, each turn judged by the provider's oracle.

A run is a function of its seed: histories, forks, edits, moved tool outputs, parallel turns, lost
connections and every client's spelling of what it was answered.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from app.demo.provider.oracle import same_transcript
from app.demo.provider.verdict import Oracle
from engine.model import Mode, Reason, Status
from tests.support.loopback import CREDENTIAL, Stack
from tests.support.provider import MODEL, Now, make_core, user

HEADERS = {"authorization": CREDENTIAL}
TOOLS = [
    {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}
    for name in ("exec_command", "look_up")
]


@dataclass
class Agent:
    """One client's own view of its conversation."""

    session: str | None
    history: list[Any]
    fields: dict[str, Any]
    spelling: int


@dataclass
class Report:
    turns: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def respelled(item: dict[str, Any], spelling: int) -> dict[str, Any]:
    """An output item as one of the known clients gives it back."""
    item = copy.deepcopy(item)
    match spelling:
        case 1:  # drops what it does not model, null content on reasoning, other key order
            item.pop("status", None)
            if item["type"] == "reasoning":
                item["content"] = None
            item = dict(sorted(item.items(), reverse=True))
        case 2:  # no ids, no status, no annotations, no type on messages, arguments re-serialized
            for name in ("id", "status"):
                item.pop(name, None)
            if item["type"] == "message":
                del item["type"]
                item["content"] = [
                    {"type": part["type"], "text": part["text"]} for part in item["content"]
                ]
            if "arguments" in item:
                item["arguments"] = json.dumps(json.loads(item["arguments"]), indent=1)
        case 3:  # the short spelling of a message
            if item["type"] == "message" and len(item["content"]) == 1:
                item["content"] = item["content"][0]["text"]
    return item


class Conversations:
    """One provider, one driver, some agents."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.core = make_core(now=Now())
        self.stack = Stack(self.core)
        self.oracle = Oracle(self.core)
        self.report = Report()
        self.agents = [self._agent() for _ in range(3)]
        self._words = 0

    def _agent(self) -> Agent:
        session = self.random.choice(["s1", "s2", None])
        return Agent(
            session, [], {"tools": TOOLS, "instructions": "be brief"}, self.random.randrange(4)
        )

    def _say(self) -> dict[str, Any]:
        self._words += 1
        text = self.random.choice(
            ["tell me {}", "run ls {} 2 times", "run ls {} 2 times in parallel"]
        )
        return user(text.format(self._words))

    def _prepare(self, agent: Agent) -> None:
        """Change the client's history in one of the ways that clients do."""
        change = self.random.random()
        outputs = [i for i in agent.history if isinstance(i, dict) and "output" in i]
        if change < 0.05 and agent.history:
            place = self.random.randrange(len(agent.history))
            if agent.history[place].get("role") == "user":
                agent.history[place] = user(f"edited {self._words}")
        elif change < 0.10 and outputs:
            self.random.choice(outputs)["output"] += " moved"
        elif change < 0.13:
            agent.fields = {**agent.fields, "instructions": f"be brief {self.random.randrange(3)}"}
        elif change < 0.16:
            agent.fields = {**agent.fields, "tools": TOOLS[: self.random.randrange(1, 3)]}
        elif change < 0.20 and len(agent.history) > 4:
            agent.history = agent.history[: self._turn_start(agent)]
        elif change < 0.22:
            agent.history = []
        elif change < 0.27:
            self.agents.append(copy.deepcopy(agent))
        if not _awaits_model(agent.history):
            agent.history.append(self._say())

    def _turn_start(self, agent: Agent) -> int:
        starts = [n for n, i in enumerate(agent.history) if i.get("role") == "user"]
        return self.random.choice(starts)

    def _environment(self) -> None:
        """What the provider does between turns."""
        chance = self.random.random()
        if chance < 0.06:
            live = [c for c in self.stack.sockets.opened if not c.closed and c.lane.idle]
            if live:
                self.random.choice(live).drop(1000)
        if chance > 0.95:
            self.core.faults.on_request(
                self.random.choice(
                    [
                        faults.abort(after=2),
                        faults.close(1011, after=3),
                        faults.previous_response_not_found(),
                        faults.connection_limit_reached(),
                        faults.ErrorFrame("server_error", None, shape="flat"),
                        faults.Incomplete(),
                    ]
                )
            )

    def body(self, agent: Agent) -> dict[str, Any]:
        return {
            "model": MODEL,
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "input": copy.deepcopy(agent.history),
            **agent.fields,
        }

    async def step(self) -> None:
        agent = self.random.choice(self.agents[-6:])
        self.core.faults.clear()
        self._environment()
        self._prepare(agent)
        if self.random.random() < 0.08:
            await self._in_parallel(agent)
        else:
            await self._turn(agent)

    async def _in_parallel(self, agent: Agent) -> None:
        """A second turn while the first one streams."""
        self.core.faults.clear()
        gate = Gate()
        self.core.faults.on_request(faults.Hold(gate, after=1))
        other = self.random.choice([copy.deepcopy(agent), self.random.choice(self.agents)])
        body = self.body(agent)
        expected = self._expected(agent, body)
        self.stack.clock.advance(0.001)
        answer = await self.stack.answer(body, session=agent.session)
        if other is not agent:
            if not _awaits_model(other.history):
                other.history.append(self._say())
            await self._turn(other)
        gate.open()
        events = [json.loads(event.data) async for event in answer]
        self._judge(agent, body, expected, events, answer.turn_id)

    async def _turn(self, agent: Agent) -> None:
        body = self.body(agent)
        expected = self._expected(agent, body)
        self.stack.clock.advance(0.001)
        answer = await self.stack.answer(body, session=agent.session)
        if not answer.streamed:
            self._judge(agent, body, expected, [], answer.turn_id)
            return
        events = [json.loads(event.data) async for event in answer if event.data]
        self._judge(agent, body, expected, events, answer.turn_id)

    def _expected(self, agent: Agent, body: dict[str, Any]) -> Any:
        return self.oracle.verdict(headers=HEADERS, session=agent.session or "", body=body)

    def _judge(
        self,
        agent: Agent,
        body: dict[str, Any],
        expected: Any,
        events: list[dict[str, Any]],
        turn_id: str,
    ) -> None:
        report = self.report
        report.turns += 1
        (row,) = [f for f in self.stack.facts if f.turn_id == turn_id]
        report.modes[str(row.mode)] += 1
        report.reasons[str(row.reason)] += 1
        attempt = next((a for a in self.core.log if a.response_id == row.response_id), None)
        if row.status in (Status.COMPLETED, Status.INCOMPLETE):
            held = self.core.held(row.response_id).items
            outputs = events[-1]["response"]["output"]
            if not same_transcript(held, [*body["input"], *outputs]):
                report.faults.append(f"{turn_id}: the provider holds another history")
            if attempt is not None and attempt.overlapped:
                report.faults.append(f"{turn_id}: sent on a connection that was in use")
        retried = row.fallback_reason in ("limit_reached", "server_error", "closed") or (
            row.reason is Reason.PREVIOUS_RESPONSE_NOT_FOUND
        )
        over_socket = row.mode in (Mode.WS_FULL, Mode.WS_INCREMENTAL)
        if over_socket and not retried and str(row.reason) != expected.reason:
            report.faults.append(f"{turn_id}: {row.reason}, the oracle says {expected.reason}")
        if row.status not in (Status.COMPLETED, Status.INCOMPLETE):
            return
        self.oracle.answered(
            row.response_id, headers=HEADERS, session=agent.session or "", body=body
        )
        outputs = events[-1]["response"]["output"]
        if agent.history == body["input"]:
            agent.history.extend(respelled(item, agent.spelling) for item in outputs)
            for item in outputs:
                if item["type"] == "function_call":
                    agent.history.append(
                        {
                            "type": "function_call_output",
                            "call_id": item["call_id"],
                            "output": f"done {self._words}",
                        }
                    )


def _awaits_model(history: list[Any]) -> bool:
    return bool(history) and (history[-1].get("role") == "user" or "output" in history[-1])
