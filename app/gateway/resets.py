"""Resetting the epoch of a session that is named by its key, as pages do (DESIGN 4.6)."""

from __future__ import annotations

from typing import NamedTuple

from app.gateway.context import Context
from engine.chain import ChainState
from engine.sessions import Scope
from engine.turn import session_key as keyed


class Reset(NamedTuple):
    """What a reset has ended."""

    chains: int
    """Live ones, be they on a connection or kept by the upstream."""
    under_way: bool
    """A turn runs. It ends as it began; what it leaves is cold, and the next one goes in full."""


def reset_epoch(context: Context, session_key: str, reason: str) -> Reset | None:
    """Reset a session by its key. None, and nothing is done, where nothing of it is live in this
    process: its next turn goes in full in any case."""
    named = _find(context, session_key)
    if named is None:
        return None
    scopes = context.driver.sessions.scopes_of(*named)
    chains, busy = map(sum, zip(*(_live(scope, named[2]) for scope in scopes), strict=True))
    if not chains and not busy:
        return None
    context.driver.reset_epoch(*named, reason)
    return Reset(chains, busy > 0)


def _find(context: Context, session_key: str) -> tuple[str, str, str] | None:
    """Tenant, upstream and name. The keys are digests: they are made until one fits."""
    for scope in context.driver.sessions.scopes():
        tenant, upstream, _ = scope.key
        for name in scope.epochs:
            if keyed(context.engine_key, tenant, upstream, name) == session_key:
                return tenant, upstream, name
    return None


def _live(scope: Scope, session: str) -> tuple[int, int]:
    """Live chains of a session, and what of it is under way."""
    chains = [
        chain
        for chain in scope.chains.values()
        if chain.state is not ChainState.RETIRED
        and (scope.key[2] is not None if chain.anchor is None else chain.anchor.session == session)
    ]
    kept = {
        anchor.kept.id
        for anchor in scope.anchors.values()
        if anchor.kept is not None and anchor.cold is None and anchor.session == session
    }
    busy = sum(chain.state is ChainState.BUSY for chain in chains)
    return len(chains) + len(kept), max(busy, scope.turns if scope.key[2] is not None else 0)
