"""Anchors, and the state machine of a chain: stage, commit, cool.

A turn is staged when it takes a chain, and only its terminal event commits it: until then the
chain's anchor, the epoch and a pending reset are as they were. Any end but a commit makes the
anchor cold and retires the chain, since nobody can tell what the connection holds (DESIGN 4.1).

::

    IDLE ──stage──▶ BUSY ──commit──▶ IDLE
      │              │ └──release──▶ IDLE      nothing was sent
      └────cool──────┴──cool──▶ RETIRED        for good; its connection is to be closed
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from msgspec import Raw

from engine import digests, matching
from engine.baseline import Baseline, digested, weight_of_fields
from engine.freezing import Keys
from engine.growing import grown
from engine.held import HeldItem
from engine.items import parse
from engine.model import ColdCause, EpochReason
from engine.reading import Reader
from engine.spelling import Known

__all__ = [
    "Anchor", "Chain", "ChainState", "Epoch", "HeldItem", "KeptChain", "Staged", "known", "stage",
]  # fmt: skip


@dataclass(slots=True, eq=False)
class KeptChain:
    """A chain without a connection: the upstream keeps the response, any turn may hang on it."""

    id: str
    taken: bool = False
    """A turn goes on under this id; the next one that hangs here is a fork with its own."""
    account: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The headers that tell for whom of the tenant's accounts it is kept."""


@dataclass(slots=True, eq=False)
class Anchor:
    """What an answered turn leaves: response id, fields, baseline."""

    id: str
    response_id: str
    session: str
    fields: Mapping[str, Raw]
    items: Sequence[HeldItem]
    digest: bytes
    epoch: int
    born: float
    """When the turn was committed; newer anchors win ties."""
    size: int
    """Bytes of the baseline that no later anchor of the chain holds."""
    warmup: bool = False
    stored: bool = False
    """The provider keeps the response, as far as the request asked for it."""
    opaque: bool = False
    """The baseline is unknown: the turn hung on an id that is not ours."""
    flawed: bool = False
    """The provider's answer is not known whole: the baseline explains, but must not be expanded."""
    chain: Chain | None = None
    cold: ColdCause | None = None
    reset_reason: str | None = None
    renamed: bool = False
    """The upstream has given the id once more: what it names by it now is not known."""
    kept: KeptChain | None = None
    """With ``continuation = "store"``: the upstream said that it keeps the response."""

    def cool(self, cause: ColdCause, reset_reason: str | None = None) -> None:
        """From now on no connection is known to hold this response as its latest."""
        is_reset = cause is ColdCause.EPOCH_RESET and self.cold is not cause
        if self.cold is None or is_reset:
            self.cold, self.chain = cause, None
            self.reset_reason = reset_reason

    @property
    def is_live(self) -> bool:
        """Its response is the latest on a live connection, or kept by the upstream."""
        return self.chain is not None or (self.kept is not None and self.cold is None)

    @property
    def is_forgotten(self) -> bool:
        """Only digests of it are kept, and it cannot be continued: nobody can say what it holds."""
        return not self.is_live and digested(self.items) is not None

    def give_way(self, successor: Anchor) -> None:
        """``successor`` extends this one: of what both hold, one copy is kept."""
        if isinstance(self.items, Baseline) and isinstance(successor.items, Baseline):
            self.items.give_way(successor.items)

    @property
    def weight(self) -> int:
        """Bytes in memory of what it holds and no later anchor does."""
        held = self.items
        if not isinstance(held, Baseline):
            return self.size
        if held.is_superseded:
            return 0
        # The fields are those of the body, as long as there is one.
        own = 0 if held.spelling is not None else weight_of_fields(self.fields)
        return held.size + own

    def matched(self, request_items: Sequence[Raw], freeze: Keys = (), read: Reader = parse) -> int:
        """How many of the baseline's items the request repeats, from the first on.

        ``freeze`` is that of the policy of the anchor's upstream.
        """
        return matching.matched(self.items, request_items, freeze, read)

    def is_proven(self, request_items: Sequence[Raw]) -> bool:
        """Whether a body need not be read to say how many items the request repeats."""
        held = self.items
        if not isinstance(held, Baseline):
            return True
        return matching.proven(held, request_items) >= len(held) - len(held.more) > 0


def known(anchors: Iterable[Anchor]) -> list[Known]:
    """The bodies that these anchors hold, for reading the next one."""
    return [
        Known(held.spelling, anchor.fields)
        for anchor in anchors
        if isinstance(held := anchor.items, Baseline) and held.spelling is not None
    ]


class ChainState(Enum):
    IDLE = "idle"
    BUSY = "busy"
    RETIRED = "retired"


_TRANSITIONS = {
    ("stage", ChainState.IDLE): ChainState.BUSY,
    ("commit", ChainState.BUSY): ChainState.IDLE,
    ("release", ChainState.BUSY): ChainState.IDLE,
    ("cool", ChainState.IDLE): ChainState.RETIRED,
    ("cool", ChainState.BUSY): ChainState.RETIRED,
    ("cool", ChainState.RETIRED): ChainState.RETIRED,
}


@dataclass(slots=True, eq=False)
class Chain:
    """A connection, and the anchor whose response it holds as its latest.

    ``connection`` names the connection; the driver owns the thing itself. ``handshake`` is the
    digest of the headers that it was opened with.
    """

    id: str
    connection: str
    handshake: bytes
    opened: float
    last_used: float
    model: str | None = None
    """Of the turn that opened the connection."""
    state: ChainState = ChainState.BUSY
    anchor: Anchor | None = None
    leased_by: str | None = None

    def _go(self, event: str) -> None:
        try:
            self.state = _TRANSITIONS[event, self.state]
        except KeyError:
            raise ValueError(f"a chain cannot {event} while it is {self.state.value}") from None

    def stage(self, now: float) -> None:
        """A turn takes the chain."""
        self._go("stage")
        self.last_used = now

    def release(self) -> None:
        """The turn gives it back: nothing was sent on it."""
        self._go("release")

    def commit(self, anchor: Anchor | None, now: float) -> None:
        """A terminal event was seen: the connection's latest response is the new anchor's."""
        self._go("commit")
        if self.anchor is not None:
            self.anchor.size = 0  # a chain is only ever extended: the new anchor holds its items
            lost = anchor is not None and anchor.opaque
            self.anchor.cool(ColdCause.CLIENT_ANCHORED if lost else ColdCause.SUPERSEDED)
        self.anchor = anchor
        if anchor is not None:
            anchor.chain = self
        self.last_used = now

    def cool(self, cause: ColdCause, reset_reason: str | None = None) -> None:
        """The chain ends: its anchor is cold, its connection is not to be used again."""
        self._go("cool")
        if self.anchor is not None:
            self.anchor.cool(cause, reset_reason)
            self.anchor = None

    @property
    def is_warm(self) -> bool:
        """Its anchor may be extended: no reset came since the chain was taken."""
        return self.anchor is not None and self.anchor.chain is self

    def free_for(self, socket: str | None, handshake: bytes) -> bool:
        """Idle, not leased to another client socket, and opened with the same headers."""
        return (
            self.state is ChainState.IDLE
            and self.leased_by in (None, socket)
            and self.handshake == handshake
        )


@dataclass(slots=True)
class Epoch:
    """The time between two resets of a session's anchors."""

    number: int = 1
    turns: int = 0
    pending: str | None = None
    """The reason of a reset that no turn has consumed yet; several pending ones are one."""
    word: str | None = None
    """The reason of the latest reset, be it consumed or not."""
    resets: int = 0
    """Counts resets, so that a turn in flight knows that one came between."""

    def next_turn(self) -> tuple[int, int]:
        """Number of the epoch, and of the turn in it, for a turn that would succeed now."""
        return (self.number, self.turns + 1) if self.pending is None else (self.number + 1, 1)

    def reset(self, reason: str) -> None:
        """The first word stands (docs/decisions/0016), but for a compaction's: it cools nothing."""
        if self.pending in (None, EpochReason.COMPACTION):
            self.pending = self.word = reason

    def commit(self, limit: int, *, consume: bool = True) -> bool:
        """A generation turn succeeded. True when it was the last one of a counted epoch.

        Without ``consume`` the pending reset stays for the next turn.
        """
        if not consume:
            self.turns += 1
            return False
        self.number, self.turns = self.next_turn()
        self.pending = None
        return 0 < limit <= self.turns


@dataclass(frozen=True, slots=True)
class Staged:
    """What a turn will leave behind if it succeeds: all but the answer."""

    known: Sequence[HeldItem]
    """The proven items."""
    items: Sequence[Raw]
    """The full input: proven items first, then those that are sent."""
    fields: Mapping[str, Raw]
    prefix: bytes
    """Transcript digest of the proven items."""
    frozen: int = 0
    """Old tool outputs that differ from the seen ones, and are treated as these (DESIGN 4.5)."""
    _sent: list[bytes] = field(default_factory=list, repr=False)

    def baseline(self, outputs: Sequence[Raw], key: bytes) -> tuple[Baseline, bytes]:
        """Baseline and transcript digest once these items were answered."""
        return grown(self.known, self.items, outputs), self.digest(outputs, key)

    def digest(self, outputs: Iterable[Raw], key: bytes) -> bytes:
        """Transcript digest once these items were answered."""
        return digests.extend(key, self.sent(key), outputs)

    def sent(self, key: bytes) -> bytes:
        """Transcript digest of the request; worked out once, wherever that is."""
        if not self._sent:
            new = self.items[len(self.known) :]
            self._sent.append(digests.extend(key, self.prefix, new))
        return self._sent[0]


def stage(
    request_items: Sequence[Raw],
    fields: Mapping[str, Raw],
    extended: Anchor | None,
    freeze: Keys = (),
) -> Staged:
    """What is held after sending these items, on top of ``extended`` where the turn continues."""
    return Staged(
        known=() if extended is None else extended.items,
        items=request_items,
        fields=fields,
        prefix=digests.EMPTY if extended is None else extended.digest,
        frozen=0
        if extended is None or not freeze
        else matching.frozen(extended.items, request_items),
    )
