"""An agent on the embedded engine: its history, its converter, and what came out of each turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from engine.embed import ResponsesSession
from engine.model import TurnFacts
from engine.testing import ManualClock, Reply, ScriptedUpstream, function_call

URL = "http://provider/v1"
KEY = "sk-test"
REQUEST: Mapping[str, Any] = {"model": "gpt-5.5", "include": ["reasoning.encrypted_content"]}
PLACEHOLDER = "[no output yet]"
FULL_FIRST = ("ws_full", "no_baseline")
CONTINUED = ("ws_incremental", "ok")


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def gave(call_id: str, output: Any = "ok") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def converted(item: Mapping[str, Any]) -> dict[str, Any]:
    """An output item as an agent's own converter spells it: no ids, no status, short messages."""
    if item["type"] == "message":
        phase = {"phase": item["phase"]} if "phase" in item else {}
        return {"role": "assistant", "content": item["content"][0]["text"], **phase}
    return {key: value for key, value in item.items() if key not in ("id", "status")}


class Rig:
    """A session on a scripted upstream."""

    def __init__(self, *replies: Reply, **options: Any) -> None:
        self.upstream = ScriptedUpstream(replies)
        self.clock = ManualClock()
        self.facts: list[TurnFacts] = []
        self.session = session(
            self.upstream, clock=self.clock, on_turn=self.facts.append, **options
        )
        self.history: list[dict[str, Any]] = []

    async def turn(self, *items: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
        """Add to the history, send it, and add what was answered."""
        self.history.extend(items)
        events = [e async for e in self.session.send({**REQUEST, **fields}, self.history)]
        last = events[-1]
        if last["type"] in ("response.completed", "response.incomplete"):
            self.history.extend(converted(item) for item in last["response"]["output"])
        return events

    @property
    def last(self) -> TurnFacts:
        return self.facts[-1]

    @property
    def outcome(self) -> tuple[str, str]:
        return str(self.last.mode), str(self.last.reason)

    @property
    def held(self) -> list[Mapping[str, Any]]:
        """What the provider holds of the last response, as the agent would spell it."""
        assert self.last.response_id is not None
        items = self.upstream.held[self.last.response_id]
        return [converted(item) if item.get("id") else item for item in items]


def session(upstream: Any, **options: Any) -> ResponsesSession:
    """A session with numbered ids on an upstream that is both transports."""
    numbers = itertools.count(1)
    settings: dict[str, Any] = {
        "identity": "agent-7",
        "api_key": KEY,
        "client": "test-agent",
        "key": b"test key",
        "websocket": upstream,
        "http": upstream,
        "new_id": lambda prefix: f"{prefix}{next(numbers)}",
        **options,
    }
    return ResponsesSession(settings.pop("at", URL), **settings)


async def drain(events: Iterable[Any] | Any) -> list[dict[str, Any]]:
    return [event async for event in events]


async def warm(*replies, **options) -> Rig:
    """A rig after one answered turn."""
    rig = Rig("first answer", *replies, **options)
    await rig.turn(said("one"))
    return rig


def same_as_held(rig: Rig) -> bool:
    """The provider holds what the agent has."""
    return rig.held == rig.history


async def looped(*replies, **options) -> Rig:
    """A rig that has sent one tool output with metadata, and was answered."""
    rig = Rig(function_call("f", "a"), *replies, **options)
    await rig.turn(said("go"))
    await rig.turn(gave("a", '{"ok":1,"_meta":{"now":1}}'))
    return rig
