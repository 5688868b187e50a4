"""Items of which only a digest is kept: what of a baseline stays beyond the byte budget.

An item takes ``BYTES_PER_ITEM`` bytes: the keyed digest of the client's latest proven spelling of
it, its kind, its length, and what is known of the item that the provider holds in its place. Equal
digests are equal bytes, to anyone who has not got the key; nothing can be said of other bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from engine import items
from engine.spelling import Items

_RECORD = Struct("<16sBBI")
BYTES_PER_ITEM = _RECORD.size
_RECEIVED, _SEALED, _FROZEN = 1, 2, 4
_LONGEST = (1 << 32) - 1
_KINDS = 256
_AROUND = 300
"""Bytes of the objects around the records; ``_PER_KIND`` those of one name of a kind."""
_PER_KIND = 90


class Entry(NamedTuple):
    """One item: the client's spelling, and what it does not say of the one that is held."""

    echo: Raw
    received: bool
    sealed: bool
    """The provider holds other bytes, which were thrown away (``Condensed``)."""
    frozen: bool = False
    """It is a freeze policy that calls the two the same (DESIGN 4.5)."""


class Record(NamedTuple):
    """What is left of an item."""

    digest: bytes
    kind: str
    received: bool
    sealed: bool
    frozen: bool
    length: int
    """Bytes of the client's spelling."""

    @property
    def model_made(self) -> bool:
        return self.received or _is_made(self.kind)


class _Head(msgspec.Struct):
    type: Any = None
    role: Any = None


_head = msgspec.json.Decoder(_Head)


class Condensed:
    """The records of the first items of a baseline. Immutable.

    The rule by which they prove: an item is the same only if the client sends the very bytes whose
    digest was taken. They were proven equal to what the provider holds when that was at hand. From
    then on other spellings are differences, even those that the full baseline would have passed:
    equality under the projection is not transitive, so that nothing follows for them from the
    client's own spelling (DESIGN 4.2, 4.3). An item is ``sealed`` if what the provider holds is
    not equal to that spelling as JSON (of a received item: byte for byte); sealed it stays, once
    the bytes are at hand again, in all baselines that grow from this one.
    """

    __slots__ = ("_key", "_kinds", "_records")

    def __init__(
        self, key: bytes, kinds: tuple[str, ...] = ("unknown",), records: bytes = b""
    ) -> None:
        self._key, self._kinds, self._records = key, kinds, records

    def and_then(self, entries: Iterable[Entry]) -> Condensed:
        """These records, and behind them those of these items."""
        kinds = {name: code for code, name in enumerate(self._kinds)}
        records = bytearray(self._records)
        pack, find = _RECORD.pack, kinds.get
        for echo, received, sealed, frozen in entries:
            kind = _kind(echo)
            code = find(kind)
            if code is None:
                code = kinds.setdefault(kind, len(kinds)) if len(kinds) < _KINDS else 0
            flags = received * _RECEIVED | sealed * _SEALED | frozen * _FROZEN
            length = min(len(echo), _LONGEST)
            records += pack(self.digest(echo), code, flags, length)
        return Condensed(self._key, tuple(kinds), bytes(records))

    def __len__(self) -> int:
        return len(self._records) // BYTES_PER_ITEM

    def __getitem__(self, index: int) -> Record:
        digest, code, flags, length = _RECORD.unpack_from(self._records, index * BYTES_PER_ITEM)
        received, sealed, frozen = (bool(flags & one) for one in (_RECEIVED, _SEALED, _FROZEN))
        return Record(digest, self._kinds[code], received, sealed, frozen, length)

    @property
    def size(self) -> int:
        """Bytes of it in memory."""
        return len(self._records) + _PER_KIND * len(self._kinds) + _AROUND

    @property
    def length(self) -> int:
        """Bytes of the client's spelling of all of them."""
        return sum(length for _, _, _, length in self._unpacked())

    def first(self, count: int) -> Condensed:
        """The first items alone."""
        if count >= len(self):
            return self
        return Condensed(self._key, self._kinds, self._records[: count * BYTES_PER_ITEM])

    def digest(self, raw: Raw) -> bytes:
        """The digest that an item with these bytes has here."""
        return hashlib.blake2b(raw, key=self._key, digest_size=16, person=b"item").digest()

    def is_same(self, index: int, now: Sequence[Raw]) -> bool:
        """Whether the request has, in this place, the bytes whose digest was taken."""
        digest, _, _, length = _RECORD.unpack_from(self._records, index * BYTES_PER_ITEM)
        if min(len(now[index]), _LONGEST) != length:
            return False
        return bool(self.digest_at(index, now) == digest)

    def marks(self, now: Sequence[Raw]) -> Iterator[tuple[int, bool, bool, bool]]:
        """Once a body holds these, proven, items: which of them it does not say all of.

        Index, received, frozen, sealed. Another spelling than the one whose digest was taken was
        proven by what has been thrown away since: it is sealed.
        """
        for index, (_, _, flags, _) in enumerate(self._unpacked()):
            sealed = bool(flags & _SEALED) or not self.is_same(index, now)
            if sealed or flags & _RECEIVED:
                yield index, bool(flags & _RECEIVED), bool(flags & _FROZEN), sealed

    def repeated(self, now: Sequence[Raw], upto: int) -> int:
        """How many of the first ``upto`` items the request repeats, from the first on."""
        return next((i for i in range(upto) if not self.is_same(i, now)), upto)

    def made(self) -> list[bytes]:
        """The digests of the items that the model has made."""
        made = [_is_made(kind) for kind in self._kinds]
        return [
            digest for digest, code, flags, _ in self._unpacked() if made[code] or flags & _RECEIVED
        ]

    def frozen(self) -> list[int]:
        """Where the client's spelling is only the same by a freeze policy."""
        return [i for i, (_, _, flags, _) in enumerate(self._unpacked()) if flags & _FROZEN]

    def _unpacked(self) -> Iterable[tuple[bytes, int, int, int]]:
        return _RECORD.iter_unpack(self._records)

    def digest_at(self, index: int, now: Sequence[Raw]) -> bytes:
        """The digest of a request's item, worked out once: several baselines may begin alike."""
        if not isinstance(now, Items):
            return self.digest(now[index])
        known = now.digests.get(index)
        if known is None:
            known = now.digests[index] = self.digest(now[index])
        return known


def _is_made(kind: str) -> bool:
    head = {"role": "assistant"} if kind == "message:assistant" else {"type": kind}
    return items.made_by_model(head)


def _kind(raw: Raw) -> str:
    try:
        head = _head.decode(raw)
    except (ValueError, RecursionError):
        return items.kind(None)
    return items.kind({"type": head.type, "role": head.role})
