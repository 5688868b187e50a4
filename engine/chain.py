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

from engine import digests, items
from engine.model import ColdCause, EpochReason


class HeldItem:
    """One item that the provider holds, and the client's latest proven spelling of it.

    Both are kept: equality under the projection is not transitive (an item without an id equals
    two with different ids), so that a new spelling has to be measured against what is held.
    """

    __slots__ = ("_echo_key", "_model_made", "echo", "held", "received")

    def __init__(self, held: Raw, *, received: bool, echo: Raw | None = None) -> None:
        self.held = held
        self.echo = held if echo is None else echo
        self.received = received
        self._model_made: bool | None = True if received else None
        self._echo_key: tuple[bytes, str | None] | None = None

    def _decoded(self) -> object:
        try:
            return items.parse(self.held)
        except (ValueError, RecursionError):
            return None

    @property
    def model_made(self) -> bool:
        if self._model_made is None:
            self._model_made = items.made_by_model(self._decoded())
        return self._model_made

    @property
    def echo_key(self) -> tuple[bytes, str | None]:
        if self._echo_key is None:
            self._echo_key = items.echo_key(self._decoded())
        return self._echo_key

    def difference(self, now: Raw) -> items.Path | None:
        """Where the client's item parts from the held one; None if they are the same item."""
        if now in (self.held, self.echo):
            return None
        try:
            return items.difference(
                items.parse(self.held), items.parse(now), model_made=self.model_made
            )
        except (ValueError, RecursionError):
            return ()

    def spelled(self, now: Raw) -> HeldItem:
        """The same held item, with the client's spelling of it in memory of its own."""
        if now in (self.held, self.echo):
            return self
        twin = HeldItem(self.held, received=self.received, echo=now.copy())
        twin._model_made, twin._echo_key = self._model_made, self._echo_key
        return twin


@dataclass(slots=True, eq=False)
class KeptChain:
    """A chain without a connection: the upstream keeps the response, any turn may hang on it."""

    id: str
    taken: bool = False
    """A turn goes on under this id; the next one that hangs here is a fork with its own."""


@dataclass(slots=True, eq=False)
class Anchor:
    """What an answered turn leaves: response id, fields, baseline."""

    id: str
    response_id: str
    session: str
    fields: Mapping[str, Raw]
    items: tuple[HeldItem, ...]
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
    chain: Chain | None = None
    cold: ColdCause | None = None
    reset_reason: str | None = None
    kept: KeptChain | None = None
    """With ``continuation = "store"``: the upstream said that it keeps the response."""

    def cool(self, cause: ColdCause, reset_reason: str | None = None) -> None:
        """From now on no connection is known to hold this response as its latest."""
        if self.cold is None or cause is ColdCause.EPOCH_RESET:
            self.cold, self.chain = cause, None
            self.reset_reason = reset_reason

    def matched(self, request_items: Sequence[Raw]) -> int:
        """How many of the baseline's items the request repeats, from the first on."""
        for index, (held, now) in enumerate(zip(self.items, request_items, strict=False)):
            if held.difference(now) is not None:
                return index
        return min(len(self.items), len(request_items))


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
            self.anchor.cool(ColdCause.SUPERSEDED)
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

    def next_turn(self) -> tuple[int, int]:
        """Number of the epoch, and of the turn in it, for a turn that would succeed now."""
        return (self.number, self.turns + 1) if self.pending is None else (self.number + 1, 1)

    def reset(self, reason: str) -> None:
        if self.pending in (None, EpochReason.COMPACTION):
            self.pending = reason

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

    held: tuple[HeldItem, ...]
    """The full input: proven items first, then those that are sent."""
    fields: Mapping[str, Raw]
    prefix: bytes
    """Transcript digest of the proven items."""
    new: Sequence[Raw] = field(default_factory=tuple)

    def baseline(self, outputs: Iterable[Raw], key: bytes) -> tuple[tuple[HeldItem, ...], bytes]:
        """Baseline and transcript digest once these items were answered."""
        received = tuple(HeldItem(raw, received=True) for raw in outputs)
        digest = digests.extend(key, self.prefix, (*self.new, *(item.held for item in received)))
        return (*self.held, *received), digest


def stage(
    request_items: Sequence[Raw], fields: Mapping[str, Raw], extended: Anchor | None
) -> Staged:
    """What is held after sending these items, on top of ``extended`` where the turn continues."""
    known = () if extended is None else extended.items
    proven = tuple(held.spelled(now) for held, now in zip(known, request_items, strict=False))
    new = tuple(raw.copy() for raw in request_items[len(known) :])
    return Staged(
        held=(*proven, *(HeldItem(raw, received=False) for raw in new)),
        fields=fields,
        prefix=digests.EMPTY if extended is None else extended.digest,
        new=new,
    )
