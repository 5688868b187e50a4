"""How the speakers of the protocol differ."""

from __future__ import annotations

from dataclasses import dataclass


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
        ),
        Flavour("azure", lanes=False, any_failure_evicts=True),
    )
}


def flavour(name: str) -> Flavour:
    try:
        return FLAVOURS[name]
    except KeyError:
        known = ", ".join(FLAVOURS)
        raise ValueError(f"unknown provider flavour {name!r}; known are {known}") from None
