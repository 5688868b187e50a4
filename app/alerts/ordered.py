"""Adding to and taking from an ascending list of many samples. Pure.

One at a time, each moves all that stand behind it: a week of samples that enters at once would
take minutes. So many are added and taken in one pass over the list.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

FEW = 16
PART = 1_000
"""Up to ``FEW`` values, or one in ``PART`` of the list, are quicker one at a time."""


def add(ordered: list[float], values: Sequence[float]) -> None:
    if _few(ordered, values):
        for value in values:
            insort(ordered, value)
    else:
        ordered.extend(values)
        ordered.sort()


def remove(ordered: list[float], values: Sequence[float]) -> None:
    """Each of ``values`` once; all of them are in ``ordered``."""
    if _few(ordered, values):
        for value in values:
            del ordered[bisect_left(ordered, value)]
        return
    kept: list[float] = []
    start = 0
    for value in sorted(values):
        place = bisect_left(ordered, value, start)
        kept += ordered[start:place]
        start = place + 1
    ordered[:] = kept + ordered[start:]


def _few(ordered: Sequence[float], values: Sequence[float]) -> bool:
    return len(values) <= max(FEW, len(ordered) // PART)
