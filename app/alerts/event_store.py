"""The history of alerts: every transition is a row, which outlives its rule and never changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, and_, insert, or_, select, tuple_

from app.alerts import records, state_store, tables, words
from app.alerts.groups import GroupKey
from app.alerts.records import Observation
from app.alerts.rules import Rule
from app.alerts.states import Cause, State, Transition
from app.errors import AppError
from app.ledger import cursors

_table = tables.events
MOST = 500
"""Events of one page."""


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    at: int
    """Epoch milliseconds."""
    rule_id: str
    rule_name: str
    """As it was called then."""
    group_key: GroupKey
    before: State
    after: State
    cause: Cause
    observation: Observation | None
    """The reading that led to it; None of an edit, a pause, a deletion and a failure."""
    sentence: str | None = None
    """The reading in words, by the rule as it was then: it may watch something else by now."""


@dataclass(frozen=True, slots=True)
class EventPage:
    events: list[Event]
    next_cursor: str | None
    """None on the last page."""


def add(
    connection: Connection,
    rule_id: str,
    rule_name: str,
    happened: Iterable[tuple[GroupKey, Transition, Observation | None]],
    rule: Rule | None = None,
) -> None:
    """In the order given, which is that of their ids. ``rule`` is what readings were judged by."""
    values = [
        {
            "rule_id": rule_id,
            "rule_name": rule_name,
            "group_key": key,
            "at": transition.at,
            "before": transition.before.value,
            "after": transition.after.value,
            "cause": transition.cause.value,
            "reading": _reading_text(observation, rule),
        }
        for key, transition, observation in happened
    ]
    if values:
        connection.execute(insert(_table), values)


def _reading_text(observation: Observation | None, rule: Rule | None) -> str | None:
    if observation is None or rule is None:
        return state_store.observation_text(observation)
    sentence = words.reading_sentence(rule, observation.reading)
    return state_store.observation_text(observation, sentence=sentence)


def _read_reading(text: str | None) -> tuple[Observation | None, str | None]:
    if text is None:
        return None, None
    values = json.loads(text)
    sentence = values.pop("sentence", None)
    return records.reading_from_dict(values), sentence


@dataclass(frozen=True, slots=True)
class Turning:
    """When an alert began or ceased to fire."""

    at: int
    """Epoch milliseconds."""
    rule_name: str
    group_key: GroupKey
    after: State


_FIRES = (State.FIRING.value, State.RECOVERING.value)
# An alert whose evaluation fails goes on as it was.
_GOES_ON = (*_FIRES, State.ERROR.value)


def turnings(engine: Engine, start: int, end: int) -> list[Turning]:
    """Oldest first, of ``[start, end)``; the newest ``MOST``."""
    begins = and_(_table.c.after == State.FIRING.value, _table.c.before.not_in(_GOES_ON))
    ceases = and_(_table.c.before.in_(_FIRES), _table.c.after.not_in(_GOES_ON))
    query = (
        select(_table.c.at, _table.c.rule_name, _table.c.group_key, _table.c.after)
        .where(_table.c.at >= start, _table.c.at < end, or_(begins, ceases))
        .order_by(_table.c.at.desc(), _table.c.id.desc())
        .limit(MOST)
    )
    with engine.connect() as connection:
        rows = connection.execute(query).all()
    return [
        Turning(row.at, row.rule_name, row.group_key, State(row.after)) for row in reversed(rows)
    ]


def page(
    engine: Engine, *, rule_id: str | None = None, limit: int = 50, cursor: str | None = None
) -> EventPage:
    """Newest first; ``cursor`` is the ``next_cursor`` of the page before.

    Raises ``AppError`` (``bad_cursor``, ``bad_limit``).
    """
    if not 1 <= limit <= MOST:
        raise AppError("bad_limit", f"limit must be a whole number from 1 to {MOST}.")
    place = tuple_(_table.c.at, _table.c.id)
    query = select(_table).order_by(_table.c.at.desc(), _table.c.id.desc()).limit(limit + 1)
    if rule_id is not None:
        query = query.where(_table.c.rule_id == rule_id)
    if cursor is not None:
        query = query.where(place < tuple_(*cursors.read(cursor, 2)))
    with engine.connect() as connection:
        rows = connection.execute(query).mappings().all()
    readings = [_read_reading(row["reading"]) for row in rows[:limit]]
    events = [
        Event(
            id=row["id"],
            at=row["at"],
            rule_id=row["rule_id"],
            rule_name=row["rule_name"],
            group_key=row["group_key"],
            before=State(row["before"]),
            after=State(row["after"]),
            cause=Cause(row["cause"]),
            observation=observation,
            sentence=sentence,
        )
        for row, (observation, sentence) in zip(rows, readings, strict=False)
    ]
    last = events[-1] if len(rows) > limit else None
    return EventPage(events, None if last is None else cursors.write(last.at, last.id))
