"""What is kept between turns: decides, commits, cools, and gives back, in one step each.

Nothing here waits, so that a decision and the taking of its chain are one. The driver calls it at
the points where a turn's state changes; connections it gives up go to ``close``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from engine import decision, digests, failures, following, handshake, kept
from engine.baseline import Baseline
from engine.chain import Anchor, Chain, ChainState, Epoch, KeptChain, Staged
from engine.diagnosis import Diagnosis
from engine.errors import NotKept
from engine.health import Health, Storage
from engine.model import ColdCause, EpochReason, Kind, Reason
from engine.outcome import Ended
from engine.sessions import Bounds, Scope, Sessions
from engine.spelling import Items
from engine.transports.base import Clock, Connection
from engine.turn import Turn, expand

_log = logging.getLogger("warmline.engine")


class _Decision(NamedTuple):
    """A plan, and the session that the turn belongs to by it."""

    plan: decision.Plan
    session: str


class Keeper:
    """Sessions, the health of upstreams, and the live connections by their ids."""

    def __init__(
        self,
        *,
        clock: Clock,
        new_id: Callable[[str], str],
        key: bytes,
        close: Callable[[Connection], None],
        bounds: Bounds,
    ) -> None:
        self._clock, self._new_id, self._key, self._close_one = clock, new_id, key, close
        self.sessions = Sessions(bounds, key)
        self.health = Health()
        self.storage = Storage()
        self.diagnosis = Diagnosis()
        self.connections: dict[str, Connection] = {}
        self._own: dict[str, str] = {}
        """The ids of the connections that only one client socket uses, by that socket."""

    def sender(self, turn: Turn) -> handshake.Sender:
        """What the turn's headers say of its connection and its frames."""
        call = turn.call
        return handshake.sender(
            call.headers, call.tenant, call.upstream.name, self._key, call.memory
        )

    def expand(self, turn: Turn, named: str) -> bool:
        """Expand a request that names an anchor of ours; False where it is to go as it is."""
        found = self.sessions.find(named, turn.scope.key)
        if found is None:
            return False
        (tenant, upstream, _), anchor = found
        if tenant != turn.call.tenant:
            # Another tenant's id does not exist, as far as this tenant can tell.
            turn.refused = True
            raise Ended(400, failures.not_found(named))
        if upstream != turn.call.upstream.name:
            return False
        if turn.call.session is None:
            turn.session = anchor.session
            turn.resets = turn.scope.epoch(turn.session).resets
        if anchor.stored or anchor.opaque:
            turn.followed = anchor
            return False
        if anchor.flawed or anchor.is_forgotten:
            # Expanded, it would lack what the provider answered: the client has to replay.
            turn.refused = True
            raise Ended(400, failures.not_found(named))
        turn.request = expand(turn.understood, anchor)
        turn.anchored, turn.named = True, named
        return True

    def must_tell(self, turn: Turn) -> None:
        """Before a turn is sent in full: raises ``NotKept`` where nobody knows all of it."""
        sent = turn.understood.items
        if isinstance(sent, Items) and not sent.is_told:
            raise NotKept("only digests are kept of what the client named")

    def not_kept(self, turn: Turn) -> Ended:
        """No chain goes on from what the client named, and nobody can tell it any more."""
        self.give_back(turn)
        turn.refused = True
        return Ended(400, failures.not_found(turn.named))

    def reset_by_call(self, turn: Turn) -> None:
        """The reset that came with the request: it holds for this turn already.

        A turn that is passed on as it came leaves it to the next one that is decided.
        """
        reason = turn.call.epoch_reset or EpochReason.MANUAL
        name = turn.session or self.decide(turn, turn.scope.epoch("")).session
        turn.scope.epoch(name)
        for scope in self.sessions.scopes_of(turn.call.tenant, turn.call.upstream.name, name):
            self.close(self.sessions.reset(scope, name, reason))

    def own(self, turn: Turn, connection: Connection) -> None:
        """Keep the connection that only this turn's client socket uses."""
        assert turn.call.socket is not None
        self.disown(turn.call.socket)
        turn.connection = self._own[turn.call.socket] = self._new_id("conn_")
        self.connections[turn.connection] = connection

    def owned(self, turn: Turn) -> Connection | None:
        """The live connection that only this turn's client socket uses."""
        turn.connection = self._own.get(turn.call.socket or "")
        connection = self.connections.get(turn.connection or "")
        return None if connection is None or connection.closed else connection

    def disown(self, socket: str) -> None:
        """The client socket is gone, and nothing runs on its own connection."""
        connection = self.connections.pop(self._own.pop(socket, ""), None)
        if connection is not None:
            self._close_one(connection)

    def decide(self, turn: Turn, epoch: Epoch) -> _Decision:
        policy = turn.call.upstream.policy
        request = turn.understood
        anchors = list(turn.scope.anchors.values())
        if isinstance(request.items, Items) and not request.items.is_told:
            # Only digests are kept of what the client named: it can be found in one anchor alone.
            base = request.items.base
            anchors = [one for one in anchors if isinstance(base, Baseline) and one.items is base]
        asker = decision.Asker(turn.call.socket, self.sender(turn).identity, self._key)
        if policy.continuation == "store":
            account = handshake.account(turn.call.headers)
            plan = kept.decide(anchors, request, policy, epoch, asker, account=account)
        else:
            plan = decision.decide(anchors, request, policy, epoch, asker)
        session = turn.call.session or (plan.compared.session if plan.compared else turn.session)
        return _Decision(plan, session or self._new_id("anon-"))

    def settle(self, turn: Turn) -> None:
        """Decide, after taking note of what ended meanwhile; fix session, epoch and reason."""
        now, policy = self._clock.monotonic(), turn.call.upstream.policy
        for chain in list(turn.scope.chains.values()):
            connection = self.connections.get(chain.connection)
            if chain.state is not ChainState.IDLE:
                continue
            # A chain in the shadow has no connection that could close.
            if chain.connection and (connection is None or connection.closed):
                self.retire(turn.scope, chain, ColdCause.CLOSED)
            elif now - chain.opened >= policy.max_connection_age:
                session = chain.anchor.session if chain.anchor else turn.session
                turn.scope.epoch(session).reset(EpochReason.CONNECTION_AGE)
                self.retire(turn.scope, chain, ColdCause.EPOCH_RESET, EpochReason.CONNECTION_AGE)
        epoch = turn.scope.epoch(turn.session) if turn.session else Epoch()
        made = self.decide(turn, epoch)
        turn.plan, turn.session = made.plan, made.session
        mine = turn.scope.epoch(turn.session)
        turn.resets, turn.epoch = mine.resets, mine.next_turn()
        turn.reason, turn.fallback = made.plan.reason, made.plan.fallback

    def digest_of(self, staged: Staged) -> bytes:
        """The digest of a request; it is kept in what is staged."""
        return staged.sent(self._key)

    def lost_one(self, turn: Turn) -> None:
        call, now = turn.call, self._clock.monotonic()
        self.health.lost(call.tenant, call.upstream.name, call.upstream.policy, now)

    def commit(self, turn: Turn) -> None:
        """What a turn leaves. The registry is brought back within its bounds when the turn ends."""
        call, scope, chain = turn.call, turn.scope, turn.chain
        now, policy = self._clock.monotonic(), call.upstream.policy
        epoch = scope.epoch(turn.session)
        self._follow(turn, epoch)
        anchor = self._anchor(turn)
        cold = self._flaw(turn)
        if turn.fold.response_id is not None:
            self.sessions.named_again(turn.fold.response_id, call.upstream.name)
        # A reset that came while the turn ran is for the next one, with the caller's reason.
        overtaken = turn.resets != epoch.resets
        pending = epoch.pending if overtaken else None
        if chain is not None and (anchor is None or cold is not None):
            # The connection's latest response is one that nothing may hang on. What is wrong with
            # it is no fault of the former one, which it has superseded all the same.
            self.retire(scope, chain, ColdCause.SUPERSEDED)
        elif chain is not None:
            former = chain.anchor
            if former is not None:
                self.sessions.superseded(former.size)
            chain.commit(anchor, now)
            extends = turn.observed or former is turn.extended
            if former is not None and extends and anchor is not None:
                former.give_way(anchor)
            if call.socket is not None:
                self.sessions.release(call.socket)
            chain.leased_by = None if turn.gone else call.socket
        is_kept = turn.stores and self._is_kept(turn)
        if anchor is not None:
            anchor.flawed = cold is not None
            if is_kept and cold is None:
                self._hang_on(anchor, turn)
            elif chain is None or cold is not None:
                anchor.cool(cold or ColdCause.HTTP)
                if (own := turn.followed) and own is turn.extended and not own.is_live:
                    self._share(own, anchor)  # what is live outlives what is cold
            self.sessions.add(scope, anchor)
        if turn.kind is Kind.COMPACTION:
            epoch.reset(EpochReason.COMPACTION)
        elif turn.kind is Kind.GENERATION and turn.epoch is not None:
            full = epoch.commit(policy.epoch_turns, consume=pending is None)
            if full:
                self.close(self.sessions.reset(scope, turn.session, EpochReason.TURN_COUNT))
        # What the client goes on with by itself stays its own, as it is nobody else's.
        if overtaken and anchor is not None and not anchor.opaque:
            why = epoch.word or EpochReason.MANUAL
            if anchor.chain is not None:
                self.retire(scope, anchor.chain, ColdCause.EPOCH_RESET, why)
            elif pending is not None or anchor.kept is not None:
                anchor.cool(ColdCause.EPOCH_RESET, why)

    def _anchor(self, turn: Turn) -> Anchor | None:
        """What the turn leaves; None for compactions and for baselines that nobody knows."""
        fold, staged = turn.fold, turn.staged
        if turn.kind is Kind.COMPACTION:
            return None
        opaque = staged is None
        if opaque and turn.chain is None and not _tells_its_session(turn):
            return None
        baseline, digest = Baseline(None, (), ()), digests.EMPTY
        if staged is not None:
            baseline, digest = staged.baseline(fold.outputs, self._key)
            turn.answered = digest
        store = turn.understood.value("store")
        return Anchor(
            id=self._new_id("an_"),
            response_id=fold.response_id or "",
            session=turn.session,
            fields={} if staged is None else staged.fields,
            items=baseline,
            digest=digest,
            epoch=turn.epoch[0] if turn.epoch else 1,
            born=self._clock.monotonic(),
            size=baseline.size,
            warmup=turn.kind is Kind.WARMUP,
            stored=store is not False and turn.mode is not None,
            opaque=opaque,
        )

    def _flaw(self, turn: Turn) -> ColdCause | None:
        """Why the answer cannot be continued although it was one."""
        fold = turn.fold
        former = turn.extended if turn.chain is None else turn.chain.anchor
        if not fold.response_id or kept.names_two(former, fold, turn.chain):
            return ColdCause.MISSING_RESPONSE_ID
        if fold.lacks_items:
            return ColdCause.MISSING_OUTPUT_ITEMS
        return ColdCause.OUTPUT_CONFLICT if fold.conflicts else None

    def abandon(self, turn: Turn, cause: ColdCause) -> None:
        """The turn's chain ends with it: nobody can tell what the connection holds."""
        if turn.chain is not None and turn.chain.id in turn.scope.chains:
            self.retire(turn.scope, turn.chain, cause)
        elif turn.kept_chain is not None and turn.extended is not None:
            self.let_go(turn)
            # A client that leaves says nothing of what the upstream keeps; anything else might.
            if cause is not ColdCause.AFTER_CANCEL:
                turn.extended.cool(cause)

    def store_blocked(self, turn: Turn) -> str | None:
        """Why the turn is not to be stored, in a word; None when it is."""
        call = turn.call
        if not kept.may_store(turn.understood, call.upstream.policy):
            return "store_false"
        return self.storage.blocked(call.tenant, call.upstream.name, self._clock.monotonic())

    def hang(self, turn: Turn) -> None:
        """Let the turn hang on the kept response that its plan found, or open a chain."""
        found = turn.plan.compared if turn.plan and turn.plan.reason is Reason.OK else None
        self._hang_under(turn, found)

    def _hang_under(self, turn: Turn, found: Anchor | None) -> None:
        turn.extended, turn.stores = found, True
        if found is None or found.kept is None or found.kept.taken:
            turn.kept_chain = self._new_id("ch_")
        else:
            found.kept.taken = True
            turn.kept_chain = found.kept.id

    def _follow(self, turn: Turn, epoch: Epoch) -> None:
        """Where it is known what the client has continued by itself, know what it has left."""
        anchor, call = turn.followed, turn.call
        if anchor is None or not following.is_proven(turn, anchor, epoch):
            return
        turn.staged, turn.extended = following.staged(turn, anchor), anchor
        now = self._clock.monotonic()
        if (
            call.upstream.policy.continuation == "store"
            and kept.says_stored(turn.fold)
            and self.storage.blocked(call.tenant, call.upstream.name, now) is None
        ):
            self._hang_under(turn, anchor)

    def let_go(self, turn: Turn) -> None:
        """The turn adds nothing to the chain; the next one may go on under its id."""
        former = None if turn.extended is None else turn.extended.kept
        if former is not None and former.id == turn.kept_chain:
            former.taken = False

    def unsupported(self, turn: Turn, cause: str) -> None:
        """The upstream does not keep responses: send all as it came for a while."""
        call, now = turn.call, self._clock.monotonic()
        tenant, upstream = call.tenant, call.upstream.name
        if self.storage.unsupported(tenant, upstream, cause, call.upstream.policy, now):
            _log.warning(
                "upstream %s does not keep responses (%s): turns go in full", upstream, cause
            )
        for scope in self.sessions.scopes():
            if scope.key[:2] == (tenant, upstream):
                for anchor in scope.anchors.values():
                    if anchor.kept is not None:
                        anchor.kept = None
                        anchor.cool(ColdCause.HTTP)

    def figures(self, upstream: str) -> tuple[int, int]:
        """Tenants for whom the upstream keeps no responses, and anchors that may be continued.

        May be called from any thread: it looks at copies.
        """
        live = sum(
            anchor.cold is None
            and (anchor.kept is not None or bool(anchor.chain and anchor.chain.connection))
            for scope in list(self.sessions.scopes())
            if scope.key[1] == upstream
            for anchor in list(scope.anchors.values())
        )
        return self.storage.count(upstream, self._clock.monotonic()), live

    def _is_kept(self, turn: Turn) -> bool:
        """Whether the upstream says that it keeps the response; if it does not, take note."""
        if kept.says_stored(turn.fold):
            self.storage.supported(turn.call.tenant, turn.call.upstream.name)
            return True
        # An answer without an id says nothing of what the upstream keeps, nor what was not asked.
        if (
            turn.asks_to_store
            and turn.fold.response_id
            and turn.fold.terminal != "response.incomplete"
        ):
            self.unsupported(turn, "not_stored")
        return False

    def _hang_on(self, anchor: Anchor, turn: Turn) -> None:
        """From now on turns may hang on this response; its baseline is shared with the former's."""
        anchor.kept = KeptChain(turn.kept_chain or "", account=handshake.account(turn.call.headers))
        if turn.extended is not None:
            self._share(turn.extended, anchor)

    def _share(self, former: Anchor, anchor: Anchor) -> None:
        """What both hold is kept, and counted, with the later one."""
        self.sessions.superseded(former.size)
        former.size = 0
        former.give_way(anchor)

    def give_back(self, turn: Turn) -> None:
        """Nothing was sent: the chain is as it was; one without an anchor is of no use."""
        chain, turn.chain = turn.chain, None
        if chain is not None and not chain.is_warm:
            self.retire(turn.scope, chain, ColdCause.CLOSED)
        elif chain is not None:
            chain.release()

    def retire(
        self, scope: Scope, chain: Chain, cause: ColdCause, reset_reason: str | None = None
    ) -> None:
        chain.cool(cause, reset_reason)
        scope.chains.pop(chain.id, None)
        self.close([chain])

    def close(self, chains: list[Chain]) -> None:
        """The connections of chains that are no more."""
        for chain in chains:
            connection = self.connections.pop(chain.connection, None)
            if connection is not None:
                self._close_one(connection)


def _tells_its_session(turn: Turn) -> bool:
    """Whether the next turn of an unnamed session can only be told by the response it names."""
    return turn.call.session is None and turn.reason is Reason.CLIENT_ANCHORED
