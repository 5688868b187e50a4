"""Time to first token by mode: for the whole range, and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.analysis.latency import FEW_SAMPLES, Latency, by_mode
from app.charts import chart
from app.charts.chart import Chart, Column, Table
from app.charts.source import Source
from app.ledger.rollups.distribution import Distribution

COLUMNS = (
    Column("mode", "Mode", "text"),
    Column("samples", "Samples", "count"),
    Column("median", "Median", "ms"),
    Column("p95", "95th percentile", "ms"),
    Column("p99", "99th percentile", "ms"),
    Column("few", f"Fewer than {FEW_SAMPLES} samples", "flag"),
)
OVER_TIME_COLUMNS = (*chart.TIME_COLUMNS, *COLUMNS, chart.WHOLE_COLUMN)

NOTHING = "No time to first token was measured in this view."


def ttft(source: Source) -> Chart:
    """Median, 95th and 99th percentile of the range, three bars per mode."""
    found = _whole_range(source.ttft())
    if not found:
        return chart.empty(NOTHING, COLUMNS)
    present = chart.modes_in(set(found))
    names = [chart.mode_name(mode) for mode in present]
    samples = [found[mode].samples for mode in present]
    data: list[chart.Json] = [
        {
            "type": "bar",
            "name": name,
            "meta": {"role": role},
            "legendgroup": role,
            "x": names,
            "y": [getattr(found[mode], f"{role}_ms") for mode in present],
            "customdata": samples,
            "hovertemplate": f"%{{x}}<br>{name} %{{y:,.0f}} ms of %{{customdata:,}} samples"
            "<extra></extra>",
        }
        for role, name in (
            ("median", "median"),
            ("p95", "95th percentile"),
            ("p99", "99th percentile"),
        )
    ]
    layout = {
        "barmode": "group",
        "hovermode": "closest",
        "xaxis": {"type": "category", "categoryorder": "array", "categoryarray": names},
        "yaxis": {"title": {"text": "ms"}, "rangemode": "tozero", "tickformat": ",d"},
    }
    rows = [_cells(mode, found[mode]) for mode in present]
    return Chart(_summary(found), data, layout, Table(COLUMNS, rows))


def ttft_over_time(source: Source) -> Chart:
    """Median (solid) and 95th percentile (dashed) per bucket and mode."""
    buckets = source.buckets
    measured = source.ttft()
    per_bucket = [by_mode(samples) for samples in measured]
    present = chart.modes_in({mode for found in per_bucket for mode in found})
    if not present:
        return chart.empty(NOTHING, OVER_TIME_COLUMNS)
    data: list[chart.Json] = []
    labels = chart.labels(buckets)
    for mode in present:
        found = [entry.get(mode) for entry in per_bucket]
        counts = [
            [label, latency.samples if latency else 0]
            for label, latency in zip(labels, found, strict=True)
        ]
        for stat, name in (("median", "median"), ("p95", "95th percentile")):
            values = [getattr(entry, f"{stat}_ms") if entry else None for entry in found]
            trace = chart.line(
                buckets,
                values,
                name=f"{chart.mode_name(mode)}, {name}",
                meta={"role": chart.mode_role(mode), "stat": stat},
                hover="%{customdata[0]}<br>%{y:,.0f} ms of %{customdata[1]:,} samples"
                f"<extra>{chart.mode_name(mode)}, {name}</extra>",
            )
            trace["customdata"] = counts
            trace["line"] = {"dash": "dash" if stat == "p95" else "solid"}
            data.append(trace)
    layout = {
        "hovermode": "closest",
        "xaxis": chart.time_axis(buckets),
        "yaxis": {"title": {"text": "ms"}, "rangemode": "tozero", "tickformat": ",d"},
        "shapes": chart.open_bucket(buckets),
    }
    rows = [
        [*chart.span(item), *_cells(mode, entry[mode]), item.complete]
        for item, entry in zip(buckets.items, per_bucket, strict=True)
        for mode in chart.modes_in(set(entry))
    ]
    summary = _summary(_whole_range(measured))
    return Chart(summary, data, layout, Table(OVER_TIME_COLUMNS, rows))


def _whole_range(
    measured: Sequence[Mapping[str | None, Distribution]],
) -> dict[str | None, Latency]:
    present = {mode for bucket in measured for mode in bucket}
    return by_mode(
        {
            mode: Distribution.whole(bucket[mode] for bucket in measured if mode in bucket)
            for mode in present
        }
    )


def _cells(mode: str | None, latency: Latency) -> list[str | float | bool]:
    return [
        chart.mode_name(mode),
        latency.samples,
        latency.median_ms,
        latency.p95_ms,
        latency.p99_ms,
        latency.few,
    ]


def _summary(found: dict[str | None, Latency]) -> str:
    parts = [
        f"{chart.mode_name(mode)}: median {found[mode].median_ms:,.0f} ms"
        f" ({chart.count(found[mode].samples, 'sample')})"
        for mode in chart.modes_in(set(found))
    ]
    return "; ".join(parts) + "."
