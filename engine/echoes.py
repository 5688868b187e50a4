"""Which anchor a request was meant to extend: the one of which it echoes the most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from msgspec import Raw

from engine import items
from engine.baseline import Baseline, digested
from engine.chain import Anchor
from engine.condensed import Condensed
from engine.held import HeldItem


def most_echoed(anchors: Iterable[Anchor], request_items: Sequence[Raw]) -> Anchor | None:
    """The anchor of which the request echoes the most model-made items; ties: the most recent.

    None where it echoes no item of any. Anchors come in the order in which they were committed.
    """
    given = list(anchors)
    # What was extended begins the baseline after it: no more of it can be echoed than of that one.
    baselines = {id(anchor.items) for anchor in given}
    last = [anchor for anchor in given if not _is_part_of_another(anchor, baselines)]
    if not last:
        return None
    if len(last) == 1 and _surely_echoed(last[0], request_items):
        return last[0]
    return _counted(last, request_items)


def _is_part_of_another(anchor: Anchor, baselines: set[int]) -> bool:
    held = anchor.items
    return isinstance(held, Baseline) and held.is_superseded and id(held.newest()) in baselines


_LOOKED_AT = 64
_LONG = 2048
_AT_AN_END = 128
"""Items of a transcript that is longer than ``_LONG``."""
_T = TypeVar("_T")


def _surely_echoed(anchor: Anchor, request_items: Sequence[Raw]) -> bool:
    """Whether the request repeats, byte for byte, one of the items that the model has made.

    Only items in the same place are compared, and few of them are read.
    """
    held = anchor.items
    if not isinstance(held, Baseline) or held.spelling is None:
        return False
    pairs = enumerate(zip(held.echoes(), request_items, strict=False))
    same = (index for index, (echo, now) in pairs if echo == now)
    return any(
        held[index].model_made and _is_sent_as_made(held[index].echo)
        for index in islice(same, _LOOKED_AT)
    )


def _counted(anchors: Iterable[Anchor], request_items: Sequence[Raw]) -> Anchor | None:
    sent: dict[bytes, list[str | None]] = {}
    for value in _model_made(_ends(request_items)):
        digest, id_ = items.echo_key(value)
        sent.setdefault(digest, []).append(id_)
    if not sent:
        return None
    best, most = None, 1
    for anchor in anchors:
        table = digested(anchor.items)
        if table is None:
            count = _echoes(_ends(anchor.items), sent)
        else:
            more = _ends(anchor.items[len(table) :])
            count = _repeated(table, request_items) + _echoes(more, sent)
        if count >= most:
            best, most = anchor, count
    return best


def _ends(values: Sequence[_T]) -> Sequence[_T]:
    """Of a very long transcript its two ends, which tell branches apart: reading all takes long."""
    if len(values) <= _LONG:
        return values
    return [*values[:_AT_AN_END], *values[len(values) - _AT_AN_END :]]


def _echoes(held: Iterable[HeldItem], sent: Mapping[bytes, Sequence[str | None]]) -> int:
    """How many of these items the request repeats; models say the same words more than once."""
    found: dict[bytes, list[str | None]] = {}
    for item in held:
        if item.model_made:
            digest, id_ = item.echo_key
            if digest in sent:
                found.setdefault(digest, []).append(id_)
    return sum(_pairs(ids, sent[digest]) for digest, ids in found.items())


def _repeated(table: Condensed, request_items: Sequence[Raw]) -> int:
    """How many items of which only digests are kept the request repeats, byte for byte."""
    sent = Counter(table.digest_at(i, request_items) for i in range(len(request_items)))
    return (Counter(table.made()) & sent).total()


def _pairs(held: Sequence[str | None], sent: Sequence[str | None]) -> int:
    """How many of these ids pair off with those: each with its like, or with none at all."""
    left = list(sent)
    unmatched = []
    for id_ in held:
        if id_ is not None and id_ in left:
            left.remove(id_)
        else:
            unmatched.append(id_)
    without = left.count(None)
    named = min(len(unmatched) - unmatched.count(None), without)
    bare = min(unmatched.count(None), len(left) - named)
    return len(held) - len(unmatched) + named + bare


def _model_made(request_items: Sequence[Raw]) -> Iterable[object]:
    for raw in request_items:
        value = _decoded(raw)
        if _is_made(value):
            yield value


def _is_sent_as_made(raw: Raw) -> bool:
    """Whether an item of a request looks like one that a model has made."""
    return _is_made(_decoded(raw))


def _decoded(raw: Raw) -> object:
    try:
        return items.parse(raw)
    except (ValueError, RecursionError):
        return None


def _is_made(value: object) -> bool:
    """Output items of kinds that only the provider makes look like history of unknown kind."""
    if not isinstance(value, dict):
        return False
    return items.made_by_model(value) or value.get("type") not in (None, "message")
