"""A backtest in words, as plain values, and as what its chart draws. Pure.

The page and the command line say the same of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from app.alerts import words
from app.alerts.backtest import Backtest, Firing
from app.alerts.groups import labels_of
from app.alerts.rules import Rule, duration
from app.alerts.signals import CATALOGUE, Confidence, Lack
from app.charts.chart import count
from app.charts.signal import Group, Picture, Point, Stretch
from app.ledger.rows import iso

LACKS: Mapping[Lack, str] = {
    Lack.NO_ROWS: "no turn was recorded",
    Lack.NOTHING_COUNTS: "there were no {whole}",
    Lack.ALL_UNKNOWN: "what is needed of its turns is unknown",
    Lack.TOO_FEW: "there were fewer than {least} {whole}",
}


def lack(rule: Rule, why: Lack) -> str:
    """Why a window was not judged: ``there were fewer than 20 eligible turns``."""
    return LACKS[why].format(whole=CATALOGUE[rule.signal].whole, least=f"{rule.min_turns:,}")


def sentence(rule: Rule, found: Backtest) -> str:
    """How often it would have fired, and, where windows were not judged, why most were not."""
    lasting = words.span(found.last - found.first + rule.every * 1_000)
    told = f"in {lasting} ({count(found.evaluations, 'evaluation')})"
    number = len(found.firings)
    if number:
        times = {1: "once", 2: "twice"}.get(number, f"{number:,} times")
        open_ = sum(firing.ended_at is None for firing in found.firings)
        still = f"; {count(open_, 'alert still fires', 'alerts still fire')}" if open_ else ""
        return f"Would have fired {times} {told}{still}."
    return f"Would not have fired {told}.{_unjudged(rule, found)}"


def _unjudged(rule: Rule, found: Backtest) -> str:
    points = [point for series in found.series.values() for point in series]
    lacks = Counter(point.lack for point in points if point.lack is not None)
    if not points:
        return " There was no group to watch."
    if not lacks:
        return ""
    why = lack(rule, lacks.most_common(1)[0][0])
    unjudged = sum(lacks.values())
    if unjudged == len(points):
        return f" No window could be judged, mostly because {why}."
    return f" {count(unjudged, 'window')} could not be judged, mostly because {why}."


def text(rule: Rule, found: Backtest) -> Iterator[str]:
    """Lines for a terminal."""
    info = CATALOGUE[rule.signal]
    side = "above" if info.rises else "below"
    proven = ", proven" if rule.confidence is Confidence.WILSON else ""
    yield (
        f"{words.clean(rule.name)}: {info.title.lower()} {side} {words.threshold(rule)}{proven}, "
        f"over {duration(rule.window)} every {duration(rule.every)}, "
        f"from {count(rule.min_turns, 'turn')} on"
    )
    yield f"{words.window(found.first, found.last)}"
    yield ""
    yield sentence(rule, found)
    if not found.firings:
        return
    yield ""
    rows = [_HEAD, *(_row(rule, found, each) for each in found.firings)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()


_HEAD = ("started", "ended", "lasted", "worst", "group")


def _row(rule: Rule, found: Backtest, each: Firing) -> tuple[str, ...]:
    over = each.ended_at is not None
    return (
        words.moment(each.started_at),
        words.moment(each.ended_at or 0) if over else "still fires",
        words.span((each.ended_at or found.last) - each.started_at),
        "–" if each.peak is None else words.amount(rule.signal, each.peak, rule.threshold),
        words.label_text(labels_of(each.group)),
    )


def as_dict(rule: Rule, found: Backtest) -> dict[str, Any]:
    """What the API and ``--format json`` say alike."""
    return {
        "rule": {"id": rule.id, "name": rule.name, "definition": rule.as_dict()},
        "transitions": transitions(found),
        "firings": firings(found),
        "evaluations": found.evaluations,
        "sentence": sentence(rule, found),
    }


def transitions(found: Backtest) -> list[dict[str, Any]]:
    return [
        {
            "at": iso(each.at),
            "group": labels_of(key),
            "before": each.before.value,
            "after": each.after.value,
            "cause": each.cause.value,
        }
        for key, each in found.transitions
    ]


def firings(found: Backtest) -> list[dict[str, Any]]:
    return [_firing(each) for each in found.firings]


def _firing(each: Firing) -> dict[str, Any]:
    return {
        "group": labels_of(each.group),
        "started_at": iso(each.started_at),
        "ended_at": None if each.ended_at is None else iso(each.ended_at),
        "peak": each.peak,
    }


def picture(rule: Rule, found: Backtest, zone: ZoneInfo) -> Picture:
    info = CATALOGUE[rule.signal]
    return Picture(
        title=info.title,
        unit=info.unit,
        rises=info.rises,
        part=info.part,
        whole=info.whole,
        threshold=rule.threshold,
        recover=rule.recover,
        proven=rule.confidence is Confidence.WILSON,
        start=found.first,
        end=max(found.last, found.first + rule.every * 1_000),
        zone=zone,
        groups=[
            Group(
                words.label_text(labels_of(key)),
                [
                    Point(
                        point.at,
                        point.value,
                        point.bound,
                        point.part,
                        point.whole,
                        point.turns,
                        None if point.lack is None else lack(rule, point.lack),
                    )
                    for point in series
                ],
                [
                    Stretch(each.started_at, each.ended_at)
                    for each in found.firings
                    if each.group == key
                ],
            )
            for key, series in found.series.items()
        ],
        sentence=sentence(rule, found),
    )
