"""Input tokens over time: read from the cache, written to it, and neither."""

from __future__ import annotations

from app.analysis.continuity import rate
from app.charts import chart
from app.charts.chart import Chart, Column, Table
from app.charts.source import Source, TokenSums

COLUMNS = (
    *chart.TIME_COLUMNS,
    Column("input", "Input", "tokens"),
    Column("cached", "Cached", "tokens"),
    Column("cache_write", "Written to the cache", "tokens"),
    Column("non_cached", "Not cached", "tokens"),
    Column("cached_ratio", "Cached share", "ratio"),
    Column("turns", "Turns with usage", "count"),
    Column("unknown", "Turns without usage", "count"),
    chart.WHOLE_COLUMN,
)


def tokens(source: Source) -> Chart:
    """The layers add up to the input: input includes cached and written tokens.

    A bucket in which no turn's usage is known is a gap, not a zero. ``non_cached`` in the table is
    input − cached, as everywhere; in the stack the written part of it is a layer of its own.
    """
    buckets, sums = source.buckets, source.tokens()
    known = sum(entry.known for entry in sums)
    unknown = sum(entry.unknown for entry in sums)
    if not known:
        said = f"No known usage in {chart.count(unknown, 'turn')}." if unknown else ""
        return chart.empty(said or "No turns in this view.", COLUMNS)
    writes = any(entry.cache_write is not None for entry in sums)
    layers = [("cached", "cached", [entry.cached if entry.known else None for entry in sums])]
    if writes:
        layers.append(("cache_write", "written to the cache", [_written(entry) for entry in sums]))
    rest_name = "neither" if writes else "not cached"
    layers.append(("non_cached", rest_name, [_rest(entry) for entry in sums]))
    data = [
        chart.stacked_bar(buckets, values, name=name, role=role, unit="tokens")
        for role, name, values in layers
    ]
    layout = {
        "barmode": "stack",
        "hovermode": "closest",
        "xaxis": chart.time_axis(buckets),
        "yaxis": {"title": {"text": "input tokens"}, "rangemode": "tozero", "tickformat": "~s"},
        "shapes": chart.open_bucket(buckets),
    }
    rows = [
        [*chart.span(item), *_cells(entry), item.complete]
        for item, entry in zip(buckets.items, sums, strict=True)
    ]
    total = sum(entry.input for entry in sums)
    share = rate(sum(entry.cached for entry in sums), total)
    summary = f"{chart.percent(share)} of {chart.count(total, 'input token')} came from the cache"
    summary += f"; usage of {chart.count(unknown, 'turn')} is unknown." if unknown else "."
    return Chart(summary, data, layout, Table(COLUMNS, rows))


def _written(entry: TokenSums) -> int | None:
    """No more than what is not cached: contradicting numbers must not make a layer negative."""
    if not entry.known or entry.cache_write is None:
        return None
    return min(entry.cache_write, max(0, entry.input - entry.cached))


def _rest(entry: TokenSums) -> int | None:
    if not entry.known:
        return None
    return max(0, entry.input - entry.cached) - (_written(entry) or 0)


def _cells(entry: TokenSums) -> list[int | float | None]:
    if not entry.known:
        return [None, None, None, None, None, 0, entry.unknown]
    return [
        entry.input,
        entry.cached,
        entry.cache_write,
        max(0, entry.input - entry.cached),
        rate(entry.cached, entry.input),
        entry.known,
        entry.unknown,
    ]
