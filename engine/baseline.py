"""What the provider holds after a turn, kept as the client's bytes and what differs from them.

Beyond the byte budget a baseline is condensed: of the items that the client has spelled only
digests stay (``engine.condensed``, where the rule stands by which those prove).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload
from weakref import ReferenceType, ref

from msgspec import Raw

from engine.condensed import Condensed, Entry
from engine.errors import NotKept
from engine.held import AS_SPELLED, Digested, HeldItem, Odd
from engine.spelling import Spelling


class Baseline(Sequence[HeldItem]):
    """All items that the provider holds: those of one body, then those that came after it.

    ``condensed`` stands in the place of the body where only digests are kept. Immutable, but for
    ``give_way`` and ``condense``. The items of the body are made only if asked for.
    """

    __slots__ = (
        "__weakref__", "_count", "_former", "_made", "_odd_at", "_successor", "_weight",
        "condensed", "more", "odd", "spelling",
    )  # fmt: skip

    def __init__(
        self,
        spelling: Spelling | None,
        odd: tuple[tuple[int, Odd], ...],
        more: tuple[HeldItem, ...],
        *,
        condensed: Condensed | None = None,
    ) -> None:
        self.spelling, self.odd, self.more, self.condensed = spelling, odd, more, condensed
        ahead = len(condensed or ()) if spelling is None else spelling.count
        self._count = ahead + len(more)
        self._made: dict[int, HeldItem] = {}
        self._odd_at: dict[int, Odd] | None = None
        self._weight: int | None = None
        self._successor: Baseline | None = None
        self._former: ReferenceType[Baseline] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> HeldItem: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[HeldItem, ...]: ...
    def __getitem__(self, index: int | slice) -> HeldItem | tuple[HeldItem, ...]:
        if isinstance(index, slice):
            return tuple(map(self._item, range(*index.indices(self._count))))
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(index)
        return self._item(at)

    def __iter__(self) -> Iterator[HeldItem]:
        return map(self._item, range(self._count))

    def _item(self, index: int) -> HeldItem:
        """The item, made at first sight, so that what it knows of itself is worked out once."""
        if self._successor is not None:
            return self.newest()[index]
        at = index - (self._count - len(self.more))
        if at >= 0:
            return self.more[at]
        if self.condensed is not None:
            return Digested(self.condensed, index)
        made = self._made.get(index)
        if made is None:
            assert self.spelling is not None
            echo = self.spelling.items()[index]
            if self._odd_at is None:
                self._odd_at = dict(self.odd)
            held, received, frozen, sealed = self._odd_at.get(index, AS_SPELLED)
            made = HeldItem(
                echo if held is None else held,
                received=received,
                echo=echo,
                frozen=frozen,
                sealed=sealed,
            )
            self._made[index] = made
        return made

    def as_spelled(self, indices: Sequence[int]) -> list[tuple[int, Raw]]:
        """Those of these items (ascending) that stand in the body as the provider holds them."""
        if self.spelling is None or indices[0] >= self.spelling.count:
            return []
        if self._odd_at is None:
            self._odd_at = dict(self.odd)
        raws, odd = self.spelling.items(), self._odd_at
        return [(i, raws[i]) for i in indices if i < len(raws) and i not in odd]

    def echoes(self, start: int = 0) -> list[Raw]:
        """The client's spelling of each item from ``start`` on."""
        if start >= self._count:
            return []
        if self._successor is not None:
            return self.newest().echoes(start)[: self._count - start]
        ahead = self._count - len(self.more)
        if self.condensed is not None and start < ahead:
            raise NotKept("only digests are kept of these items")
        echoes = [item.echo for item in self.more[max(0, start - ahead) :]]
        if self.spelling is not None and start < ahead:
            return [*self.spelling.items()[start:], *echoes]
        return echoes

    @property
    def is_superseded(self) -> bool:
        return self._successor is not None

    def told(self) -> Callable[[], Sequence[Raw]] | None:
        """What gives the client's spelling of each item, whatever becomes of this baseline.

        None where only digests are kept of it.
        """
        newest, count = self.newest(), self._count
        spelling, more = newest.spelling, newest.more
        if digested(self) is not None:
            return None

        def echoes() -> list[Raw]:
            ahead = [] if spelling is None else spelling.items()
            return [*ahead, *(item.echo for item in more)][:count]

        return echoes

    @property
    def length(self) -> int:
        """Bytes of the client's spelling of all items, without what stands between them."""
        table = digested(self)
        ahead = 0 if table is None else table.length
        return ahead + sum(len(raw) for raw in self.echoes(len(table or ())))

    @property
    def size(self) -> int:
        """Bytes of it in memory, with the objects around them, and with what was worked out."""
        if self._successor is not None:
            return 0
        if self._weight is None:
            self._weight = self._weighed()
        total = self._weight + _PER_MADE * len(self._made)
        if self.spelling is not None:
            total += self.spelling.weight_of_cut
        return total

    def _weighed(self) -> int:
        total = _AROUND + sum(_weight_of(item) for item in self.more)
        total += sum(
            _PER_ODD + (0 if odd.held is None else _PER_RAW + len(odd.held)) for _, odd in self.odd
        )
        if self.condensed is not None:
            total += self.condensed.size
        if self.spelling is not None:
            total += len(self.spelling.body)
            total += weight_of_fields(self.spelling.head) + weight_of_fields(self.spelling.tail)
        return total

    def newest(self) -> Baseline:
        """The baseline that holds these items now."""
        last = self
        while last._successor is not None:
            last = last._successor
        if last is not self:
            self._successor = last
        return last

    def grew_from(self, former: Baseline) -> None:
        """This one begins with the items of ``former``."""
        self._former = ref(former)

    def begins_with(self, former: Baseline) -> bool:
        return self._former is not None and self._former() is former

    def give_way(self, successor: Baseline) -> None:
        """From now on the items are looked up in the baseline that grew from this one."""
        if not successor.begins_with(self):
            return
        self._successor = successor
        self._forget(())

    def condense(self, key: bytes) -> bool:
        """Keep digests of the items alone; False where there is nothing to gain.

        The items of the last answer stay as they are: the client has not spelled them yet.
        """
        last = len(self.more)
        while last and self.more[last - 1].received:
            last -= 1
        if self._successor is not None or (self.spelling is None and not last):
            return False
        condensed = (self.condensed or Condensed(key)).and_then(self._entries(last))
        self._forget(self.more[last:])
        self.condensed = condensed
        return True

    def _entries(self, last: int) -> Iterator[Entry]:
        if self.spelling is not None:
            odd_at = dict(self.odd)
            for index, echo in enumerate(self.spelling.items()):
                held, received, frozen, sealed = odd_at.get(index, AS_SPELLED)
                yield Entry(echo, received, sealed or held is not None, frozen)
        for item in self.more[:last]:
            odd = item.odd(item.echo) or AS_SPELLED
            sealed = odd.sealed or odd.held is not None
            yield Entry(item.echo, item.received, sealed, item.frozen)

    def _forget(self, more: tuple[HeldItem, ...]) -> None:
        self.spelling, self.condensed, self.odd, self.more = None, None, (), more
        self._made, self._odd_at, self._weight = {}, None, None


class Behind(Sequence[HeldItem]):
    """The items of a sequence from one on, of which a baseline makes those that are looked at."""

    __slots__ = ("_all", "_start")

    def __init__(self, held: Sequence[HeldItem], start: int) -> None:
        self._all, self._start = held, start

    def __len__(self) -> int:
        return len(self._all) - self._start

    @overload
    def __getitem__(self, index: int) -> HeldItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HeldItem]: ...
    def __getitem__(self, index: int | slice) -> HeldItem | Sequence[HeldItem]:
        if isinstance(index, slice):
            places = range(self._start, len(self._all))[index]
            return tuple(self._all[place] for place in places)
        return self._all[range(self._start, len(self._all))[index]]

    def echoes(self) -> list[Raw] | None:
        """The client's spelling of each; None where only a digest is kept of one."""
        if isinstance(self._all, Baseline):
            table = digested(self._all)
            return self._all.echoes(self._start) if len(table or ()) <= self._start else None
        held = self._all[self._start :]
        return [item.echo for item in held] if all(item.is_whole for item in held) else None


# Bytes of the objects around the bytes of one thing, as CPython 3.11 lays them out.
_AROUND = 600
_PER_RAW = 81
_PER_MADE = 330
_PER_ODD = 170
_PER_HELD = 200
_PER_FIELD = 240


def _weight_of(item: HeldItem) -> int:
    """Bytes in memory of an item that is kept by itself, with its expected echoes."""
    return _PER_HELD + item.size + item.weight_of_expected


def weight_of_fields(fields: Mapping[str, Raw]) -> int:
    """Bytes in memory of fields that were copied out of a body."""
    return sum(_PER_FIELD + len(name) + len(raw) for name, raw in fields.items())


def digested(known: Sequence[HeldItem]) -> Condensed | None:
    """The first of these items, where only their digests are kept."""
    if not isinstance(known, Baseline):
        return None
    table = known.newest().condensed
    return None if table is None else table.first(len(known)) or None
