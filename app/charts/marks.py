"""Marks of alerts over a chart of time: a line and a word where one fired, and where it ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from app.analysis.buckets import Buckets
from app.charts import chart
from app.charts.chart import Chart, Column, Table

MOST = 24
"""Places of marks that are drawn; the table has all."""
APART = 0.09
"""Of the range: words that stand nearer would cover each other, and only the first is written."""
COLUMN = Column("alerts", "Alerts", "text")

Word = Literal["fired", "resolved", "ended"]


@dataclass(frozen=True, slots=True)
class Mark:
    at: int
    """Epoch milliseconds."""
    word: Word
    rule: str


def marked(drawn: Chart, buckets: Buckets, marks: Iterable[Mark]) -> Chart:
    """The chart with marks, where its axis is one of time. Marks of one kind within a bucket are
    one line."""
    found: dict[tuple[int, Word], list[Mark]] = {}
    starts = [bucket.start for bucket in buckets.items]
    for mark in sorted(marks, key=lambda each: each.at):
        place = bisect_right(starts, mark.at) - 1
        if place >= 0 and mark.at < buckets.items[-1].end:
            found.setdefault((place, mark.word), []).append(mark)
    if not found or drawn.empty or drawn.layout["xaxis"].get("type") != "date":
        return drawn
    lines = list(found.items())[-MOST:]
    layout = drawn.layout | {
        "shapes": [
            *drawn.layout.get("shapes", []),
            *(_line(some[0], word) for (_, word), some in lines),
        ],
        "annotations": _words(buckets, [(word, some) for (_, word), some in lines]),
    }
    hidden = len(found) - len(lines)
    note = f" The oldest {hidden} marks of alerts are only in the table." if hidden else ""
    table = _with_column(drawn.table, buckets, found)
    return replace(drawn, summary=drawn.summary + note, layout=layout, table=table)


def _line(mark: Mark, word: Word) -> chart.Json:
    return {
        "type": "line",
        "name": f"alert_{word}",
        "xref": "x",
        "yref": "paper",
        "x0": chart.instant(mark.at),
        "x1": chart.instant(mark.at),
        "y0": 0,
        "y1": 1,
        "line": {"dash": "solid" if word == "fired" else "dash", "width": 1},
    }


def _words(buckets: Buckets, lines: list[tuple[Word, list[Mark]]]) -> list[chart.Json]:
    """Fired above, the rest a line lower, so that the two of a short alert stay apart."""
    length = buckets.items[-1].end - buckets.items[0].start
    last: dict[bool, tuple[int, bool]] = {}
    written: list[chart.Json] = []
    for word, some in lines:
        at, fired = some[0].at, word == "fired"
        late = at - buckets.items[0].start > length * 0.85
        if fired in last:
            before, was_late = last[fired]
            # A late word stands left of its line: two that face each other need twice the room.
            if at - before < APART * length * (2 if late and not was_late else 1):
                continue
        last[fired] = (at, late)
        written.append(
            {
                "name": f"alert_{word}",
                "text": f"{word} ×{len(some)}" if len(some) > 1 else word,
                "hovertext": chart.as_text(_said(word, some)),
                "x": chart.instant(at),
                "xref": "x",
                "xanchor": "right" if late else "left",
                "y": 1 if fired else 0.91,
                "yref": "paper",
                "yanchor": "top",
                "showarrow": False,
            }
        )
    return written


def _with_column(
    table: Table, buckets: Buckets, found: dict[tuple[int, Word], list[Mark]]
) -> Table:
    said: dict[str, str] = {}
    for (place, word), some in found.items():
        start = chart.span(buckets.items[place])[0]
        said[start] = "; ".join(filter(None, (said.get(start), _said(word, some))))
    rows = [[*row, said.get(row[0])] for row in table.rows]
    return Table((*table.columns, COLUMN), rows)


def _said(word: Word, some: list[Mark]) -> str:
    return f"{word}: {', '.join(dict.fromkeys(mark.rule for mark in some))}"
