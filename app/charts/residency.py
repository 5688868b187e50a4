"""How often sessions stay incremental: sessions by their incremental rate."""

from __future__ import annotations

from statistics import median

from app.analysis.continuity import residency
from app.charts import chart
from app.charts.chart import Chart, Column, Table
from app.charts.source import Source

COLUMNS = (
    Column("rate", "Incremental rate", "text"),
    Column("sessions", "Sessions", "count"),
    Column("single", "Of these with one turn only", "count"),
)


def sessions_by_residency(source: Source) -> Chart:
    """A session counts with the turns that it has in the range.

    One with a single turn had nothing to continue, so it is drawn apart and left out of the
    sentence's median.
    """
    sessions = [session for session in source.sessions() if session.whole]
    if not sessions:
        return chart.empty("No sessions with turns of known mode in this view.", COLUMNS)
    bins = residency(sessions)
    names = [entry.label for entry in bins]
    data = [
        _bars(names, [entry.sessions - entry.single for entry in bins], "two turns or more"),
    ]
    if any(entry.single for entry in bins):
        data.append(_bars(names, [entry.single for entry in bins], "one turn only"))
        data[-1]["meta"] = {"role": "sessions_single"}
        data[-1]["legendgroup"] = "sessions_single"
    layout = {
        "barmode": "stack",
        "hovermode": "closest",
        "bargap": 0.05,
        "showlegend": len(data) > 1,
        "xaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names,
            "title": {"text": "incremental rate of the session"},
        },
        "yaxis": {"title": {"text": "sessions"}, "rangemode": "tozero", "tickformat": ",d"},
    }
    rows = [[entry.label, entry.sessions, entry.single] for entry in bins]
    longer = [session.part / session.whole for session in sessions if session.whole > 1]
    summary = f"{chart.count(len(sessions), 'session')}"
    if longer:
        always = sum(value == 1.0 for value in longer)
        summary += (
            f"; the median of those with two turns or more is {chart.percent(median(longer))} "
            f"incremental, {always:,} never left it."
        )
    else:
        summary += ", each with one turn only: nothing could be continued."
    return Chart(summary, data, layout, Table(COLUMNS, rows))


def _bars(names: list[str], values: list[int], name: str) -> chart.Json:
    return {
        "type": "bar",
        "name": name,
        "meta": {"role": "sessions"},
        "legendgroup": "sessions",
        "x": names,
        "y": values,
        "hovertemplate": f"%{{x}} incremental<br>%{{y:,}} sessions<extra>{name}</extra>",
    }
