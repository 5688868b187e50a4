"""A source for charts made of lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from app.analysis.buckets import Buckets, cut
from app.analysis.continuity import Share
from app.charts.source import TokenSums
from app.ledger.rollups.distribution import Distribution

NOW = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() * 1000)
MINUTE = 60_000


def quarter_hours(count: int, *, zone: str = "UTC", open_by: int = 0) -> Buckets:
    """``count`` buckets of 15 minutes up to now; the last one lacks ``open_by`` minutes."""
    start = NOW - count * 15 * MINUTE
    end = NOW - open_by * MINUTE
    return cut(start, end, zone=ZoneInfo(zone), now=end, limit=count)


@dataclass
class ListSource:
    """What is not given is empty in every bucket."""

    buckets: Buckets
    mode_counts: Sequence[Mapping[str | None, int]] = ()
    mismatch_shares: Sequence[Share] = ()
    session_shares: Sequence[Share] = ()
    token_sums: Sequence[TokenSums] = ()
    ttft_samples: Sequence[Mapping[str | None, Sequence[float]]] = field(default_factory=tuple)
    cached_samples: Mapping[tuple[str | None, str], Sequence[float]] = field(default_factory=dict)

    def modes(self) -> Sequence[Mapping[str | None, int]]:
        return self.mode_counts or [{} for _ in self.buckets.items]

    def mismatches(self) -> Sequence[Share]:
        return self.mismatch_shares or [Share(0, 0) for _ in self.buckets.items]

    def sessions(self) -> Sequence[Share]:
        return self.session_shares

    def tokens(self) -> Sequence[TokenSums]:
        return self.token_sums or [TokenSums(0, 0, 0, 0, None) for _ in self.buckets.items]

    def ttft(self) -> Sequence[Mapping[str | None, Distribution]]:
        if not self.ttft_samples:
            return [{} for _ in self.buckets.items]
        return [
            {mode: Distribution(values) for mode, values in bucket.items()}
            for bucket in self.ttft_samples
        ]

    def ttft_by_cache(self) -> Mapping[tuple[str | None, str], Distribution]:
        return {place: Distribution(values) for place, values in self.cached_samples.items()}
