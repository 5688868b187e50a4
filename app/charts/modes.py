"""Which wire the turns used, over time, and how much of it was incremental."""

from __future__ import annotations

from app.analysis.continuity import rate
from app.charts import chart
from app.charts.chart import Chart, Column, Table
from app.charts.source import Source

INCREMENTAL = ("ws_incremental", "http_incremental")


def modes(source: Source) -> Chart:
    """Turns per bucket, stacked by mode. Unknown is a layer of its own."""
    buckets, counts = source.buckets, source.modes()
    present = chart.modes_in({mode for bucket in counts for mode, n in bucket.items() if n})
    columns = (
        *chart.TIME_COLUMNS,
        *(Column(mode or "unknown", chart.mode_name(mode), "count") for mode in present),
        chart.WHOLE_COLUMN,
    )
    totals = {mode: sum(bucket.get(mode, 0) for bucket in counts) for mode in present}
    turns = sum(totals.values())
    if not turns:
        return chart.empty("No turns in this view.", columns)
    data = [
        chart.stacked_bar(
            buckets,
            # A bucket without any turn is a gap; a mode without turns beside others is a zero.
            [bucket.get(mode, 0) if any(bucket.values()) else None for bucket in counts],
            name=chart.mode_name(mode),
            role=chart.mode_role(mode),
            unit="turns",
        )
        for mode in present
    ]
    layout = {
        "barmode": "stack",
        "hovermode": "closest",
        "xaxis": chart.time_axis(buckets),
        "yaxis": {"title": {"text": "turns"}, "rangemode": "tozero", "tickformat": ",d"},
        "shapes": chart.open_bucket(buckets),
    }
    rows = [
        [
            *chart.span(item),
            *((bucket.get(mode, 0) if any(bucket.values()) else None) for mode in present),
            item.complete,
        ]
        for item, bucket in zip(buckets.items, counts, strict=True)
    ]
    unknown = totals.pop(None, 0)
    known = turns - unknown
    incremental = sum(totals.get(mode, 0) for mode in INCREMENTAL)
    summary = f"{chart.count(turns, 'turn')}: {chart.percent(rate(incremental, known))} incremental"
    summary += f", {unknown:,} of unknown mode." if unknown else "."
    if not known:
        summary = f"{chart.count(turns, 'turn')}, all of unknown mode."
    return Chart(summary, data, layout, Table(columns, rows))


def incremental_rate(source: Source) -> Chart:
    """Share of turns in an incremental mode, of those whose mode is known."""
    buckets, counts = source.buckets, source.modes()
    columns = (
        *chart.TIME_COLUMNS,
        Column("incremental", "Incremental", "count"),
        Column("known", "Turns of known mode", "count"),
        Column("rate", "Incremental rate", "ratio"),
        chart.WHOLE_COLUMN,
    )
    incremental = [sum(bucket.get(mode, 0) for mode in INCREMENTAL) for bucket in counts]
    known = [sum(n for mode, n in bucket.items() if mode is not None) for bucket in counts]
    if not sum(known):
        return chart.empty("No turns of known mode in this view.", columns)
    rates = [rate(part, whole) for part, whole in zip(incremental, known, strict=True)]
    trace = chart.line(
        buckets,
        rates,
        name="incremental rate",
        meta={"role": "rate"},
        hover="%{customdata[0]}<br>%{y:.1%}: %{customdata[1]:,} of %{customdata[2]:,} turns"
        "<extra></extra>",
    )
    trace["customdata"] = [
        list(entry) for entry in zip(chart.labels(buckets), incremental, known, strict=True)
    ]
    overall = rate(sum(incremental), sum(known))
    layout = {
        "hovermode": "closest",
        "showlegend": False,
        "xaxis": chart.time_axis(buckets),
        "yaxis": {"title": {"text": "of turns"}, "range": [0, 1.03], "tickformat": ".0%"},
        "shapes": [*chart.open_bucket(buckets), average(overall)],
    }
    rows = [
        [*chart.span(item), part, whole, value, item.complete]
        for item, part, whole, value in zip(buckets.items, incremental, known, rates, strict=True)
    ]
    summary = (
        f"{chart.percent(overall)} of {chart.count(sum(known), 'turn')} of known mode "
        "were incremental."
    )
    return Chart(summary, [trace], layout, Table(columns, rows))


def average(value: float | None) -> chart.Json:
    """A level line over the whole range."""
    return {
        "type": "line",
        "name": "average",
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"dash": "dot", "width": 1},
    }
