"""What the provider holds after a turn, kept as the client's bytes and what differs from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import ne
from typing import NamedTuple, overload
from weakref import ReferenceType, ref

from msgspec import Raw

from engine import items
from engine.spelling import Items, Spelling
from engine.splitting import Fields, names_a_key_twice, object_of

_TEXT = Raw(b'""')


class HeldItem:
    """One item that the provider holds, and the client's latest proven spelling of it.

    Both are kept: equality under the projection is not transitive (an item without an id equals
    two with different ids), so that a new spelling has to be measured against what is held.
    """

    __slots__ = ("_echo_key", "_expected", "_model_made", "echo", "held", "received")

    def __init__(self, held: Raw, *, received: bool, echo: Raw | None = None) -> None:
        self.held = held
        self.echo = held if echo is None else echo
        self.received = received
        self._model_made: bool | None = True if received else None
        self._echo_key: tuple[bytes, str | None] | None = None
        self._expected: tuple[Fields, ...] = ()

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
        if now in (self.held, self.echo) or (self._expected and self._is_expected(now)):
            return None
        try:
            return items.difference(
                items.parse(self.held), items.parse(now), model_made=self.model_made
            )
        except (ValueError, RecursionError):
            return ()

    def expect(self) -> None:
        """Work out the usual echoes beforehand: the fields as they are, with or without the id.

        Clients keep the bytes of most values. Equal bytes are equal values where those of the item
        name no key twice; and what would not equal even itself is left to ``difference``.
        """
        try:
            value, fields = items.parse(self.held), object_of.decode(self.held)
            bare = {key: part for key, part in value.items() if key != "id"}
            same = [items.difference(value, one, model_made=True) is None for one in (value, bare)]
        except (ValueError, RecursionError):
            return
        fields.pop("status", None)
        without_id = {name: raw for name, raw in fields.items() if name != "id"}
        self._expected = tuple(
            one for one, is_same in zip((fields, without_id), same, strict=True) if is_same
        )

    def _is_expected(self, now: Raw) -> bool:
        text = bytes(now)
        try:
            fields = object_of.decode(text)
            if names_a_key_twice(text, fields):
                return False
        except (ValueError, RecursionError):
            return False
        status = fields.pop("status", _TEXT)
        return bytes(memoryview(status)[:1]) == b'"' and fields in self._expected

    def spelled(self, now: Raw) -> HeldItem:
        """The same held item, with the client's spelling of it, in memory of its own.

        A slice keeps the whole body alive that it was cut from.
        """
        held = self.held.copy()
        if now not in (self.held, self.echo):
            echo = now.copy()
        else:
            echo = held if self.echo is self.held else self.echo.copy()
        if held is self.held and echo is self.echo:
            return self
        twin = HeldItem(held, received=self.received, echo=echo)
        twin._model_made, twin._echo_key = self._model_made, self._echo_key
        return twin

    def odd(self, now: Raw) -> Odd | None:
        """What has to be kept of it beside this proven spelling; None where that says it all."""
        if now == self.held:
            return Odd(None, received=True) if self.received else None
        if not self.received:
            try:
                if items.same_json(items.parse(self.held), items.parse(now)):
                    return None  # whatever equals the one equals the other
            except (ValueError, RecursionError):
                pass
        return Odd(self.held.copy(), self.received)

    @property
    def size(self) -> int:
        """Bytes of it in memory, without the objects around them."""
        echo = 0 if self.echo is self.held else len(memoryview(self.echo))
        return len(memoryview(self.held)) + echo


class Odd(NamedTuple):
    """What an item in a body does not say of the one that the provider holds in its place."""

    held: Raw | None
    """The bytes that the provider holds, where they differ."""
    received: bool


_AS_SPELLED = Odd(None, received=False)


class Baseline(Sequence[HeldItem]):
    """All items that the provider holds: those of one body, then those that came after it.

    Immutable, but for ``give_way``. The items of the body are made only if asked for.
    """

    __slots__ = (
        "__weakref__", "_count", "_former", "_made", "_odd_at", "_successor", "more", "odd",
        "spelling",
    )  # fmt: skip

    def __init__(
        self,
        spelling: Spelling | None,
        odd: tuple[tuple[int, Odd], ...],
        more: tuple[HeldItem, ...],
    ) -> None:
        self.spelling, self.odd, self.more = spelling, odd, more
        self._count = (0 if spelling is None else spelling.count) + len(more)
        self._made: dict[int, HeldItem] = {}
        self._odd_at: dict[int, Odd] | None = None
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
        made = self._made.get(index)
        if made is None:
            assert self.spelling is not None
            echo = self.spelling.items()[index]
            if self._odd_at is None:
                self._odd_at = dict(self.odd)
            held, received = self._odd_at.get(index, _AS_SPELLED)
            made = HeldItem(echo if held is None else held, received=received, echo=echo)
            self._made[index] = made
        return made

    def echoes(self, start: int = 0) -> list[Raw]:
        """The client's spelling of each item from ``start`` on."""
        if self._successor is not None:
            return self.newest().echoes(start)[: self._count - start]
        ahead = self._count - len(self.more)
        echoes = [item.echo for item in self.more[max(0, start - ahead) :]]
        if self.spelling is not None and start < ahead:
            return [*self.spelling.items()[start:], *echoes]
        return echoes

    @property
    def is_superseded(self) -> bool:
        return self._successor is not None

    @property
    def size(self) -> int:
        """Bytes of it in memory, without the objects around them."""
        total = sum(item.size for item in self.more)
        total += sum(len(memoryview(odd.held)) for _, odd in self.odd if odd.held is not None)
        if self.spelling is not None:
            total += len(self.spelling.body)
            around = (*self.spelling.head.values(), *self.spelling.tail.values())
            total += sum(len(memoryview(raw)) for raw in around)
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
        self._successor, self.spelling, self.odd, self.more = successor, None, (), ()
        self._made, self._odd_at = {}, None


def grown(known: Sequence[HeldItem], now: Sequence[Raw], outputs: Iterable[Raw]) -> Baseline:
    """What is held once a request that repeats all ``known`` items was answered with these."""
    received = tuple(HeldItem(raw.copy(), received=True) for raw in outputs)
    for item in received:
        item.expect()
    made = _grown(known, now, received)
    if isinstance(known, Baseline):
        made.grew_from(known)
    return made


def _grown(
    known: Sequence[HeldItem], now: Sequence[Raw], received: tuple[HeldItem, ...]
) -> Baseline:
    spelling = now.spelling if isinstance(now, Items) else None
    if spelling is not None:
        return Baseline(spelling, _oddities(known, now), received)
    new = tuple(HeldItem(raw.copy(), received=False) for raw in now[len(known) :])
    if _names(now, known):
        assert isinstance(known, Baseline)
        return Baseline(known.spelling, known.odd, (*known.more, *new, *received))
    proven = (held.spelled(item) for held, item in zip(known, now, strict=False))
    return Baseline(None, (), (*proven, *new, *received))


def _names(now: Sequence[Raw], known: Sequence[HeldItem]) -> bool:
    """Whether the client named this baseline instead of repeating it, and it is still the last."""
    return (
        isinstance(now, Items)
        and now.base is known
        and isinstance(known, Baseline)
        and not known.is_superseded
    )


def _oddities(known: Sequence[HeldItem], now: Sequence[Raw]) -> tuple[tuple[int, Odd], ...]:
    first = proven(known, now)
    # Those of the items that were looked at are worked out anew.
    odd = known.odd if isinstance(known, Baseline) else ()
    if first < (odd[-1][0] + 1 if odd else 0):
        odd = tuple(entry for entry in odd if entry[0] < first)
    pairs = zip(known[first:], now[first:], strict=False)
    more = ((index, held.odd(item)) for index, (held, item) in enumerate(pairs, first))
    return (*odd, *((index, entry) for index, entry in more if entry is not None))


def proven(known: Sequence[HeldItem], now: Sequence[Raw]) -> int:
    """How many of the first items are known to be the same without looking at one of them."""
    if not isinstance(known, Baseline) or not isinstance(now, Items):
        return 0
    if now.base is known:
        return len(known)
    return 0 if known.spelling is None else now.repeats(known.spelling)


def matched(known: Sequence[HeldItem], now: Sequence[Raw]) -> int:
    """How many of the baseline's items a request repeats, from the first on."""
    length = min(len(known), len(now))
    start = proven(known, now)
    if start >= length:
        return length
    echoes = known.echoes(start) if isinstance(known, Baseline) else [i.echo for i in known]
    sent = now[start:length]
    # Most that is spelled anew has most items as they were: those are passed over in one go.
    for index, is_other in enumerate(map(ne, echoes, sent)):
        if is_other and known[start + index].difference(sent[index]) is not None:
            return start + index
    return length
