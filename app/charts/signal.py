"""What a rule would have seen: its signal over time, its thresholds, and when it would have fired.

A window that could not be judged is a gap: neither its value nor its bound says anything. Where
there are more evaluations than a line can show, the worst one of a stretch stands for it, so that
no crossing disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from app.analysis.buckets import cut
from app.charts import chart
from app.charts.chart import Chart, Column, Json, Table
from app.ledger.rows import iso

MAX_POINTS = 2_000
"""Of all groups together."""
MAX_GROUPS = 8
MAX_STRETCHES = 200


@dataclass(frozen=True, slots=True)
class Point:
    """One evaluation. ``part`` of ``whole`` as the signal counts them."""

    at: int
    """Epoch milliseconds."""
    value: float | None
    bound: float | None
    """What the data prove; the value itself where nothing is to be proven."""
    part: int
    whole: int
    turns: int
    lack: str | None = None
    """Why the window cannot be judged; its value is not drawn then."""

    @property
    def judged(self) -> bool:
        return self.lack is None and self.value is not None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which the rule fired; ``end`` None: it still does."""

    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    """Empty where the rule does not group."""
    points: Sequence[Point]
    fired: Sequence[Stretch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything that is drawn. ``unit`` is ``ratio``, ``ms`` or ``tokens``."""

    title: str
    unit: str
    rises: bool
    part: str
    whole: str
    threshold: float
    recover: float
    proven: bool
    """The bound is another than the value."""
    start: int
    end: int
    zone: ZoneInfo
    groups: Sequence[Group]
    sentence: str


def signal(picture: Picture) -> Chart:
    groups = _shown(picture.groups)
    columns = _columns(picture, several=bool(groups and groups[0].name))
    if not any(point.judged for group in groups for point in group.points):
        said = "No window of this time can be judged." if groups else "There are no turns."
        return chart.empty(f"{picture.sentence} {said}".strip(), columns)
    most = MAX_POINTS // len(groups)
    thinned = [thin(group.points, most, rises=picture.rises) for group in groups]
    data: list[Json] = []
    for group, points in zip(groups, thinned, strict=True):
        data.append(_line(picture, group, points, "value"))
        if picture.proven and len(groups) == 1:
            data.append(_line(picture, group, points, "bound"))
    data.append(_level(picture, picture.threshold, "threshold", "fires beyond"))
    if picture.recover != picture.threshold:
        data.append(_level(picture, picture.recover, "recover", "is over at"))
    layout = {
        "hovermode": "closest",
        "showlegend": True,
        "xaxis": chart.time_axis(
            cut(picture.start, picture.end, zone=picture.zone, now=picture.end)
        ),
        "yaxis": {
            "title": {"text": _AXIS[picture.unit]},
            "rangemode": "tozero",
            "tickformat": ".1~%" if picture.unit == "ratio" else ",d",
        },
        "shapes": _fired(picture, groups),
    }
    rows = [
        [
            iso(point.at),
            *([group.name] if group.name else []),
            point.value,
            *([point.bound] if picture.proven else []),
            *([point.part, point.whole] if picture.unit == "ratio" else []),
            point.turns,
            point.lack,
        ]
        for group, points in zip(groups, thinned, strict=True)
        for point in points
    ]
    return Chart(_summary(picture, groups), data, layout, Table(columns, rows))


_AXIS = {"ratio": "share", "ms": "ms", "tokens": "tokens"}


def thin(points: Sequence[Point], most: int, *, rises: bool) -> list[Point]:
    """At most ``most`` points: of each stretch the worst one that was judged.

    A stretch of which nothing was judged keeps its first point, hence its gap.
    """
    each = -(-len(points) // most)
    return [
        _worst(points[place : place + each], rises=rises) for place in range(0, len(points), each)
    ]


def _worst(points: Sequence[Point], *, rises: bool) -> Point:
    judged = [point for point in points if point.judged]
    if not judged:
        return points[0]

    def badness(point: Point) -> float:
        bound = point.value if point.bound is None else point.bound
        assert bound is not None
        return bound if rises else -bound

    return max(judged, key=badness)


def _shown(groups: Sequence[Group]) -> list[Group]:
    """Those that fired first, then those with the most turns."""

    def rank(group: Group) -> tuple[int, int]:
        return (-len(group.fired), -sum(point.turns for point in group.points))

    return sorted(groups, key=rank)[:MAX_GROUPS]


def _columns(picture: Picture, *, several: bool) -> tuple[Column, ...]:
    return (
        Column("at", "Evaluation", "time"),
        *([Column("group", "Group", "text")] if several else []),
        Column("value", picture.title, picture.unit),
        *([Column("bound", "Proven", picture.unit)] if picture.proven else []),
        *(
            [
                Column("part", _capital(picture.part), "count"),
                Column("whole", _capital(picture.whole), "count"),
            ]
            if picture.unit == "ratio"
            else []
        ),
        Column("turns", "Turns", "count"),
        Column("lack", "Not judged because", "text"),
    )


def _line(picture: Picture, group: Group, points: Sequence[Point], role: str) -> Json:
    name = {"value": picture.title.lower(), "bound": "proven"}[role]
    if group.name:
        name = chart.as_text(group.name)
    counts = "%{customdata[1]:,} turns"
    if picture.unit == "ratio":
        counts = f"%{{customdata[2]:,}} of %{{customdata[3]:,}} {picture.whole}"
    shown = {"ratio": "%{y:.1%}", "ms": "%{y:,.0f} ms", "tokens": "%{y:,.0f} tokens"}[picture.unit]
    meta = {"role": role} | ({"group": group.name} if group.name else {})
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "meta": meta,
        "legendgroup": group.name or role,
        "x": [chart.instant(point.at) for point in points],
        "y": [getattr(point, role) if point.judged else None for point in points],
        "connectgaps": False,
        "line": {"shape": "hv", "dash": "dot" if role == "bound" else "solid"},
        "customdata": [
            [_label(picture, point.at), point.turns, point.part, point.whole] for point in points
        ],
        "hovertemplate": f"%{{customdata[0]}}<br>{shown}: {counts}"
        # Not the name itself: what looks like a variable in it would be replaced.
        "<extra>%{fullData.name}</extra>",
    }


def _level(picture: Picture, value: float, role: str, name: str) -> Json:
    """A trace and no shape, so that the axis reaches to it."""
    said = amount(value, picture.unit)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{name} {said}",
        "meta": {"role": role},
        "legendgroup": role,
        "x": [chart.instant(picture.start), chart.instant(picture.end)],
        "y": [value, value],
        "line": {"dash": "dash", "width": 1},
        "hoverinfo": "skip",
    }


def _fired(picture: Picture, groups: Sequence[Group]) -> list[Json]:
    stretches = sorted(
        (stretch for group in groups for stretch in group.fired), key=lambda each: each.start
    )
    return [
        {
            "type": "rect",
            "name": "fired",
            "xref": "x",
            "yref": "paper",
            "x0": chart.instant(stretch.start),
            "x1": chart.instant(picture.end if stretch.end is None else stretch.end),
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": {"width": 0},
        }
        for stretch in stretches[:MAX_STRETCHES]
    ]


def _summary(picture: Picture, groups: Sequence[Group]) -> str:
    hidden = len(picture.groups) - len(groups)
    if not hidden:
        return picture.sentence
    more = chart.count(hidden, "more group is", "more groups are")
    return f"{picture.sentence} {more} not drawn."


def amount(value: float | None, unit: str) -> str:
    """``20 %``, ``1,200 ms`` or ``50,000 tokens``."""
    if value is None:
        return "unknown"
    return chart.percent(value) if unit == "ratio" else f"{value:,.0f} {unit}"


def _label(picture: Picture, at: int) -> str:
    moment = cut(at, at, zone=picture.zone, now=at)
    return moment.label(moment.items[0])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
