"""The client's own bytes of a transcript, and the items of a request without reading them all.

An anchor keeps the body of the request that it answered. A later body that begins with the same
bytes, up to the end of the last input item, leaves a reader of JSON in the same state: inside the
top-level list, behind a complete item. So those items are the same, and only the rest has to be
read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import add
from typing import NamedTuple, Protocol, overload

import msgspec
from msgspec import Raw

from engine.errors import NotKept
from engine.repeated import skip

_array = msgspec.json.Decoder(list[Raw])
_BLOCK = 1 << 16
_AT_ONCE = 64
"""So many items are put together to be compared with those of a body with other gaps."""
_PER_CUT, _PER_SLICE, _PER_END = 56, 240, 40
"""Bytes of the objects around one item, as CPython 3.11 and the decoder lay them out."""
_LONG = 512
"""Bytes of an item from which on a slice costs less time than reading it."""
_ENDS_A_TOKEN = frozenset((b",", b"]", b" ", b"\t", b"\n", b"\r"))


@dataclass(slots=True, eq=False)
class Spelling:
    """A body that was read, and where its list of items stands in it. Offsets are in bytes."""

    body: bytes
    start: int
    """Behind the bracket that opens the list."""
    end: int
    """Behind the last item; ``start`` where there is none."""
    close: int
    """Behind the bracket that closes the list."""
    lengths: array[int]
    """Bytes of each item."""
    head: Mapping[str, Raw]
    """The fields before ``input``, in memory of their own; so are those in ``tail``."""
    tail: Mapping[str, Raw]
    """The fields after it."""
    _cut: list[Raw] | None = field(default=None, init=False, repr=False)
    _ends: list[int] | None = field(default=None, init=False, repr=False)

    @property
    def count(self) -> int:
        """How many items it has."""
        return len(self.lengths)

    def begins(self, body: bytes) -> bool:
        """Whether a body has the same bytes up to the end of the last item."""
        return body.startswith(memoryview(self.body)[: self.end])

    def stands_at(self, body: bytes, start: int) -> bool:
        """Whether the same items stand in a list of ``body`` that opens before ``start``."""
        if not body.startswith(memoryview(self.body)[self.start : self.end], start):
            return False
        after = start + self.end - self.start
        # A number goes on where its bytes do: 1 is not the first item of [12].
        return not self.lengths or body[after : after + 1] in _ENDS_A_TOKEN

    def glance(self, most: int) -> bytes:
        """The first bytes of the first item; none where there is no item."""
        if not self.lengths:
            return b""
        at = skip(self.body, self.start)
        return self.body[at : at + min(most, self.lengths[0])]

    def end_at(self, body: bytes, at: int, gap: bytes) -> int | None:
        """Where the same items end that begin at ``at``, with this gap (with one comma) between.

        None where one is not there, or where it is not known where they stand here.
        """
        ends, view = self.ends(), memoryview(self.body)
        for n in range(0, len(ends), _AT_ONCE):
            pairs = zip(ends[n : n + _AT_ONCE], self.lengths[n : n + _AT_ONCE], strict=True)
            items = [view[end - length : end] for end, length in pairs]
            text = gap.join([b"", *items] if n else items)
            if not body.startswith(text, at):
                return None
            at += len(text)
        return at if ends and body[at : at + 1] in _ENDS_A_TOKEN else None

    @property
    def is_cut(self) -> bool:
        """Whether the slices are kept, which take memory of their own."""
        return self._cut is not None

    @property
    def weight_of_cut(self) -> int:
        """Bytes in memory of what is known of where the items stand, and of their slices."""
        each = self.lengths.itemsize + (_PER_END if self._ends else 0)
        if self._cut is not None:
            each += _PER_SLICE if self._is_long and self._ends else _PER_CUT
        return each * self.count

    @property
    def _is_long(self) -> bool:
        """Whether the items are so long that they are cut out by their lengths, unread."""
        return self.end - self.start >= _LONG * self.count

    def items(self) -> list[Raw]:
        """All items, as slices of the body, cut out once."""
        if self._cut is None:
            view, ends = memoryview(self.body), self.ends() if self._is_long else ()
            if ends:
                pairs = zip(ends, self.lengths, strict=True)
                self._cut = [Raw(view[end - length : end]) for end, length in pairs]
            else:
                self._cut = _array.decode(view[self.start - 1 : self.close])
        return self._cut

    def shared(self, body: bytes) -> tuple[int, int]:
        """How many items a body with the same beginning has in common, and where the last ends.

        Where the list opens if there is none of them; 0 if it does not open there.
        """
        if not body.startswith(memoryview(self.body)[: self.start]):
            return 0, 0
        same = _same_bytes(self.body, body, self.end)
        ends = self.ends()
        # The byte behind an item has to be the same, too: a number may go on.
        count = bisect_left(ends, same)
        return count, ends[count - 1] if count else self.start

    def ends(self) -> list[int]:
        """Where each item ends, if all are parted by a comma, or by a comma and a space.

        Else nothing. It follows from what all items and gaps take: a gap has one comma. Of two
        bytes it may be another one; but then what stands behind an item is not this one.
        """
        if self._ends is None:
            self._ends = self._ends_if_alike()
        return self._ends

    def _ends_if_alike(self) -> list[int]:
        if not self.lengths:
            return []
        sums = list(accumulate(self.lengths))
        gaps, between = self.count - 1, self.end - self.start - sums[-1]
        if between not in (gaps, 2 * gaps):
            return []
        gap = b"," if between == gaps else b", "
        ends = list(map(add, sums, range(self.start, self.end + 1, len(gap))))
        is_sure = between == gaps or all(self.body.startswith(gap, end) for end in ends[:-1])
        return ends if is_sure else []


def _same_bytes(one: bytes, other: bytes, most: int) -> int:
    """How many bytes from the start are the same, up to ``most``."""
    view, same, step = memoryview(one), 0, _BLOCK
    most = min(most, len(one), len(other))
    while same < most:
        upto = min(same + step, most)
        if other.startswith(view[same:upto], same):
            same = upto
        elif step == 1:
            break
        else:
            step = max(1, (upto - same) // 2)
    return same


class Known(NamedTuple):
    """What an anchor holds of its request: the body, and the compared fields."""

    spelling: Spelling
    fields: Mapping[str, Raw]


class Told(Protocol):
    """What a client named instead of repeating it."""

    def __len__(self) -> int: ...

    @property
    def length(self) -> int:
        """Bytes of the client's spelling of all items."""
        ...

    def told(self) -> Callable[[], Sequence[Raw]] | None:
        """What gives the client's spelling of each item, whatever is thrown away meanwhile.

        None where only digests are kept already.
        """
        ...


class Items(Sequence[Raw]):
    """The items of a request. Those that are proven already are cut out only if asked for.

    ``spelling`` is where all of them stand in the request's body, None where they do not stand in
    one list of it. ``proven`` is the older body that begins with all but the ``rest``; ``base`` is
    the baseline that the client named instead of repeating it. ``digests`` of items, by their
    index, are kept by whoever works them out. Where ``is_told`` is false, only digests are kept of
    what the client named: to ask for one of these items raises ``NotKept``.
    """

    __slots__ = (
        "_ahead", "_told", "_whole", "base", "digests", "is_told", "proven", "rest", "spelling",
    )  # fmt: skip

    def __init__(
        self,
        rest: tuple[Raw, ...],
        *,
        spelling: Spelling | None = None,
        proven: Spelling | None = None,
        ahead: int = 0,
        base: Told | None = None,
    ) -> None:
        self.rest, self.spelling, self.proven, self.base = rest, spelling, proven, base
        self._whole: tuple[Raw, ...] | None = None
        self._ahead = ahead if base is None else len(base)
        # A baseline may be condensed while the request is under way.
        self._told = None if base is None else base.told()
        self.is_told = base is None or self._told is not None
        self.digests: dict[int, bytes] = {}

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
        if not self.is_told:
            raise NotKept("only digests are kept of what the client named")
        if self._whole is None:
            if self.proven is not None and self._ahead and self.proven.is_cut:
                self._whole = (*self.proven.items()[: self._ahead], *self.rest)
            elif self.proven is not None and self._ahead:
                assert self.spelling is not None
                self._whole = tuple(self.spelling.items())
            elif self._told is not None:
                self._whole = (*self._told(), *self.rest)
            else:
                self._whole = self.rest
        return self._whole

    def __iter__(self) -> Iterator[Raw]:
        return iter(self.whole())

    def repeats(self, spelling: Spelling) -> int:
        """How many of the first items are byte for byte those of ``spelling``, as far as known."""
        if spelling is self.proven:
            return self._ahead
        own = self.spelling
        if own is None or not spelling.stands_at(own.body, own.start):
            return 0
        return spelling.count
