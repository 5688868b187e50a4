"""Whether a tenant's WebSockets to an upstream are worth trying: sticky, but never for good.

One blip must not pin a session to HTTP, and a dying upstream must not be retried on every turn
(DESIGN 4.7, CASES 48). Times are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.model import Policy, Reason

ANCHOR_IGNORED = "anchor_ignored"
"""The upstream answered a delta alone, as if nothing had been named."""


@dataclass(slots=True)
class _State:
    losses: int = 0
    until: float = 0.0
    reason: Reason = Reason.WS_UNAVAILABLE
    cause: str = ""


@dataclass(slots=True)
class Health:
    """One state per tenant and upstream."""

    _states: dict[tuple[str, str], _State] = field(default_factory=dict)

    def blocked(self, tenant: str, upstream: str, now: float) -> tuple[Reason, str] | None:
        """Why WebSockets are not to be tried now, and its cause; None when they are."""
        state = self._states.get((tenant, upstream))
        if state is None or now >= state.until:
            return None
        return state.reason, state.cause

    def rejected(self, tenant: str, upstream: str, cause: str, policy: Policy, now: float) -> None:
        """The upgrade was answered with 426, 403 or 404: HTTP for a long cooldown."""
        state = self._states.setdefault((tenant, upstream), _State())
        state.until = now + policy.rejected_cooldown
        state.reason, state.cause = Reason.WS_REJECTED, cause

    def lost(self, tenant: str, upstream: str, policy: Policy, now: float) -> None:
        """A connection failed or was lost; after ``max_losses`` in a row HTTP for a cooldown."""
        state = self._states.setdefault((tenant, upstream), _State())
        state.losses += 1
        if state.losses >= policy.max_losses:
            state.until = now + policy.cooldown
            state.reason, state.cause = Reason.WS_UNAVAILABLE, "cooling_down"

    def succeeded(self, tenant: str, upstream: str) -> None:
        """A turn ended well over a WebSocket: what went before is forgotten."""
        self._states.pop((tenant, upstream), None)


@dataclass(slots=True)
class Storage:
    """Which upstreams were seen not to keep responses, per tenant, and until when to believe it."""

    _until: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)

    def blocked(self, tenant: str, upstream: str, now: float) -> str | None:
        """How it was seen that responses are not kept; None when they may be."""
        until, cause = self._until.get((tenant, upstream), (0.0, ""))
        return cause if now < until else None

    def unsupported(
        self, tenant: str, upstream: str, cause: str, policy: Policy, now: float
    ) -> bool:
        """A response was not kept: all goes as it came for a cooldown. True: worth a warning."""
        self._until = {key: mark for key, mark in self._until.items() if now < mark[0]}
        self._until[tenant, upstream] = (now + policy.rejected_cooldown, cause)
        is_news = upstream not in self._warned
        self._warned.add(upstream)
        return is_news

    def supported(self, tenant: str, upstream: str) -> None:
        """A response was kept. That says nothing of whether another can be hung on it."""
        _, cause = self._until.get((tenant, upstream), (0.0, ""))
        if cause != ANCHOR_IGNORED:
            self._until.pop((tenant, upstream), None)
            self._warned.discard(upstream)

    def count(self, upstream: str, now: float) -> int:
        """For how many tenants the upstream is taken not to keep responses."""
        return sum(
            name == upstream and now < until for (_, name), (until, _) in list(self._until.items())
        )
