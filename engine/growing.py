"""What the provider holds once a request that repeats all of it was answered."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter

from msgspec import Raw

from engine.baseline import Baseline, digested
from engine.held import HeldItem, Odd
from engine.matching import proven
from engine.spelling import Items


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
    if isinstance(known, Baseline) and isinstance(now, Items) and now.base is known:
        # The client named this baseline instead of repeating it.
        last, table = known.newest(), known.newest().condensed
        if last is known:
            more = (*known.more, *new, *received)
            return Baseline(known.spelling, known.odd, more, condensed=table)
        if table is not None:
            first = table.first(len(known))
            more = (*last.more[: len(known) - len(first)], *new, *received)
            return Baseline(None, (), more, condensed=first)
    proven = (held.spelled(item) for held, item in zip(known, now, strict=False))
    return Baseline(None, (), (*proven, *new, *received))


def _oddities(known: Sequence[HeldItem], now: Sequence[Raw]) -> tuple[tuple[int, Odd], ...]:
    first = proven(known, now)
    odd = known.odd if isinstance(known, Baseline) else ()
    # Those of the items that were looked at are worked out anew.
    odd = odd[: bisect_left(odd, first, key=itemgetter(0))]
    if (table := digested(known)) is not None:
        odd = tuple((index, Odd(None, *marks)) for index, *marks in table.marks(now))
        first = len(table)
    pairs = zip(known[first:], now[first:], strict=False)
    more = ((index, held.odd(item)) for index, (held, item) in enumerate(pairs, first))
    return (*odd, *((index, entry) for index, entry in more if entry is not None))
