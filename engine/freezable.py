"""Which JSON keys a freeze policy would have to name for a history that parted to be the same.

A harness hangs metadata on tools' outputs: a key that begins with an underscore, or ``metadata``.
Where such keys are all that differs in all that follows, naming them in ``freeze`` is the whole
remedy, and evidence can say so. Only keys that may be shown are looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from engine import freezing, items
from engine.chain import HeldItem
from engine.freezing import Keys
from engine.model import is_metadata
from engine.places import Teller

_MOST = 4
"""Keys."""


def keys(
    before: Sequence[HeldItem], now: Sequence[Raw], teller: Teller, freeze: Keys = ()
) -> tuple[str, ...]:
    """Keys beside those of ``freeze``; empty where no such keys are all that differs.

    Both sides begin with the first item that differs.
    """
    found: tuple[str, ...] = ()
    if len(now) < len(before) or not all(item.is_whole for item in before):
        return ()
    for held, sent in zip(before, now, strict=False):
        while held.difference(sent, (*freeze, *found)) is not None:
            key = _key(held, sent, teller, (*freeze, *found))
            if key is None or key in found or len(found) == _MOST:
                return ()
            found = (*found, key)
    return found


def _key(held: HeldItem, sent: Raw, teller: Teller, freeze: Keys) -> str | None:
    """The metadata at the first place where an output differs."""
    try:
        one, other = (freezing.seen(items.parse(raw), freeze) for raw in (held.held, sent))
        where = held.difference(sent, freeze) or ()
        steps = teller.place(one, other, where).path.split("/")[2:]
    except (ValueError, RecursionError):
        return None
    return next((step for step in steps if is_metadata(step) and step in teller.shown), None)
