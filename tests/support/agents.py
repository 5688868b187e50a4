"""A client in a random conversation: its own view of it, and how it reads an answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from engine.driver import Answer
from tests.support.spellings import Client


@dataclass(slots=True)
class Agent:
    """One client's own view of its conversation. Items are JSON texts, never changed in place."""

    client: Client
    transport: str
    tenant: str
    session: str | None
    socket: str | None
    fields: dict[str, Any]
    history: list[str] = field(default_factory=list)
    anchoring: bool = False
    anchor: tuple[str, int] | None = None
    """Its last answer's id, and how many items of the history the provider has with it."""

    def twin(self, socket: str | None) -> Agent:
        return Agent(
            self.client,
            self.transport,
            self.tenant,
            self.session,
            socket,
            dict(self.fields),
            list(self.history),
            self.anchoring,
            self.anchor,
        )


_ENDS = (b"response.completed", b"response.incomplete", b"response.done")


async def taken(answer: Answer) -> list[Any] | None:
    """The output items as a client reads them, item events first; None if it was no answer."""
    if not answer.streamed:
        return (json.loads(answer.body) if answer.body else {}).get("output")
    done: dict[int, Any] = {}
    last = None
    async for event in answer:
        head = event.data[:48]
        if b"output_item.done" in head:
            value = json.loads(event.data)
            done[value["output_index"]] = value["item"]
        elif any(name in head for name in _ENDS):
            last = json.loads(event.data)["response"]
    if last is None:
        return None
    return [done[index] for index in sorted(done)] or last["output"]
