"""The client's own bytes of a transcript, and the items of a request without reading them all.

An anchor keeps the body of the request that it answered. A later body that begins with the same
bytes, up to the end of the last input item, leaves a reader of JSON in the same state: inside the
top-level list, behind a complete item. So those items are the same, and only the rest has to be
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, overload

import msgspec
from msgspec import Raw

_array = msgspec.json.Decoder(list[Raw])
_ENDS_A_TOKEN = frozenset((b",", b"]", b" ", b"\t", b"\n", b"\r"))


@dataclass(frozen=True, slots=True, eq=False)
class Spelling:
    """A body that was read, and where its list of items stands in it. Offsets are in bytes."""

    body: bytes
    start: int
    """Behind the bracket that opens the list."""
    end: int
    """Behind the last item; ``start`` where there is none."""
    close: int
    """Behind the bracket that closes the list."""
    count: int
    head: Mapping[str, Raw]
    """The fields before ``input``, in memory of their own; so are those in ``tail``."""
    tail: Mapping[str, Raw]
    """The fields after it."""

    def begins(self, body: bytes) -> bool:
        """Whether a body has the same bytes up to the end of the last item."""
        return body.startswith(memoryview(self.body)[: self.end])

    def stands_at(self, body: bytes, start: int) -> bool:
        """Whether the same items stand in a list of ``body`` that opens before ``start``."""
        if not body.startswith(memoryview(self.body)[self.start : self.end], start):
            return False
        after = start + self.end - self.start
        # A number goes on where its bytes do: 1 is not the first item of [12].
        return not self.count or body[after : after + 1] in _ENDS_A_TOKEN

    def items(self) -> list[Raw]:
        """All items, as slices of the body."""
        return _array.decode(memoryview(self.body)[self.start - 1 : self.close])


class Known(NamedTuple):
    """What an anchor holds of its request: the body, and the compared fields."""

    spelling: Spelling
    fields: Mapping[str, Raw]


class Echoed(Protocol):
    """An item that the provider holds, with the client's spelling of it."""

    @property
    def echo(self) -> Raw: ...


class Items(Sequence[Raw]):
    """The items of a request. Those that are proven already are cut out only if asked for.

    ``spelling`` is where all of them stand in the request's body, None where they do not stand in
    one list of it. ``proven`` is the older body that holds all but the ``rest``; ``base`` is the
    baseline that the client named instead of repeating it.
    """

    __slots__ = ("_ahead", "_whole", "base", "proven", "rest", "spelling")

    def __init__(
        self,
        rest: tuple[Raw, ...],
        *,
        spelling: Spelling | None = None,
        proven: Spelling | None = None,
        base: Sequence[Echoed] | None = None,
    ) -> None:
        self.rest, self.spelling, self.proven, self.base = rest, spelling, proven, base
        self._whole: tuple[Raw, ...] | None = None
        self._ahead = 0
        if proven is not None:
            self._ahead = proven.count
        elif base is not None:
            self._ahead = len(base)

    def __len__(self) -> int:
        return self._ahead + len(self.rest)

    @overload
    def __getitem__(self, index: int) -> Raw: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Raw, ...]: ...
    def __getitem__(self, index: int | slice) -> Raw | tuple[Raw, ...]:
        ahead = self._ahead
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1 and start >= ahead:
                return self.rest[start - ahead : max(0, stop - ahead)]
        else:
            at = index + len(self) if index < 0 else index
            if at >= ahead:
                return self.rest[at - ahead]
        return self.whole()[index]

    def whole(self) -> tuple[Raw, ...]:
        """All items, read once."""
        if self._whole is None:
            if self.proven is not None:
                assert self.spelling is not None
                self._whole = tuple(self.spelling.items())
            elif self.base is not None:
                self._whole = (*(item.echo for item in self.base), *self.rest)
            else:
                self._whole = self.rest
        return self._whole

    def __iter__(self) -> Iterator[Raw]:
        return iter(self.whole())

    def repeats(self, spelling: Spelling) -> int:
        """How many of the first items are byte for byte those of ``spelling``: all of its, or 0."""
        if spelling is self.proven:
            return spelling.count
        own = self.spelling
        if own is None or not spelling.stands_at(own.body, own.start):
            return 0
        return spelling.count
