"""One message of an alert, whoever receives it, and its plain words. Pure.

What a receiver gets is made of it by ``payloads``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.alerts import words
from app.alerts.rules import Rule
from app.alerts.signals import Reading
from app.alerts.states import OTHER, Cause, Labels, State, Told
from app.charts.chart import count

if TYPE_CHECKING:
    from app.alerts.causes import Details

_TITLE_LABEL = 60
"""Characters of a label's value in a title; the lines have more of it."""


@dataclass(frozen=True, slots=True)
class Links:
    """Absolute URLs."""

    alert: str
    rows: str
    """The rows that are counted against the rule; of ``no_data`` those that are missed."""
    csv: str
    silence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Times are epoch milliseconds."""

    told: Told
    before: State
    """Of the group, before the evaluation that this tells of."""
    now: State
    rule: Rule
    labels: Mapping[str, str]
    """Of the group; empty for a rule that does not group."""
    reading: Reading | None
    """Of the window; None where nothing was evaluated: the rule was deleted, or this is a test."""
    start: int
    """The window is ``[start, end)`` by ``recorded_at``."""
    end: int
    started_at: int | None
    """When the alert began to fire."""
    ended_at: int | None
    peak: float | None
    """The worst value since it fires."""
    cause: Cause | None
    repeat: int = 0
    """0: told for the first time; n: the n-th reminder."""
    absence: bool = False
    """The alert fires, or fired, because there were no rows."""
    details: Details | None
    links: Links
    dedupe_key: str
    test: bool = False
    at: int
    """When it is told."""

    @property
    def type(self) -> str:
        return f"cache.alert.{'test' if self.test else self.told.value}"

    @property
    def alert_id(self) -> str:
        """The same for everything told of one alert, and another one when it fires again."""
        named = f"{self.dedupe_key}/{self.started_at}"
        return hashlib.sha256(named.encode()).hexdigest()[:32]

    @property
    def duration_ms(self) -> int | None:
        """How long it fired; None while it does."""
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0, self.ended_at - self.started_at)


def title(message: Message) -> str:
    """``[TEST] Still firing (reminder 2): Mismatches (model=gpt-6-sol)``, in one line."""
    match message.told:
        case Told.RESOLVED:
            state = "Resolved"
        case Told.NO_DATA:
            state = "No data"
        case _:
            state = "Firing"
    if message.repeat:
        state = f"Still {state[0].lower()}{state[1:]} (reminder {message.repeat})"
    shown = words.label_text(message.labels, _TITLE_LABEL)
    group = f" ({shown})" if shown else ""
    mark = "[TEST] " if message.test else ""
    return f"{mark}{state}: {words.clean(message.rule.name)}{group}"


def lines(message: Message) -> list[str]:
    """Value, counts, window, since when, causes: a sentence or two per line, without links."""
    said = []
    if message.test:
        said.append(f"[TEST] This is a test of “{message.told.value}”: nothing has happened.")
    said.append(_measured(message))
    if message.labels:
        said.append(f"Group: {words.label_text(message.labels)}.{_others(message.labels)}")
    if message.told is not Told.NO_DATA and message.reading is not None:
        said.append(f"Window: {words.window(message.start, message.end)}, by time of recording.")
    said.append(_course(message))
    said.append(words.clean(message.rule.description))
    said += cause_lines(message)
    return [line for line in said if line]


def _others(labels: Labels) -> str:
    """No filter names the rows of those that have no group of their own."""
    if set(labels.values()) != {OTHER}:
        return ""
    return " These have no group of their own; causes and links are of all groups."


def _measured(message: Message) -> str:
    if message.told is Told.NO_DATA:
        span = words.window(message.start, message.end)
        return f"No turn was recorded that this rule watches, from {span}."
    if message.reading is None:
        return ""
    return words.reading_sentence(message.rule, message.reading)


def _course(message: Message) -> str:
    """Since when, for how long, how bad, and why it ended."""
    started = message.started_at
    if message.told is not Told.RESOLVED:
        if started is None:
            return ""
        lasting = message.at - started
        ago = f", for {words.span(lasting)}" if lasting >= 1_000 else ""
        return f"Firing since {words.moment(started)}{ago}.{_peak(message) if ago else ''}"
    why = words.ending(message.rule, message.cause, absence=message.absence)
    if started is None or message.ended_at is None:
        return why
    told_later = message.at - message.ended_at
    late = f" Told {words.span(told_later)} later." if told_later >= 1_000 else ""
    span = words.window(started, message.ended_at)
    lasted = words.span(message.ended_at - started)
    return f"{why} Fired from {span}, {lasted}.{_peak(message)}{late}"


def _peak(message: Message) -> str:
    if message.peak is None:
        return ""
    return f" Worst value: {words.amount(message.rule.signal, message.peak)}."


def cause_lines(message: Message) -> list[str]:
    """The most frequent causes among the rows that count against the rule."""
    if message.details is None or not message.details.top_causes:
        return []
    told = [
        f"- {words.clean(cause.sentence)} ({count(cause.turns, 'turn')})"
        for cause in message.details.top_causes
    ]
    return ["Top causes:" if len(told) > 1 else "Top cause:", *told]


def link_pairs(message: Message) -> list[tuple[str, str]]:
    """Titles and URLs of what a reader may want to open."""
    pairs = [
        ("Alert", message.links.alert),
        ("Rows", message.links.rows),
        ("Rows as CSV", message.links.csv),
        ("Silence it", message.links.silence if message.told is not Told.RESOLVED else ""),
        ("Runbook", message.rule.runbook_url),
    ]
    return [(name, url) for name, url in pairs if url]
