"""How the speakers of the protocol differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MIB = 1024 * 1024
MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Flavour:
    name: str
    stores: bool = True
    """Keeps responses when ``store`` is true or absent; else ``store: false`` is demanded."""
    stream_only: bool = False
    """Refuses HTTP requests without ``stream: true``."""
    lists_terminal_output: bool = True
    """Repeats the output items in the terminal event's response."""
    private_events: bool = False
    """Sends rate limits, metadata, turn state and keep-alives between the standard events."""
    lanes: bool = True
    """Takes ``stream_id``; otherwise one response at a time, unnamed."""
    any_failure_evicts: bool = False
    """A failed turn empties the connection's cache even if it did not name the response."""
    cache_options: Literal["all", "new_models", "none"] = "all"
    """For which models ``prompt_cache_options`` are taken."""
    websocket: bool = True
    """Takes upgrades; else they are refused with 426."""
    connection_seconds: float = 60 * MINUTE
    end_code: int | None = None
    """A connection whose time is over is closed with this code; None: the next turn on it gets an
    error."""
    idle_seconds: float | None = None
    """A connection on which nothing comes for so long, not even a ping, is closed with 1001."""
    frame_bytes: int = 16 * MIB
    """A frame of this size or more closes the connection with 1009."""
    other_model: Literal["served", "refused", "ignored"] = "served"
    """What becomes of a turn for another model than the connection's first."""
    oldest_model: tuple[int, int] | None = None
    """WebSockets are for OpenAI's models from this version on."""
    closes_after_error: bool = False
    hydrates: bool = True
    """A WebSocket turn may continue what is stored; else only what its connection holds."""
    forgives: bool = False
    """A WebSocket turn that names a response which nobody holds is answered without it."""

    def serves(self, model: str) -> bool:
        """Whether a WebSocket may ask for this model."""
        if self.oldest_model is None:
            return True
        found = re.fullmatch(r"(?:openai/)?gpt-(\d+)(?:\.(\d+))?(?:-.*)?", model)
        return found is not None and (int(found[1]), int(found[2] or 0)) >= self.oldest_model


FLAVOURS: dict[str, Flavour] = {
    flavour.name: flavour
    for flavour in (
        Flavour("openai"),
        Flavour(
            "codex",
            stores=False,
            stream_only=True,
            lists_terminal_output=False,
            private_events=True,
            cache_options="none",
        ),
        Flavour("azure", lanes=False, any_failure_evicts=True, cache_options="new_models"),
        Flavour("xai", lanes=False, any_failure_evicts=True, connection_seconds=25 * MINUTE),
        Flavour(
            "vercel",
            lanes=False,
            any_failure_evicts=True,
            connection_seconds=13 * MINUTE,
            end_code=1001,
            idle_seconds=5 * MINUTE,
            frame_bytes=4 * MIB,
            other_model="refused",
            oldest_model=(5, 4),
            closes_after_error=True,
            hydrates=False,
        ),
        # Its managed mode: what it speaks for all but OpenAI and Azure.
        Flavour("litellm", lanes=False, end_code=1000, other_model="ignored", forgives=True),
        Flavour("http", websocket=False),
    )
}


def flavour(name: str) -> Flavour:
    try:
        return FLAVOURS[name]
    except KeyError:
        known = ", ".join(FLAVOURS)
        raise ValueError(f"unknown provider flavour {name!r}; known are {known}") from None
