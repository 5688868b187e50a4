"""What is known after a client has continued by itself a response that the upstream keeps.

Its request goes as it came (DESIGN 4.2). Where the engine knew what the client named, and the
upstream went on from just that, the provider holds the named baseline, what the client sent beyond
it, and the answer: the turn leaves an anchor like any other. Pure.
"""

from __future__ import annotations

from engine import kept
from engine.chain import Anchor, Epoch, Staged, stage
from engine.model import ColdCause, EpochReason
from engine.request import own_copy
from engine.turn import Turn, expand


def is_proven(turn: Turn, anchor: Anchor, epoch: Epoch) -> bool:
    """Whether the turn, whose end was seen, has extended just this anchor.

    After a reset nothing is: the engine continues nothing of it before a turn has gone in full.
    """
    if anchor.opaque or anchor.flawed or anchor.renamed or anchor.cold is ColdCause.EPOCH_RESET:
        return False
    if turn.resets != epoch.resets or epoch.pending not in (None, EpochReason.COMPACTION):
        return False
    return turn.mode is None or _went_on(turn, anchor)


def _went_on(turn: Turn, anchor: Anchor) -> bool:
    """Whether the upstream took the id for what it is.

    One that does not know ``previous_response_id`` would answer the delta alone; the answer has to
    name it, but on the connection that holds the response as its latest.
    """
    response = turn.fold.last_response
    named = None if response is None else kept.hangs_on(bytes(response), event=False)
    if named is None:
        return turn.chain is not None and turn.chain.anchor is anchor
    return named == anchor.response_id


def staged(turn: Turn, anchor: Anchor) -> Staged:
    """What the turn leaves on top of the anchor."""
    request = expand(turn.understood, anchor)
    return stage(request.items, own_copy(request.fields), anchor)
