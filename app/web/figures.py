"""The charts' source, answered from the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Engine

from app.analysis.buckets import Buckets, cut
from app.analysis.continuity import Share
from app.charts.source import TokenSums
from app.ledger import series
from app.ledger.filters import Filter
from app.ledger.rollups.distribution import Distribution


class LedgerSource:
    """Reads only what the chart at hand asks for. ``now`` is in epoch milliseconds."""

    def __init__(self, engine: Engine, view: Filter, now: int) -> None:
        self._engine = engine
        self._view = view
        self.buckets: Buckets = cut(view.start, view.end, zone=view.zone, now=now)

    def modes(self) -> Sequence[Mapping[str | None, int]]:
        return series.modes(self._engine, self._view, self.buckets.edges)

    def mismatches(self) -> Sequence[Share]:
        found = series.continuity(self._engine, self._view, self.buckets.edges)
        return [Share(bucket.mismatches, bucket.eligible) for bucket in found]

    def sessions(self) -> Sequence[Share]:
        shares: list[Share] = []
        for part, whole, sessions in series.residency(self._engine, self._view):
            shares += [Share(part, whole)] * sessions
        return shares

    def tokens(self) -> Sequence[TokenSums]:
        found = series.tokens(self._engine, self._view, self.buckets.edges)
        return [
            TokenSums(
                known=bucket.turns,
                unknown=bucket.unknown,
                input=bucket.input,
                cached=bucket.cached,
                cache_write=bucket.cache_write,
            )
            for bucket in found
        ]

    def ttft(self) -> Sequence[Mapping[str | None, Distribution]]:
        return series.ttft(self._engine, self._view, self.buckets.edges)

    def ttft_by_cache(self) -> Mapping[tuple[str | None, str], Distribution]:
        return series.ttft_by_cache(self._engine, self._view)
