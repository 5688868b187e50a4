"""Work on large bodies, away from the event loop.

What works through megabytes in one go holds up every other stream meanwhile. In a thread it is done
in turns with the loop: only a single pass over the bytes is then in one piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

LARGE = 2 * 1024 * 1024
"""Bytes from which on the way into a thread and back is worth it."""
_T = TypeVar("_T")


async def aside(size: int, work: Callable[[], _T]) -> _T:
    """What ``work`` gives; for a body of ``size`` bytes or more it is done in a thread."""
    return work() if size < LARGE else await asyncio.to_thread(work)
