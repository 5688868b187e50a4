"""What is known of a turn before it is judged, and what the judgements of a run add up to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from app.demo.provider.verdict import Verdict

Logical = list[str] | str


@dataclass(slots=True)
class Sent:
    """A turn on its way: who sent it, what it means, and what should become of it."""

    headers: dict[str, str]
    session: str
    """Upstream and session, under one name."""
    socket: str | None
    fields: dict[str, Any]
    """All of the body but its input."""
    logical: Logical
    """The whole input that the client means, each item as JSON text."""
    delta: Logical
    """What the client sent of it."""
    previous: str | None = None
    kind: str = "generation"
    body: bytes = b""
    """As it was given to the engine."""
    logged: int = 0
    """How many requests the provider had seen before."""
    client: str = ""
    """The client and its transport, for the totals."""
    fault: str | None = None
    expected: Verdict = field(default_factory=lambda: Verdict("no_baseline"))
    resets: int = 0
    possible: bool = False
    """Something is there to be continued, though a turn has failed on it before."""
    aged: bool = False
    """The connection that should be continued is older than the policy lets it become."""


@dataclass(slots=True)
class Report:
    """What a run adds up to. A fault is a text that begins with its class."""

    turns: int = 0
    steps: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    """Mode and reason together."""
    clients: Counter[str] = field(default_factory=Counter)
    """By client, with its transport."""
    continued: Counter[str] = field(default_factory=Counter)
    """Turns that were continued, by client."""
    checked: Counter[str] = field(default_factory=Counter)
    """What was compared, and how often."""
    planted: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
