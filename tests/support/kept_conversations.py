"""Random conversations over an upstream that keeps responses, each turn judged at the provider.

A run is a function of its seed: forks, edits, rewinds, changed fields, turns in parallel, clients
that want nothing stored, responses that are gone, faults, and clients' own spellings.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from app.demo.provider import faults
from app.demo.provider.oracle import changed_fields, extends, same_transcript
from engine.model import Policy, Status, TurnFacts
from engine.sessions import Bounds
from tests.support.loopback import Stack
from tests.support.provider import MODEL, Now, make_core, output_of, user

TOOLS = [{"type": "function", "name": "exec_command", "parameters": {"type": "object"}}]
ENDED = (Status.COMPLETED, Status.INCOMPLETE)


@dataclass
class Agent:
    session: str | None
    spelling: int
    fields: dict[str, Any]
    history: list[Any] = field(default_factory=list)


@dataclass
class Known:
    """An answered turn whose response the provider keeps, as the test knows it."""

    session: str | None
    response_id: str
    body: dict[str, Any]
    spoilt: bool = False
    """A continuation of it failed, was rejected, or a reset came: it need not be continued."""


def respelled(item: dict[str, Any], spelling: int) -> dict[str, Any]:
    """An output item as one of the known clients gives it back."""
    item = copy.deepcopy(item)
    if spelling in (1, 2):
        item.pop("status", None)
    if spelling == 2:
        item.pop("id", None)
        if "arguments" in item:
            item["arguments"] = json.dumps(json.loads(item["arguments"]), indent=1)
    if spelling == 3 and item["type"] == "message" and len(item["content"]) == 1:
        item["content"] = item["content"][0]["text"]
    return item


class KeptConversations:
    """One provider that keeps responses, one driver, some agents."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.policy = Policy(
            continuation="store",
            force_store=self.random.random() < 0.3,
            retry_ambiguous=self.random.random() < 0.3,
        )
        self.core = make_core(now=Now())
        roomy = Bounds(anchors_per_session=512, anchors_unnamed=512)
        self.stack = Stack(self.core, self.policy, bounds=roomy)
        self.modes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.faults: list[str] = []
        self.compared = 0
        """Transcripts."""
        self.known: list[Known] = []
        self.agents = [self._agent() for _ in range(3)]
        self._words = 0

    def _agent(self) -> Agent:
        fields: dict[str, Any] = {"instructions": "be brief"}
        wish = self.random.choice([None, None, True, False])
        if wish is not None:
            fields["store"] = wish
        session = self.random.choice(["s1", "s2", None])
        return Agent(session, self.random.randrange(4), fields)

    def _say(self) -> dict[str, Any]:
        self._words += 1
        text = self.random.choice(["tell me {}", "run ls {} 2 times", "run ls {} in parallel"])
        return user(text.format(self._words))

    def _prepare(self, agent: Agent) -> None:
        change = self.random.random()
        outputs = [item for item in agent.history if "output" in item]
        starts = [n for n, item in enumerate(agent.history) if item.get("role") == "user"]
        answers = [item for item in agent.history if item.get("role") == "assistant"]
        if change < 0.05 and starts:
            agent.history[self.random.choice(starts)] = user(f"edited {self._words}")
        elif change < 0.09 and outputs:
            self.random.choice(outputs)["output"] += " moved"
        elif change < 0.11 and agent.history:
            del agent.history[self.random.randrange(len(agent.history))]
        elif change < 0.13 and answers:
            self.random.choice(answers)["content"] = f"rewritten {self._words}"
        elif change < 0.16:
            agent.fields["instructions"] = f"be brief {self.random.randrange(3)}"
        elif change < 0.20 and len(starts) > 1:
            agent.history = agent.history[: self.random.choice(starts[1:])]
        elif change < 0.22:
            agent.history = []
        elif change < 0.30:
            self.agents.append(copy.deepcopy(agent))
        if not agent.history or not _awaits_model(agent.history[-1]):
            agent.history.append(self._say())

    def _trouble(self) -> bool:
        """What goes wrong at the provider; whether the next turn may be the worse for it."""
        chance = self.random.random()
        if chance < 0.04:
            for known in self.random.sample(self.known, min(3, len(self.known))):
                if not known.spoilt:
                    known.spoilt = True
                    self.core.shelf.delete(known.response_id)
        elif chance > 0.93:
            fault = self.random.choice(
                [
                    faults.abort(after=2),
                    faults.abort(),
                    faults.previous_response_not_found(),
                    faults.ErrorFrame("server_error", None, shape="failed", after=2),
                    faults.HttpError(500, "broken"),
                    faults.HttpError(429, "slow down", "rate_limit_exceeded"),
                    faults.Incomplete(),
                ]
            )
            self.core.faults.on_request(fault)
            return True
        return False

    async def step(self) -> None:
        agent = self.random.choice(self.agents[-6:])
        self.core.faults.clear()
        if self.random.random() < 0.02:
            await self._reset(agent)
        troubled = self._trouble()
        self._prepare(agent)
        other = self.random.choice(self.agents)
        if other is not agent and self.random.random() < 0.1:
            await self._in_parallel(agent, other, troubled)
        else:
            await self._turn(agent, troubled)

    async def _reset(self, agent: Agent) -> None:
        if agent.session is not None:
            self.stack.driver.reset_epoch("tenant", "default", agent.session, "manual")
            for known in self.known:
                known.spoilt |= known.session == agent.session

    def _body(self, agent: Agent) -> dict[str, Any]:
        items = copy.deepcopy(agent.history)
        asked = {"include": ["reasoning.encrypted_content"], "tools": TOOLS}
        return {"model": MODEL, "stream": True, **asked, **agent.fields, "input": items}

    async def _turn(self, agent: Agent, troubled: bool) -> None:
        self.stack.clock.advance(0.001)
        body = self._body(agent)
        best = self._best(agent, body)
        answer = await self.stack.answer(body, session=agent.session)
        events = [json.loads(e.data) async for e in answer if e.data] if answer.streamed else []
        self._judge(agent, body, events, answer.turn_id, best, troubled)

    async def _in_parallel(self, agent: Agent, other: Agent, troubled: bool) -> None:
        """A second turn while the first one's answer is not read yet."""
        self.stack.clock.advance(0.001)
        body = self._body(agent)
        best = self._best(agent, body)
        answer = await self.stack.answer(body, session=agent.session)
        self._prepare(other)
        await self._turn(other, True)
        events = [json.loads(e.data) async for e in answer if e.data] if answer.streamed else []
        self._judge(agent, body, events, answer.turn_id, best, troubled)

    def _best(self, agent: Agent, body: dict[str, Any]) -> Known | None:
        """The longest kept response that the request extends."""
        if body.get("store") is False and not self.policy.force_store:
            return None
        best, most = None, -1
        for known in self.known:
            held = self.core.held(known.response_id).items if not known.spoilt else ()
            if (
                not known.spoilt
                and known.session == agent.session
                and len(held) > most
                and extends(held, body["input"])
                and not changed_fields(known.body, body)
            ):
                best, most = known, len(held)
        return best

    def _judge(
        self,
        agent: Agent,
        body: dict[str, Any],
        events: list[dict[str, Any]],
        turn_id: str,
        best: Known | None,
        troubled: bool,
    ) -> None:
        (row,) = [facts for facts in self.stack.facts if facts.turn_id == turn_id]
        self.modes[str(row.mode)] += 1
        self.reasons[str(row.reason)] += 1
        in_full = row.mode is not None and not row.mode.incremental
        # A longer response that the test knows to be gone, and the engine does not, is tried first.
        if best is not None and not troubled and in_full and row.attempts == 1:
            self.faults.append(f"{turn_id}: {row.reason}, {best.response_id} could be continued")
        if row.status not in ENDED:
            self._spoil(row)
            return
        outputs = events[-1]["response"]["output"]
        held = self.core.held(row.response_id or "")
        self.compared += 1
        if not same_transcript(held.items, [*body["input"], *outputs]):
            self.faults.append(f"{turn_id}: the provider holds another history")
        if body.get("store") is False and held.stored and not self.policy.force_store:
            self.faults.append(f"{turn_id}: stored against the client's wish")
        if row.attempts > 1:
            self._spoil(row)
        if held.stored and row.response_id:
            self.known.append(Known(agent.session, row.response_id, body))
        if agent.history == body["input"]:
            agent.history.extend(respelled(item, agent.spelling) for item in outputs)
            calls = [item for item in outputs if item["type"] == "function_call"]
            agent.history.extend(output_of(c["call_id"], f"done {self._words}") for c in calls)

    def _spoil(self, row: TurnFacts) -> None:
        """What the turn hung on may be cold now: which one it was, only the engine knows."""
        asked = {a.previous_response_id for a in self.core.log[-row.attempts - 2 :]}
        for known in self.known:
            known.spoilt |= known.response_id in asked


def _awaits_model(item: dict[str, Any]) -> bool:
    return item.get("role") == "user" or "output" in item
