"""A client in a random conversation: its own view of it, what it sends, and how it reads."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.demo.provider.core import Provider
from engine.driver import Answer
from tests.support.report import Logical, Sent
from tests.support.spellings import Client


@dataclass(slots=True)
class Agent:
    """One client's own view of its conversation. Items are JSON texts, never changed in place."""

    client: Client
    transport: str
    tenant: str
    upstream: str
    session: str | None
    socket: str | None
    fields: dict[str, Any]
    history: list[str] = field(default_factory=list)
    anchoring: bool = False
    anchor: tuple[str, int] | None = None
    """Its last answer's id, and how many items of the history the provider has with it."""

    @property
    def scope(self) -> str:
        """Upstream and session, as the oracle knows the two: under one name."""
        return f"{self.upstream}/{self.session or ''}"

    def twin(self, socket: str | None) -> Agent:
        return Agent(
            self.client,
            self.transport,
            self.tenant,
            self.upstream,
            self.session,
            socket,
            dict(self.fields),
            list(self.history),
            self.anchoring,
            self.anchor,
        )


def sent_by(agent: Agent, kind: str, core: Provider) -> Sent:
    """What the client is about to send, and what it means by it."""
    logical: Logical = list(agent.history)
    delta, previous = logical, None
    if agent.anchoring and agent.anchor is not None and kind == "generation":
        previous, count = agent.anchor
        delta = logical[count:]
        if previous in core.transcripts:
            # It means what the provider has, whatever its own copy of it looks like.
            logical = [*core.held(previous).texts, *delta]
    elif agent.client.string_input and len(logical) == 1 and agent.transport != "ws":
        content = json.loads(logical[0])["content"]
        if isinstance(content, str):  # another client's message may have parts
            logical = delta = content
    return Sent(
        headers={"authorization": f"Bearer {agent.tenant}"},
        session=agent.scope,
        socket=agent.socket,
        fields=agent.fields,
        logical=logical,
        delta=delta,
        previous=previous,
        kind=kind,
        client=f"{agent.client.name} {agent.transport}",
    )


def body_of(agent: Agent, sent: Sent, source: random.Random, number: Callable[[], int]) -> bytes:
    """The body or frame, in the client's own spelling of the items."""
    fields = dict(agent.fields)
    if agent.transport == "ws":
        fields["type"] = "response.create"
    elif agent.transport == "sse":
        fields["stream"] = True
    if agent.client.typed:
        fields["client_metadata"] = {"turn_id": f"t{number()}"}
    if sent.previous is not None:
        fields["previous_response_id"] = sent.previous
    names = list(fields)
    if source.random() < 0.1:
        source.shuffle(names)  # the order of keys means nothing
    text = json.dumps({name: fields[name] for name in names})
    delta = sent.delta
    given = json.dumps(delta) if isinstance(delta, str) else "[" + ", ".join(delta) + "]"
    return f'{text[:-1]}, "input": {given}}}'.encode("utf-8", "surrogatepass")


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
