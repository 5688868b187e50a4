"""The bounded registry of anchors, chains, epochs and leases.

A scope is (tenant, upstream, session); all sessions without a name share one scope per tenant and
upstream, and are told apart by content (DESIGN 4.2). Everything here is bounded; what is busy or
leased is spared, the rest goes by last use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Raw

from engine.baseline import Baseline
from engine.chain import Anchor, Chain, ChainState, Epoch
from engine.model import ColdCause

ScopeKey: TypeAlias = tuple[str, str, str | None]
"""Tenant, upstream, session name (None: the scope of all unnamed sessions)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept. ``bytes`` bounds the baselines of all anchors together.

    Beyond it they are condensed (``engine.condensed``), and forgotten only if that is not enough.
    """

    sessions: int = 4096
    anchors_per_session: int = 32
    anchors_unnamed: int = 256
    chains_per_session: int = 16
    connections: int = 512
    bytes: int = 512 * 1024 * 1024
    turn_states: int = 16


@dataclass(slots=True, eq=False)
class Scope:
    """One session, or all unnamed ones of a tenant and upstream."""

    key: ScopeKey
    anchors: OrderedDict[str, Anchor] = field(default_factory=OrderedDict)
    in_full: dict[str, Anchor] = field(default_factory=dict)
    """Those that may be condensed yet, the oldest first."""
    chains: dict[str, Chain] = field(default_factory=dict)
    epochs: OrderedDict[str, Epoch] = field(default_factory=OrderedDict)
    turn_states: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """The provider's sticky-routing token per client turn; never longer than the turn."""
    digests: dict[str, tuple[Raw, str | None]] = field(default_factory=dict)
    """Of the latest turn's fields that seldom change, as its anchor holds them: their digests."""
    turns: int = 0
    """How many turns are under way: a scope in use is never forgotten."""

    def epoch(self, session: str) -> Epoch:
        epoch = self.epochs.get(session)
        if epoch is None:
            epoch = self.epochs[session] = Epoch()
        self.epochs.move_to_end(session)
        return epoch

    @property
    def idle(self) -> bool:
        return self.turns == 0 and all(
            chain.state is not ChainState.BUSY and chain.leased_by is None
            for chain in self.chains.values()
        )


class Sessions:
    """The registry. Chains that it gives up are returned: their connections are to be closed."""

    def __init__(self, bounds: Bounds, key: bytes) -> None:
        """``key`` is that of the digests which are kept beyond the byte budget."""
        self._bounds, self._key = bounds, key
        self._scopes: OrderedDict[ScopeKey, Scope] = OrderedDict()
        self._by_response: dict[str, dict[ScopeKey, Anchor]] = {}
        self._bytes = 0

    def scope(self, key: ScopeKey) -> Scope:
        """The scope with this key, made at first use, now the most recently used."""
        scope = self._scopes.get(key)
        if scope is None:
            scope = self._scopes[key] = Scope(key)
        self._scopes.move_to_end(key)
        return scope

    def anchors(self, key: ScopeKey) -> list[Anchor]:
        """The anchors of a scope, if there is one."""
        scope = self._scopes.get(key)
        return [] if scope is None else list(scope.anchors.values())

    def scopes(self) -> Iterator[Scope]:
        yield from list(self._scopes.values())

    def scopes_of(self, tenant: str, upstream: str, session: str) -> list[Scope]:
        """The scopes that hold a session by its name, be it one that was given here.

        There may be two: a request without a name is of the session whose response it names.
        """
        unnamed, own = self._scopes.get((tenant, upstream, None)), (tenant, upstream, session)
        found = [unnamed] if unnamed is not None and session in unnamed.epochs else []
        if not found or own in self._scopes:
            found.append(self.scope(own))
        return found

    def find(
        self, response_id: str, asker: ScopeKey | None = None
    ) -> tuple[ScopeKey, Anchor] | None:
        """The anchor that an answered turn left, whoever's it is: the caller checks the tenant.

        Ids are the provider's, and may repeat: the asker's own come first, then the newest.
        """
        found = None
        best = -1
        for key, anchor in self._by_response.get(response_id, {}).items():
            near = 0
            while asker is not None and near < len(asker) and key[near] == asker[near]:
                near += 1
            if near >= best:
                found, best = (key, anchor), near
        return found

    def move(self, chain: Chain, scope: Scope) -> None:
        """A busy chain belongs to the scope of the turn that took it."""
        for other in self._scopes.values():
            other.chains.pop(chain.id, None)
        scope.chains[chain.id] = chain

    def add(self, scope: Scope, anchor: Anchor) -> None:
        """Keep an anchor, as the newest of its scope."""
        # The scope may have been evicted during the turn; what hangs on it would never be dropped.
        scope = self.scope(scope.key)
        scope.anchors[anchor.id] = scope.in_full[anchor.id] = anchor
        self._bytes += anchor.size
        if anchor.response_id:
            holders = self._by_response.setdefault(anchor.response_id, {})
            holders.pop(scope.key, None)
            holders[scope.key] = anchor

    def named_again(self, response_id: str, upstream: str) -> None:
        """The upstream gave an id a second time: it may no longer keep what the first one named.

        An upstream that counts its responses begins anew when it starts anew, for all tenants.
        """
        for (_, name, _), anchor in self._by_response.get(response_id, {}).items():
            if name != upstream:
                continue
            anchor.renamed = True
            if anchor.kept is not None:
                anchor.cool(ColdCause.MISSING_RESPONSE_ID)

    @property
    def bytes(self) -> int:
        """What all anchors weigh together, as far as it was counted."""
        return self._bytes

    def superseded(self, size: int) -> None:
        """``size`` bytes of a baseline are now counted with the anchor that extends it."""
        self._bytes -= size

    def drop(self, scope: Scope, anchor: Anchor) -> None:
        """Forget an anchor for good."""
        if scope.anchors.pop(anchor.id, None) is None:
            return
        scope.in_full.pop(anchor.id, None)
        if not scope.anchors:
            scope.digests.clear()  # what they are of was the anchors'
        self._bytes -= anchor.size
        anchor.size = 0
        holders = self._by_response.get(anchor.response_id, {})
        if holders.get(scope.key) is anchor:
            del holders[scope.key]
            if not holders:
                del self._by_response[anchor.response_id]

    def release(self, socket: str) -> None:
        """A client socket ended: its chains live on for whoever resumes."""
        for scope in self._scopes.values():
            for chain in scope.chains.values():
                if chain.leased_by == socket:
                    chain.leased_by = None

    def reset(self, scope: Scope, session: str, reason: str) -> list[Chain]:
        """Start a new epoch: the session's anchors are cold. Idle chains are returned to close.

        A busy chain stays; its turn finds the reset when it ends.
        """
        epoch = scope.epoch(session)
        epoch.reset(reason)
        epoch.resets += 1
        closing = []
        for chain in list(scope.chains.values()):
            if chain.state is ChainState.IDLE and _is_of(chain, session):
                chain.cool(ColdCause.EPOCH_RESET, epoch.word)
                del scope.chains[chain.id]
                closing.append(chain)
        for anchor in scope.anchors.values():
            if anchor.session == session:
                anchor.cool(ColdCause.EPOCH_RESET, epoch.word)
        return closing

    def trim(self, scope: Scope) -> list[Chain]:
        """Bring a scope, then all scopes, back within the bounds; returns the chains to close."""
        excess = len(scope.chains) - self._bounds.chains_per_session
        closing = _least_used(scope.chains.values())[:excess] if excess > 0 else []
        for chain in closing:
            chain.cool(ColdCause.EVICTED)
            del scope.chains[chain.id]
        limit = self._bounds.anchors_per_session
        self._trim_anchors(
            scope, limit if scope.key[2] is not None else self._bounds.anchors_unnamed
        )
        _trim_epochs(scope, self._bounds.anchors_unnamed)
        while len(scope.turn_states) > self._bounds.turn_states:
            scope.turn_states.popitem(last=False)
        closing.extend(self._trim_sessions())
        for anchor in list(scope.in_full.values()):
            self._weigh(anchor)
            if not anchor.size:  # a later one holds all of it
                del scope.in_full[anchor.id]
        closing.extend(self._trim_bytes())
        return closing

    def _trim_anchors(self, scope: Scope, limit: int) -> None:
        if len(scope.anchors) <= limit:
            return
        for anchor in [a for a in scope.anchors.values() if a.chain is None]:
            if len(scope.anchors) <= limit:
                return
            self.drop(scope, anchor)

    def _trim_sessions(self) -> list[Chain]:
        closing: list[Chain] = []
        if len(self._scopes) <= self._bounds.sessions:
            return closing
        for scope in list(self._scopes.values()):
            if len(self._scopes) <= self._bounds.sessions:
                break
            if not scope.idle:
                continue
            closing.extend(scope.chains.values())
            for chain in scope.chains.values():
                chain.cool(ColdCause.EVICTED)
            for anchor in list(scope.anchors.values()):
                self.drop(scope, anchor)
            del self._scopes[scope.key]
        return closing

    def _weigh(self, anchor: Anchor) -> None:
        """Count what an anchor holds now: a decision may have worked out more of it."""
        weight = anchor.weight
        self._bytes += weight - anchor.size
        anchor.size = weight

    def _condense(self, *, live: bool) -> None:
        """Keep digests only of cold, or of live anchors, by last use, until all is in bounds.

        What a turn is about to extend is spared. A client's lease is no hindrance: its chain stays.
        """
        for scope in list(self._scopes.values()):
            if self._bytes <= self._bounds.bytes:
                return
            found = [anchor for anchor in scope.in_full.values() if anchor.is_live is live]
            if live:
                found.sort(key=lambda anchor: anchor.chain.last_used if anchor.chain else 0.0)
            for anchor in found:
                if self._bytes <= self._bounds.bytes:
                    return
                if anchor.chain is not None and anchor.chain.state is ChainState.BUSY:
                    continue
                if isinstance(anchor.items, Baseline):
                    anchor.items.condense(self._key)
                del scope.in_full[anchor.id]
                self._weigh(anchor)

    def _trim_bytes(self) -> list[Chain]:
        """Condense; if that is not enough, forget.

        Either way cold anchors of the least recently used sessions go first, then chains that are
        spare.
        """
        if self._bytes <= self._bounds.bytes:
            return []
        self._condense(live=False)
        self._condense(live=True)
        for live in (False, True):  # kept responses have no connection to close
            for scope in list(self._scopes.values()):
                for anchor in [a for a in scope.anchors.values() if a.is_live is live]:
                    if self._bytes <= self._bounds.bytes:
                        return []
                    if anchor.chain is None:
                        self.drop(scope, anchor)
        closing: list[Chain] = []
        for scope in list(self._scopes.values()):
            for chain in _least_used(scope.chains.values()):
                if self._bytes <= self._bounds.bytes:
                    return closing
                anchor_of = chain.anchor
                chain.cool(ColdCause.EVICTED)
                del scope.chains[chain.id]
                closing.append(chain)
                if anchor_of is not None:
                    self.drop(scope, anchor_of)
        return closing

    def make_room(self, opening: int = 0, connections: int | None = None) -> list[Chain] | None:
        """At the connection limit: the least recently used idle, unleased chain, to be closed.

        An empty list where there is room, None where every connection is busy or leased.
        ``opening`` connections are under way, and no chains yet. ``connections``: how many there
        are at most, where that is known; most of the time it says that there is room.
        """
        if connections is not None and connections + opening < self._bounds.connections:
            return []
        scopes = self._scopes.values()
        chains = [(s, c) for s in scopes for c in s.chains.values() if c.connection]
        if len(chains) + opening < self._bounds.connections:
            return []
        spare = _least_used(chain for _, chain in chains)
        if not spare:
            return None
        chain = spare[0]
        for scope, one in chains:
            if one is chain:
                del scope.chains[chain.id]
        chain.cool(ColdCause.EVICTED)
        return [chain]


def _trim_epochs(scope: Scope, limit: int) -> None:
    """The least recently used ones go, but none of a session that still has an anchor."""
    if len(scope.epochs) <= limit:
        return
    in_use = {anchor.session for anchor in scope.anchors.values()}
    for session in [name for name in scope.epochs if name not in in_use]:
        if len(scope.epochs) <= limit:
            return
        del scope.epochs[session]


def _is_of(chain: Chain, session: str) -> bool:
    return chain.anchor is None or chain.anchor.session == session


def _least_used(chains: Iterable[Chain]) -> list[Chain]:
    """Idle, unleased chains, the least recently used first."""
    return sorted(
        (c for c in chains if c.state is ChainState.IDLE and c.leased_by is None),
        key=lambda chain: chain.last_used,
    )
