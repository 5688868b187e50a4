"""What breaks add to their sums: under which key, and how much of what. Pure.

The key tells apart all that the price of missed tokens depends on, so that what a sum of them cost
is told exactly: not the tokens of input, of which long requests have other prices, but between
which two steps of ``LADDER`` they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from app.ledger.break_groups import group_of
from app.ledger.rollups.contribution import ANY, HOUR, digest, start_of
from app.ledger.rows import TurnRow

NEEDED = (
    "started_at", "source", "kind", "status", "session_key", "tenant", "client", "client_version",
    "upstream", "model", "service_tier", "mode", "reason", "eligible", "changed_fields",
    "fallback_reason", "fingerprint", "input_tokens", "cache_write_tokens",
    "cache_write_long_tokens", "cache_verdict", "missed_tokens",
)  # fmt: skip
"""The columns that sums of breaks are made from."""
LADDER = (
    32_000, 100_000, 128_000, 199_999, 200_000, 256_000, 272_000, 512_000, 524_288,
)  # fmt: skip
"""Tokens of input beyond which some model of the price list has another price."""
UNKNOWN = -1
"""The size of input that is not known."""
SUMS = ("turns", "counted", "missed", "written", "written_long")


class Key(NamedTuple):
    """All that breaks of one sum have in common."""

    break_group: str
    source: str
    tenant: str
    upstream: str
    model: str | None
    client: str | None
    client_version: str | None
    service_tier: str | None
    size: int
    """How many steps of ``LADDER`` its input is beyond; ``UNKNOWN``."""
    long: bool
    """It has written tokens with the longer lifetime."""

    @property
    def whole(self) -> bool:
        """Whether it is of a group, told apart by nothing else."""
        return self.source == ANY


class Part(NamedTuple):
    """Breaks of one key."""

    key: Key
    turns: int
    counted: int
    missed: int
    written: int
    written_long: int
    first_at: int
    last_at: int


@lru_cache(maxsize=10_000)
def id_of(key: Key) -> int:
    return digest(key)


@lru_cache(maxsize=10_000)
def whole_of(group: str) -> Key:
    return Key(group, ANY, ANY, ANY, ANY, ANY, ANY, ANY, UNKNOWN, False)


def size_of(tokens: int | None) -> int:
    return UNKNOWN if tokens is None else bisect_left(LADDER, tokens)


def tokens_of(size: int) -> tuple[int, int]:
    """The least and the most tokens of input of a known size."""
    least = LADDER[size - 1] + 1 if size else 0
    return least, LADDER[size] if size < len(LADDER) else 2 * least


def key_of(row: TurnRow, group: str) -> Key:
    return Key(
        group, row.source, row.tenant, row.upstream, row.model, row.client, row.client_version,
        row.service_tier, size_of(row.input_tokens), bool(row.cache_write_long_tokens),
    )  # fmt: skip


def sums_of(row: TurnRow) -> tuple[int, ...]:
    """``SUMS`` of one break: those that were written, and among them the long ones, are counted
    first (``app.analysis.waste``)."""
    missed = row.missed_tokens
    if missed is None:
        return (1, 0, 0, 0, 0)
    if row.input_tokens is None:
        return (1, 1, missed, 0, 0)
    long = min(missed, row.cache_write_long_tokens or 0)
    written = min(missed, row.cache_write_tokens or 0) - long
    return (1, 1, missed, written, long)


At = tuple[int, Key]
"""The start of an hour, and a key."""
SessionAt = tuple[str, str, int]
"""A group, a session, and the start of an hour."""


class Broken:
    """What rows add together; what is no break adds nothing."""

    __slots__ = ("instants", "sessions", "sums")

    def __init__(self) -> None:
        self.sums: dict[At, list[int]] = {}
        self.instants: defaultdict[At, Counter[int]] = defaultdict(Counter)
        """How many breaks began just then, more or less."""
        self.sessions: Counter[SessionAt] = Counter()

    def add(self, rows: Iterable[TurnRow], sign: int = 1) -> None:
        """Add the rows; with ``sign`` -1, take away what they added before."""
        for row in rows:
            group = group_of(row)
            if group is None:
                continue
            start = start_of(HOUR, row.started_at)
            key = key_of(row, group)
            known = self.sums.setdefault((start, key), [0] * len(SUMS))
            for place, amount in enumerate(sums_of(row)):
                known[place] += sign * amount
            self.instants[start, key][row.started_at] += sign
            self.sessions[group, row.session_key, start] += sign
