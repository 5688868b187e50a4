"""How much of what the provider holds a request repeats, and how much of that only as allowed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import ne

from msgspec import Raw

from engine.baseline import Baseline, digested
from engine.freezing import Keys
from engine.held import HeldItem, same_fields
from engine.items import parse
from engine.reading import Reader
from engine.spelling import Items

_AT_ONCE = 32
"""So many items in another spelling are read before the first of them is judged."""


def proven(known: Sequence[HeldItem], now: Sequence[Raw]) -> int:
    """How many of the first items are known to be the same without looking at one of them."""
    if not isinstance(known, Baseline) or not isinstance(now, Items):
        return 0
    if now.base is known:
        return len(known)
    return 0 if known.spelling is None else now.repeats(known.spelling)


def matched(
    known: Sequence[HeldItem], now: Sequence[Raw], freeze: Keys = (), read: Reader = parse
) -> int:
    """How many of the baseline's items a request repeats, from the first on."""
    length = min(len(known), len(now))
    start = proven(known, now)
    if start < length and (table := digested(known)) is not None:
        upto = min(length, len(table))
        start = table.repeated(now, upto)
        if start < upto:
            return start
    if start >= length:
        return length
    echoes = known.echoes(start) if isinstance(known, Baseline) else [i.echo for i in known]
    sent = now[start:length]
    # Most that is spelled anew has most items as they were: those are passed over in one go.
    others = [i for i, is_other in enumerate(map(ne, echoes, sent), start) if is_other]
    alike: Collection[int] = ()
    for n, i in enumerate(others):
        if n % _AT_ONCE == 0:
            alike = _alike(known, now, others[n : n + _AT_ONCE])
        if i not in alike and known[i].difference(sent[i - start], freeze, read) is not None:
            return i
    return length


def _alike(
    known: Sequence[HeldItem], now: Sequence[Raw], indices: Sequence[int]
) -> Collection[int]:
    """Which of these items surely are the same, found out with few calls."""
    if not isinstance(known, Baseline):
        return ()  # only what stands in a body that was read is sure to be UTF-8
    pairs = [(i, raw, now[i]) for i, raw in known.as_spelled(indices)]
    if not pairs:
        return ()
    places, held, sent = zip(*pairs, strict=True)
    return {i for i, is_same in zip(places, same_fields(held, sent), strict=True) if is_same}


def frozen(known: Sequence[HeldItem], now: Sequence[Raw]) -> int:
    """How many of the ``known`` items, all proven, the request spells as only a policy allows."""
    if not isinstance(known, Baseline):
        return sum(item.freezes(raw) for item, raw in zip(known, now, strict=False))
    start, before = proven(known, now), _frozen_at(known.newest())
    if (table := digested(known)) is not None:
        start = max(start, len(table))  # other bytes would not have been proven
    count = sum(index < start for index in before)
    spelled = zip(known.echoes(start), now[start : len(known)], strict=True)
    for index, (echo, raw) in enumerate(spelled, start):
        count += index in before if raw == echo else known[index].freezes(raw)
    return count


def _frozen_at(newest: Baseline) -> set[int]:
    more = enumerate(newest.more, len(newest) - len(newest.more))
    return {
        *(index for index, odd in newest.odd if odd.frozen),
        *(index for index, item in more if item.frozen),
        *(newest.condensed.frozen() if newest.condensed is not None else ()),
    }
