"""What a random run takes place in: the provider, the policy, the bounds, and what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from app.demo.provider import faults
from app.demo.provider.core import Provider
from app.demo.provider.faults import AbortUpgrade, HangUpgrade, RefuseUpgrade, RequestFault
from engine.model import Policy
from engine.sessions import Bounds
from tests.support.provider import MODEL
from tests.support.spellings import CLIENTS, Client

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "name": "exec_command", "parameters": {"type": "object"}},
    {"type": "custom", "name": "exec"},
    {"type": "function", "name": "look_up", "parameters": {"type": "object"}},
]
_ROOMY = Bounds(anchors_per_session=512, anchors_unnamed=512, chains_per_session=64)


@dataclass(frozen=True, slots=True)
class Regime:
    """``exact``: nothing is forgotten or refused, so that the oracle can tell every reason.

    ``allowed``: reasons for which the policy lets an extendable chain be. ``uncompared``: fields
    that it does not compare, as the oracle is shown them.
    """

    name: str
    flavour: str = "openai"
    policy: Policy = field(default_factory=Policy)
    bounds: Bounds = _ROOMY
    exact: bool = True
    allowed: frozenset[str] = frozenset()
    uncompared: dict[str, Any] = field(default_factory=dict)


def choose(source: random.Random) -> Regime:
    flavour = source.choice(("openai", "openai", "codex", "azure"))
    chance = source.random()
    if chance < 0.24:
        return Regime("plain", flavour)
    if chance < 0.28:
        return Regime("resend", flavour, Policy(retry_ambiguous=True), exact=False)
    if chance < 0.32:
        return Regime("freeze", flavour, Policy(freeze=("_meta",)))
    if chance < 0.38:
        return Regime("observe", flavour, Policy(continuation="observe", max_losses=10_000))
    if chance < 0.42:
        return Regime("relaxed", flavour, Policy(tools="relaxed"), uncompared={"tools": None})
    if chance < 0.5:
        keeper = "azure" if flavour == "azure" else "openai"
        allowed = frozenset({"store_unsupported"})
        return Regime("store", keeper, Policy(continuation="store"), exact=False, allowed=allowed)
    if chance < 0.54:
        bounds = replace(_ROOMY, bytes=source.choice((10_000, 20_000, 40_000)))
        return Regime("digests", flavour, bounds=bounds, exact=False)
    if chance < 0.7:
        small = Bounds(
            sessions=source.choice((2, 5)),
            anchors_per_session=source.choice((2, 6)),
            anchors_unnamed=source.choice((3, 8)),
            chains_per_session=source.choice((1, 2, 4)),
            connections=source.choice((2, 4, 8)),
            bytes=source.choice((4_000, 40_000)),
            turn_states=2,
        )
        return Regime("small", flavour, bounds=small, exact=False)
    if chance < 0.8:
        policy = Policy(epoch_turns=source.choice((2, 5)))
        return Regime("epochs", flavour, policy, exact=False)
    if chance < 0.9:
        allowed = frozenset({"ws_rejected", "ws_unavailable"})
        return Regime("troubled", flavour, Policy(max_losses=2), exact=False, allowed=allowed)
    if chance < 0.95:
        policy = Policy(max_frame_bytes=source.choice((900, 2_500)))
        return Regime(
            "frames", flavour, policy, exact=False, allowed=frozenset({"payload_too_large"})
        )
    return Regime("aging", flavour, exact=False)


def clients(regime: Regime) -> list[Client]:
    """A backend that stores nothing has only clients that say so."""
    if regime.flavour == "codex":
        return [client for client in CLIENTS if client.fields.get("store") is False]
    if regime.name == "store":
        return [client for client in CLIENTS if client.fields.get("store") is None]
    return list(CLIENTS)


def fields(client: Client) -> dict[str, Any]:
    return {"model": MODEL, "tools": TOOLS[:2], **client.fields}


def pause(regime: Regime, source: random.Random) -> float:
    """Seconds between two steps: now and then long enough for a ping, or for the end of an age."""
    chance = source.random()
    if regime.name == "aging" and chance < 0.08:
        return 1_200.0
    if regime.name == "troubled" and chance < 0.1:
        return 61.0
    return 11.0 if chance < 0.1 else 0.01


def trouble(regime: Regime, core: Provider, source: random.Random) -> None:
    if regime.name == "troubled" and source.random() < 0.15:
        refusals = [RefuseUpgrade(status) for status in (401, 403, 404, 426, 429, 500, 503)]
        core.faults.on_upgrade(source.choice([*refusals, AbortUpgrade(), HangUpgrade()]))


FAULTS: tuple[tuple[str, Callable[[], tuple[RequestFault, ...]]], ...] = (
    ("close_before", lambda: (faults.close(1011),)),
    ("abort_before", lambda: (faults.abort(),)),
    ("close_after", lambda: (faults.close(1000, after=3),)),
    ("abort_after", lambda: (faults.abort(after=1),)),
    ("abort_at_end", lambda: (faults.abort(after=-1),)),
    ("close_1009", lambda: (faults.close(1009),)),
    ("limit_reached", lambda: (faults.connection_limit_reached(),)),
    ("limit_reached", lambda: (faults.connection_limit_reached(shape="flat"),)),
    ("limit_reached", lambda: (faults.connection_limit_reached(shape="failed"),)),
    ("not_found", lambda: (faults.previous_response_not_found(),)),
    ("not_found", lambda: (faults.previous_response_not_found(shape="flat"),)),
    ("not_found", lambda: (faults.previous_response_not_found(shape="no_status"),)),
    ("not_found", lambda: (faults.previous_response_not_found(shape="failed"),)),
    ("server_error", lambda: (faults.ErrorFrame(shape="flat"),)),
    ("server_error", lambda: (faults.ErrorFrame(shape="no_status"),)),
    ("rate_limited", lambda: (faults.HttpError(429, code="rate_limit_exceeded"),)),
    ("refused", lambda: (faults.HttpError(400, code="invalid_prompt"),)),
    ("failed", lambda: (faults.ErrorFrame("server_error", shape="failed", after=2),)),
    ("error_midway", lambda: (faults.ErrorFrame("server_error", after=2),)),
    ("incomplete", lambda: (faults.Incomplete(),)),
    ("incomplete_cut", lambda: (faults.Incomplete(items=1),)),
    ("incomplete_empty", lambda: (faults.Incomplete(items=0),)),
    ("empty_terminal", lambda: (faults.TerminalOutput(()),)),
    ("drop_done", lambda: (faults.DropDone(),)),
    ("conflicting_output", lambda: (faults.ConflictingOutput(),)),
    ("no_response_id", lambda: (faults.NoResponseId(),)),
    ("shuffled", lambda: (faults.ShuffleDone(),)),
    ("no_usage", lambda: (faults.Usage(None),)),
    ("renamed", lambda: (faults.RenameTerminal(),)),
    ("slow_close", lambda: (faults.CloseAfterwards(1000),)),
    ("slow_abort", lambda: (faults.CloseAfterwards(None),)),
    ("silent", lambda: (faults.silence(),)),
    ("stalled", lambda: (faults.stall(after=1),)),
    ("stalled", lambda: (faults.stall(after=-1),)),
    ("garbage", lambda: (faults.garbage(),)),
    ("extra_event", lambda: (faults.extra_event({"type": "response.unheard_of", "x": 1}),)),
)
"""By the name under which the judge knows them; one strikes one request."""
