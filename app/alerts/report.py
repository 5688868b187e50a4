"""A backtest in words, as plain values, and as what its chart draws. Pure.

The page and the command line say the same of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from app.alerts import words
from app.alerts.backtest import Backtest, Firing
from app.alerts.groups import labels_of
from app.alerts.rules import Rule
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
