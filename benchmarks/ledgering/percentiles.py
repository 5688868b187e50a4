"""How far percentiles over time are from the exact ones, where a bucket has a hundred samples."""

from __future__ import annotations

import statistics
from itertools import pairwise

from sqlalchemy import Engine, text

from app.analysis.buckets import cut
from app.analysis.latency import percentile
from app.ledger import series
from benchmarks.ledgering.month import END
from benchmarks.ledgering.reading import ZONE, views
from benchmarks.ledgering.result import Result

MEAN, WORST, SAMPLES = 1.0, 2.0, 100
_QUERY = text(
    "SELECT mode, ttft_ms FROM turns WHERE started_at >= :a AND started_at < :b AND "
    "kind = 'generation' AND status = 'completed' AND ttft_ms IS NOT NULL ORDER BY ttft_ms"
)


def results(engine: Engine) -> list[Result]:
    view = views()["24 h"]
    edges = cut(view.start, view.end, zone=ZONE, now=END).edges
    wrong = []
    with engine.connect() as connection:
        for (left, right), times in zip(
            pairwise(edges), series.ttft(engine, view, edges), strict=True
        ):
            exact: dict[str | None, list[float]] = {}
            for mode, sample in connection.execute(_QUERY, {"a": left, "b": right}):
                exact.setdefault(mode, []).append(sample)
            for mode, samples in exact.items():
                if len(samples) >= SAMPLES:
                    for percent in (50, 95, 99):
                        true = percentile(samples, percent / 100)
                        near = times[mode].percentile(percent)
                        assert true is not None
                        assert near is not None
                        wrong.append(abs(near - true) / true * 100)
    name = engine.dialect.name
    return [
        Result(f"{name}, percentiles, mean error", statistics.fmean(wrong or [0]), "%", MEAN),
        Result(f"{name}, percentiles, worst error", max(wrong, default=0), "%", WORST),
    ]
