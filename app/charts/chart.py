"""What a chart is: a Plotly figure as a plain dict, the same data as a table, one sentence.

Figures carry neither a template nor a colour. Every trace has a role in ``meta``, every shape a
name, and the page colours them by these. Plain lists and dicts keep them readable, small and fast
to write; tests check each one against ``plotly.graph_objects``.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.analysis.buckets import Bucket, Buckets, ticks
from app.ledger.rows import iso

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    title: str
    unit: str
    """``time``, ``count``, ``ratio``, ``tokens``, ``ms``, ``text`` or ``flag``."""


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]
    rows: list[list[Any]]


@dataclass(frozen=True, slots=True)
class Chart:
    summary: str
    data: list[Json]
    layout: Json
    table: Table
    empty: bool = False
    """There is nothing to draw; ``data`` is empty and the summary says so."""

    def as_dict(self) -> Json:
        return {
            "summary": self.summary,
            "empty": self.empty,
            "figure": {"data": self.data, "layout": self.layout},
            "table": {
                "columns": [
                    {"key": column.key, "title": column.title, "unit": column.unit}
                    for column in self.table.columns
                ],
                "rows": self.table.rows,
            },
        }


MODE_NAMES: dict[str | None, str] = {
    "ws_incremental": "WebSocket, incremental",
    "http_incremental": "HTTP, incremental",
    "ws_full": "WebSocket, full",
    "http_full": "HTTP, full",
    None: "unknown",
}
"""In the order in which they are stacked and listed."""


def modes_in(present: set[str | None]) -> list[str | None]:
    """The given modes in the order of the page; an importer's own words before unknown."""
    known = [mode for mode in MODE_NAMES if mode is not None and mode in present]
    foreign = sorted(mode for mode in present if mode is not None and mode not in MODE_NAMES)
    return [*known, *foreign, *([None] if None in present else [])]


def mode_name(mode: str | None) -> str:
    return MODE_NAMES.get(mode, mode or "unknown")


def mode_role(mode: str | None) -> str:
    return mode if mode in MODE_NAMES and mode is not None else "unknown"


def empty(summary: str, columns: tuple[Column, ...]) -> Chart:
    """A chart of nothing; no axes either, so that nobody reads a flat line as zeros."""
    layout = {"xaxis": {"visible": False}, "yaxis": {"visible": False}}
    return Chart(summary, [], layout, Table(columns, []), empty=True)


def instant(ms: int) -> str:
    """An instant as Plotly's date axis takes it, in UTC."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{ms % 1000:03d}" if ms % 1000 else "")


LONGEST_NAME = 60
"""Characters of a name that somebody chose; longer ones are cut."""


def as_text(name: str) -> str:
    """People choose names of models and rules, and Plotly makes links and pictures of markup."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return html.escape(short, quote=False)


def starts(buckets: Buckets) -> list[str]:
    return [instant(bucket.start) for bucket in buckets.items]


def middles(buckets: Buckets) -> list[str]:
    """Where a line's point stands: a rate belongs to its whole bucket."""
    return [instant((bucket.start + bucket.end) // 2) for bucket in buckets.items]


def labels(buckets: Buckets) -> list[str]:
    """What a bucket is called when pointed at, in the viewer's zone."""
    return [
        buckets.label(bucket) + ("" if bucket.complete else " (not whole)")
        for bucket in buckets.items
    ]


def time_axis(buckets: Buckets) -> Json:
    """The axis holds instants; its labels are the viewer's. A repeated hour has two places."""
    values, text = ticks(buckets)
    return {
        "type": "date",
        "range": [instant(buckets.items[0].start), instant(buckets.items[-1].end)],
        "tickmode": "array",
        "tickvals": [instant(value) for value in values],
        "ticktext": text,
    }


def open_bucket(buckets: Buckets) -> list[Json]:
    """A mark over the last bucket while it is still filling."""
    last = buckets.items[-1]
    if last.complete or last.start == last.end:
        return []
    return [
        {
            "type": "rect",
            "name": "incomplete",
            "xref": "x",
            "yref": "paper",
            "x0": instant(last.start),
            "x1": instant(last.end),
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"width": 0},
        }
    ]


def stacked_bar(
    buckets: Buckets, values: Sequence[int | None], *, name: str, role: str, unit: str
) -> Json:
    """One layer of a stack over time; each bar is as wide as its bucket."""
    return {
        "type": "bar",
        "name": name,
        "meta": {"role": role},
        "legendgroup": role,
        "x": starts(buckets),
        "y": list(values),
        "width": [bucket.end - bucket.start for bucket in buckets.items],
        "offset": 0,
        "customdata": labels(buckets),
        "hovertemplate": f"%{{customdata}}<br>%{{y:,}} {unit}<extra>{name}</extra>",
    }


def line(
    buckets: Buckets, values: Sequence[float | None], *, name: str, meta: Json, hover: str
) -> Json:
    """A line over time that breaks where there is no value."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "meta": meta,
        "legendgroup": meta["role"],
        "x": middles(buckets),
        "y": list(values),
        "connectgaps": False,
        "marker": {"size": 5},
        "customdata": labels(buckets),
        "hovertemplate": hover,
    }


TIME_COLUMNS = (Column("from", "From", "time"), Column("to", "To", "time"))
WHOLE_COLUMN = Column("complete", "Whole bucket", "flag")


def span(bucket: Bucket) -> list[Any]:
    return [iso(bucket.start), iso(bucket.end)]


def percent(rate: float | None) -> str:
    """``91.6 %``; never 100 % or 0 % of a rate that is not exactly that."""
    if rate is None:
        return "unknown"
    if rate in (0.0, 1.0):
        return f"{rate:.0%}".replace("%", " %")
    shown = min(max(round(rate * 100, 1), 0.1), 99.9)
    return f"{shown:g} %"


def count(number: int, singular: str, plural: str | None = None) -> str:
    word = singular if number == 1 else plural or f"{singular}s"
    return f"{number:,} {word}"
