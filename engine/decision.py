"""The decision: may this request continue an anchor, which one, and if not, why not.

Pure: anchors and request in, a plan out. A chain is a candidate only if its whole baseline is a
proven prefix of the request and all compared fields are equal (DESIGN 4.2, 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from engine import divergence
from engine.chain import Anchor, Chain, ChainState, Epoch
from engine.echoes import most_echoed
from engine.model import NOT_ELIGIBLE, ColdCause, EpochReason, Evidence, Policy, Reason
from engine.reading import LatelyRead, Reader
from engine.request import Request, changed_fields


class Plan(msgspec.Struct, frozen=True):
    """What may be done with a request, and what is to be said if nothing better can be.

    ``candidates`` are ranked; the driver takes the first whose connection is still there.
    ``reason`` and all below it hold for the first candidate, or for going in full if there is none.
    """

    candidates: tuple[Chain, ...]
    reason: Reason
    compared: Anchor | None = None
    fallback: str | None = None
    reset_reason: str | None = None
    changed: tuple[str, ...] = ()
    evidence: Evidence | None = None

    @property
    def eligible(self) -> bool:
        return eligible(self.reason, compared=self.compared is not None)


def eligible(reason: Reason, *, compared: bool) -> bool:
    """Whether the turn could have been continued (DESIGN 4.4)."""
    return compared and reason not in NOT_ELIGIBLE


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sends the request: its client socket, and the digest of its handshake headers."""

    socket: str | None
    handshake: bytes
    digest_key: bytes


def decide(
    anchors: Sequence[Anchor], request: Request, policy: Policy, epoch: Epoch, asker: Asker
) -> Plan:
    """Rank the chains that the request extends; without one, find the reason."""
    free = [
        anchor
        for anchor in anchors
        if anchor.chain is not None
        and anchor.chain.free_for(asker.socket, asker.handshake)
        and not anchor.opaque
    ]
    free.sort(key=lambda anchor: (-len(anchor.items), -anchor.born))
    extended: list[Anchor] = []
    read = LatelyRead()
    matched: dict[int, int] = {}
    for anchor in free:
        # The best one is found: the others are ranked only where nothing has to be read for it.
        if extended and not anchor.is_proven(request.items):
            continue
        changed = changed_fields(anchor.fields, request.fields, policy.tools)
        if not changed and _may_extend(anchor, request):
            matched[id(anchor)] = anchor.matched(request.items, policy.freeze, read)
            if matched[id(anchor)] == len(anchor.items):
                extended.append(anchor)
    if extended:
        chains = tuple(anchor.chain for anchor in extended if anchor.chain is not None)
        return Plan(candidates=chains, reason=Reason.OK, compared=extended[0])
    return _explain(anchors, request, policy, epoch, asker, found=matched, read=read)


def _may_extend(anchor: Anchor, request: Request) -> bool:
    """Whether the request is long enough to hold all items of the anchor, and one more."""
    length = len(anchor.items)
    return length < len(request.items) or (length == len(request.items) and anchor.warmup)


def _explain(
    anchors: Iterable[Anchor],
    request: Request,
    policy: Policy,
    epoch: Epoch,
    asker: Asker,
    *,
    found: Mapping[int, int],
    read: Reader,
) -> Plan:
    """Why the request goes in full: what it was compared with, and where the two part.

    ``found`` are, by the anchor's id(), the counts of matching items that are known already.
    """
    known = [anchor for anchor in anchors if not anchor.opaque]
    compared = most_echoed(known, request.items)
    if compared is None:
        # A reset leaves nothing to compare by intent: it is the reason, not a missing baseline.
        if epoch.pending is not None and (known or epoch.pending == EpochReason.COMPACTION):
            return Plan((), Reason.EPOCH_RESET, reset_reason=epoch.pending)
        return Plan((), Reason.NO_BASELINE)
    if compared.cold is ColdCause.EPOCH_RESET:
        return Plan((), Reason.EPOCH_RESET, compared, reset_reason=compared.reset_reason)
    changed = changed_fields(compared.fields, request.fields, policy.tools)
    matched = found.get(id(compared))
    if matched is None:
        matched = compared.matched(request.items, policy.freeze, read)
    if changed or matched < len(compared.items):
        evidence = divergence.describe(
            compared.items,
            request.items,
            matched,
            key=asker.digest_key,
            visible_keys=policy.visible_keys,
            freeze=policy.freeze,
            changed=changed,
            fields=(compared.fields, request.fields),
            read=read,
        )
        if not changed:
            return Plan((), Reason.PREFIX_MISMATCH, compared, evidence=evidence)
        names = evidence.changed_fields
        return Plan((), Reason.NON_INPUT_FIELDS_CHANGED, compared, changed=names, evidence=evidence)
    if matched == len(request.items) and not compared.warmup:
        return Plan((), Reason.EMPTY_DELTA, compared)
    reason, fallback = _state_of(compared, asker)
    return Plan((), reason, compared, fallback=fallback)


_COLD_REASONS = {
    ColdCause.MISSING_RESPONSE_ID: Reason.MISSING_RESPONSE_ID,
    ColdCause.MISSING_OUTPUT_ITEMS: Reason.MISSING_OUTPUT_ITEMS,
    ColdCause.OUTPUT_CONFLICT: Reason.OUTPUT_CONFLICT,
}


def _state_of(anchor: Anchor, asker: Asker) -> tuple[Reason, str | None]:
    """Why an anchor that the request extends cannot be continued right now."""
    if anchor.chain is None:
        cause = anchor.cold or ColdCause.CLOSED
        reason = _COLD_REASONS.get(cause, Reason.CONNECTION_LOST)
        return reason, None if reason is not Reason.CONNECTION_LOST else cause
    if anchor.chain.state is ChainState.BUSY:
        return Reason.CHAIN_BUSY, None
    if anchor.chain.leased_by not in (None, asker.socket):
        return Reason.CHAIN_BUSY, "leased"
    return Reason.CONNECTION_LOST, "handshake_changed"
