"""What the provider saw: one record per upgrade and per request, as it arrived."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .headers import Headers
from .wire import Json

Transport = Literal["ws", "sse", "http"]


@dataclass(slots=True)
class Upgrade:
    index: int
    headers: Headers
    path: str
    status: int | None
    """101, the status it was refused with, or None: never answered."""
    connection: str | None = None


@dataclass(slots=True)
class Attempt:
    """One request. ``frame`` is the exact text; names of headers are lower-case."""

    index: int
    transport: Transport
    connection: str | None
    connection_index: int | None
    nth: int
    path: str
    headers: Headers
    frame: str
    received_at: float
    overlapped: bool = False
    """It arrived on its lane while another response was still being sent there."""
    body: Json = field(default_factory=dict)
    input_texts: tuple[str, ...] = ()
    """The exact text of each item of ``input``."""
    previous_response_id: str | None = None
    response_id: str | None = None
    """None until an event that has it is sent."""
    outcome: str = "waiting"
    """``completed``, ``incomplete``, ``warmup``, ``failed``, ``error:CODE``, ``closed:CODE``,
    ``aborted``, ``hung``, ``client_closed``; ``waiting`` and ``running`` until then."""
    status: int | None = None
    """HTTP status, or that of the error frame."""
    events: int = 0
    """Standard events that were sent."""
    usage: Json | None = None

    def header(self, name: str) -> str | None:
        """The last value of the header, or None."""
        return dict(self.headers).get(name.lower())

    @property
    def incremental(self) -> bool:
        return self.previous_response_id is not None
