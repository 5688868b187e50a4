"""The mismatch rate over time, with the buckets marked where it jumps."""

from __future__ import annotations

from app.analysis.continuity import rate, spikes
from app.charts import chart
from app.charts.chart import Chart, Column, Table
from app.charts.modes import average
from app.charts.source import Source

COLUMNS = (
    *chart.TIME_COLUMNS,
    Column("mismatches", "Prefix mismatches", "count"),
    Column("eligible", "Eligible turns", "count"),
    Column("rate", "Mismatch rate", "ratio"),
    Column("spike", "Spike", "flag"),
    chart.WHOLE_COLUMN,
)


def mismatch_rate(source: Source) -> Chart:
    """Eligible turns with ``prefix_mismatch`` of eligible ones; see ``continuity.spikes``."""
    buckets, shares = source.buckets, source.mismatches()
    eligible = sum(share.whole for share in shares)
    mismatches = sum(share.part for share in shares)
    if not eligible:
        return chart.empty("No eligible turns in this view.", COLUMNS)
    rates = [share.rate for share in shares]
    marks = spikes(shares)
    counts = [
        [label, share.part, share.whole]
        for label, share in zip(chart.labels(buckets), shares, strict=True)
    ]
    hover = "%{customdata[0]}<br>%{y:.1%}: %{customdata[1]:,} of %{customdata[2]:,} eligible turns"
    data = [
        chart.line(
            buckets,
            rates,
            name="mismatch rate",
            meta={"role": "rate"},
            hover=f"{hover}<extra></extra>",
        )
        | {"customdata": counts}
    ]
    if any(marks):
        # All buckets, with gaps, so that a point keeps its place whatever is zoomed.
        spiked = [value if mark else None for value, mark in zip(rates, marks, strict=True)]
        data.append(
            chart.line(
                buckets,
                spiked,
                name="spike",
                meta={"role": "spike"},
                hover=f"{hover}<extra>spike</extra>",
            )
            | {
                "mode": "markers",
                "marker": {"size": 12, "symbol": "triangle-up"},
                "customdata": counts,
            }
        )
    overall = rate(mismatches, eligible)
    layout = {
        "hovermode": "closest",
        "showlegend": any(marks),
        "xaxis": chart.time_axis(buckets),
        "yaxis": {
            "title": {"text": "of eligible turns"},
            "rangemode": "tozero",
            "tickformat": ".1~%",
        },
        "shapes": [*chart.open_bucket(buckets), average(overall)],
    }
    rows = [
        [*chart.span(item), share.part, share.whole, value, mark, item.complete]
        for item, share, value, mark in zip(buckets.items, shares, rates, marks, strict=True)
    ]
    return Chart(_summary(mismatches, eligible, sum(marks)), data, layout, Table(COLUMNS, rows))


def _summary(mismatches: int, eligible: int, spiked: int) -> str:
    said = (
        f"{mismatches:,} of {chart.count(eligible, 'eligible turn')} "
        f"({chart.percent(rate(mismatches, eligible))}) did not match"
    )
    return f"{said}; {chart.count(spiked, 'spike')}." if spiked else f"{said}; no spike."
