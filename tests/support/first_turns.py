"""The first turn of a conversation, and the next ones of a client that replays everything."""

from __future__ import annotations

from engine.model import Policy
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, user

FIRST = {"model": MODEL, "store": False, "stream": True, "input": [user("one")]}


def stack(policy: Policy | None = None, **options) -> Stack:
    return Stack(make_core(replies=[f"answer {n}" for n in range(20)], **options), policy)


def after(events: list[dict], body: dict, text: str = "more", **more) -> dict:
    """The next request of a client that replays everything."""
    return {
        **body,
        "input": [*body["input"], *events[-1]["response"]["output"], user(text)],
        **more,
    }


async def warm(s: Stack, **call) -> dict:
    """One answered turn; returns the body of the next."""
    return after(await s.turn(FIRST, **call), FIRST)
