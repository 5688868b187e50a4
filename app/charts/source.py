"""What the charts ask for. The web layer answers from the ledger, tests from lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.analysis.buckets import Buckets
from app.analysis.continuity import Share
from app.ledger.rollups.distribution import Distribution


@dataclass(frozen=True, slots=True)
class TokenSums:
    """Sums over the generation turns of a bucket whose input and cached tokens are known."""

    known: int
    """Turns in the sums."""
    unknown: int
    """Turns whose usage is not known; they are in no sum."""
    input: int
    cached: int
    cache_write: int | None
    """None where no turn of the bucket reported writes."""


class Source(Protocol):
    """Only generation turns count; the mode None is unknown. One entry per bucket where a
    sequence is returned."""

    @property
    def buckets(self) -> Buckets: ...

    def modes(self) -> Sequence[Mapping[str | None, int]]:
        """Turns by mode."""
        ...

    def mismatches(self) -> Sequence[Share]:
        """Eligible turns with ``prefix_mismatch`` of eligible turns."""
        ...

    def sessions(self) -> Sequence[Share]:
        """Per session of the range: incremental turns of turns with a known mode."""
        ...

    def tokens(self) -> Sequence[TokenSums]: ...

    def ttft(self) -> Sequence[Mapping[str | None, Distribution]]:
        """Times to first token by mode, in milliseconds."""
        ...

    def ttft_by_cache(self) -> Mapping[tuple[str | None, str], Distribution]:
        """The same of the whole range, by mode and class of the cached share."""
        ...
