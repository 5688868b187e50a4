"""All charts by slug, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.charts.chart import Chart
from app.charts.mismatch import mismatch_rate
from app.charts.modes import incremental_rate, modes
from app.charts.residency import sessions_by_residency
from app.charts.source import Source
from app.charts.tokens import tokens
from app.charts.ttft import ttft, ttft_over_time
from app.charts.ttft_by_cache import ttft_by_cached_share


@dataclass(frozen=True, slots=True)
class Entry:
    slug: str
    title: str
    build: Callable[[Source], Chart]


CHARTS: dict[str, Entry] = {
    entry.slug: entry
    for entry in (
        Entry("modes", "Modes over time", modes),
        Entry("incremental-rate", "Incremental rate over time", incremental_rate),
        Entry("sessions-by-residency", "Sessions by incremental rate", sessions_by_residency),
        Entry("mismatch-rate", "Mismatch rate over time", mismatch_rate),
        Entry("tokens", "Cached and non-cached input tokens", tokens),
        Entry("ttft", "Time to first token by mode", ttft),
        Entry("ttft-by-cached-share", "Time to first token by cached share", ttft_by_cached_share),
        Entry("ttft-over-time", "Time to first token over time", ttft_over_time),
    )
}
