"""Time to first token by how much of the input came from the prompt cache, for each mode."""

from __future__ import annotations

from app.analysis.latency import FEW_SAMPLES, Latency, summarize
from app.charts import chart
from app.charts.chart import Chart, Column, Table
from app.charts.source import Source
from app.charts.ttft import COLUMNS as OF_MODES
from app.charts.ttft import NOTHING

SHARES: dict[str, str] = {
    "hit": "hit (80 % or more)",
    "partial": "partial",
    "miss": "miss (nothing)",
    "unknown": "unknown",
}
"""Classes of the cached share, from most to least, and their names."""
COLUMNS = (Column("cache", "Cached share", "text"), *OF_MODES)


def ttft_by_cached_share(source: Source) -> Chart:
    """Median as a bar, the 95th percentile as the end of its whisker. Modes are never mixed: one
    that answers sooner also reads its cache more often."""
    found = {place: summarize(times) for place, times in source.ttft_by_cache().items()}
    known = {place: latency for place, latency in found.items() if latency is not None}
    if not known:
        return chart.empty(NOTHING, COLUMNS)
    shares = [share for share in SHARES if any(share == cache for _, cache in known)]
    present = chart.modes_in({mode for mode, _ in known})
    names = [SHARES[share] for share in shares]
    data = [_bars(mode, names, [known.get((mode, share)) for share in shares]) for mode in present]
    layout = {
        "barmode": "group",
        "hovermode": "closest",
        "showlegend": True,
        "xaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names,
            "title": {"text": "of the input came from the prompt cache"},
        },
        "yaxis": {"title": {"text": "ms"}, "rangemode": "tozero", "tickformat": ",d"},
    }
    rows = [
        [SHARES[share], chart.mode_name(mode), *_cells(known[mode, share])]
        for share in shares
        for mode in present
        if (mode, share) in known
    ]
    return Chart(_summary(known), data, layout, Table(COLUMNS, rows))


def _bars(mode: str | None, names: list[str], found: list[Latency | None]) -> chart.Json:
    name = chart.mode_name(mode)
    return {
        "type": "bar",
        "name": name,
        "meta": {"role": chart.mode_role(mode)},
        "legendgroup": chart.mode_role(mode),
        "x": names,
        "y": [None if one is None else one.median_ms for one in found],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0 if one is None else one.p95_ms - one.median_ms for one in found],
            "arrayminus": [0] * len(found),
            "thickness": 1.5,
            "width": 4,
        },
        "text": ["few" if one is not None and one.few else "" for one in found],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "customdata": [
            None if one is None else [one.samples, one.p95_ms, ", too few" if one.few else ""]
            for one in found
        ],
        "hovertemplate": "%{x}<br>median %{y:,.0f} ms, 95th percentile %{customdata[1]:,.0f} ms<br>"
        f"%{{customdata[0]:,}} samples%{{customdata[2]}}<extra>{name}</extra>",
    }


def _cells(latency: Latency) -> list[float | bool]:
    times = (latency.median_ms, latency.p95_ms, latency.p99_ms)
    return [latency.samples, *times, latency.few]


def _summary(known: dict[tuple[str | None, str], Latency]) -> str:
    few = sum(latency.few for latency in known.values())
    said = "Bars: median; whiskers: 95th percentile"
    if not few:
        return f"{said}."
    return (
        f"{said}; {few} of {chart.count(len(known), 'bar')} rest on fewer than {FEW_SAMPLES} "
        "samples and say little."
    )
