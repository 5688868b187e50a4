"""Whether a tenant's WebSockets to an upstream are worth trying: sticky, but never for good.

One blip must not pin a session to HTTP, and a dying upstream must not be retried on every turn
(DESIGN 4.7, CASES 48). Times are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.model import Policy, Reason


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
