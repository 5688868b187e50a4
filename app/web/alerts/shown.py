"""Rules, deliveries and silences as the API shows them: plain values, times in ISO 8601."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.alerts import links, rules, words
from app.alerts.backtest import MAX_INSTANTS
from app.alerts.delivery_log import Delivery, Detail
from app.alerts.event_store import Event
from app.alerts.groups import GroupKey, labels_of
from app.alerts.receivers import Receiver
from app.alerts.records import Observation
from app.alerts.rules import Rule
from app.alerts.service import Watched
from app.alerts.signals import CATALOGUE
from app.alerts.silences import Silence, silenced
from app.alerts.state_store import GroupState
from app.alerts.states import MAX_GROUPS, State
from app.alerts.store import StoredRule
from app.ledger.rows import iso

Json = dict[str, Any]

WORST = (
    State.FIRING,
    State.RECOVERING,
    State.PENDING,
    State.ERROR,
    State.NO_DATA,
    State.INACTIVE,
    State.PAUSED,
)
"""Of several groups the first of these is the rule's."""
SIGNALS: list[Json] = [
    {
        "name": signal.value,
        "title": info.title,
        "unit": info.unit,
        "rises": info.rises,
        "part": info.part,
        "whole": info.whole,
        "weights": [weight.value for weight in info.weights],
        "confidences": [confidence.value for confidence in info.confidences],
    }
    for signal, info in CATALOGUE.items()
]
LIMITS: Json = {
    "groups": MAX_GROUPS,
    "windows_per_step": rules.WHOLE_WINDOWS,
    "window_seconds": rules.WEEK,
    "receivers": 20,
    "labels": 20,
    "backtest_evaluations": MAX_INSTANTS,
}


def time(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)


@dataclass(frozen=True, slots=True)
class _Of:
    """What the groups of a rule are shown by."""

    rule_id: str
    rule: Rule | None
    silences: Sequence[Silence]
    now: int


def rule(watched: Watched, silences: Sequence[Silence], now: int) -> Json:
    """A rule that this version cannot read is shown as it is stored, with what is wrong."""
    stored, groups = watched
    failure = stored.failure
    read = readable(stored)
    if read is None:
        failure = failure or "The rule cannot be read by this version."
    by = _Of(stored.id, read, silences, now)
    return {
        "id": stored.id,
        "origin": stored.origin,
        "version": stored.version,
        "created_at": iso(stored.created_at),
        "updated_at": iso(stored.updated_at),
        "evaluated_until": (
            None if stored.evaluated_until == stored.created_at else iso(stored.evaluated_until)
        ),
        "failure": None if failure is None else _PATH.sub("", failure),
        "state": _state(stored, read, groups).value,
        "definition": _raw(stored.definition) if read is None else read.as_dict(),
        "groups": [_group(by, key, group) for key, group in groups.items()],
    }


def readable(stored: StoredRule) -> Rule | None:
    """None whatever is wrong with what is stored: the list must show the other rules."""
    try:
        return stored.rule()
    except Exception:
        return None


_PATH = re.compile(r"\S*/")
"""Where the program lies is nobody's business."""


def _state(stored: StoredRule, read: Rule | None, groups: Mapping[GroupKey, GroupState]) -> State:
    if not stored.enabled:
        return State.PAUSED
    if read is None:
        return State.ERROR
    present = {group.memory.state for group in groups.values()}
    return next((state for state in WORST if state in present), State.NO_DATA)


def _raw(definition: str) -> Json:
    try:
        found = json.loads(definition)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _group(by: _Of, key: GroupKey, group: GroupState) -> Json:
    labels, memory = labels_of(key), group.memory
    return {
        "key": key,
        "labels": labels,
        "state": memory.state.value,
        "since": time(memory.since),
        "silenced": silenced(by.silences, by.rule_id, labels, by.now),
        "started_at": time(memory.started_at),
        "ended_at": time(memory.ended_at),
        "peak": memory.peak,
        "told": None if memory.told is None else memory.told.value,
        "reading": reading(by.rule, group.observation),
        "links": _links(by.rule, labels, group.observation),
    }


def reading(read: Rule | None, seen: Observation | None) -> Json | None:
    """``sentence`` is null where the rule that it speaks of is gone."""
    if seen is None:
        return None
    measure = seen.reading.measure
    return {
        "at": iso(seen.at),
        "value": seen.reading.value,
        "bound": seen.reading.bound,
        "part": measure.part,
        "whole": measure.whole,
        "turns": measure.turns,
        "unknown": measure.unknown,
        "rows": measure.rows,
        "lack": None if seen.reading.lack is None else seen.reading.lack.value,
        "sentence": None if read is None else words.reading_sentence(read, seen.reading),
        "window": {"from": iso(seen.window_start), "to": iso(seen.window_end)},
    }


def _links(read: Rule | None, labels: Mapping[str, str], seen: Observation | None) -> Json:
    """On this server, so that they work however it is reached."""
    if read is None or seen is None:
        return {"rows": None, "csv": None}
    rows = links.offending(read, labels, seen.window_start, seen.window_end)
    return {"rows": links.rows_link("", rows), "csv": links.csv_link("", rows)}


def event(each: Event) -> Json:
    seen = reading(None, each.observation)
    return {
        "id": each.id,
        "at": iso(each.at),
        "rule_id": each.rule_id,
        "rule": each.rule_name,
        "group": labels_of(each.group_key),
        "before": each.before.value,
        "after": each.after.value,
        "cause": each.cause.value,
        "sentence": each.sentence,
        "reading": None if seen is None else seen | {"sentence": each.sentence},
    }


def delivery(each: Delivery) -> Json:
    return {
        "id": each.id,
        "receiver": each.receiver_name,
        "rule_id": each.rule_id,
        "rule": each.rule_name,
        "group": labels_of(each.group_key),
        "told": each.told,
        "repeat": each.repeat,
        "test": each.test,
        "state": each.state.value,
        "attempts": each.attempts,
        "replays": each.replays,
        "created_at": iso(each.created_at),
        "next_attempt_at": time(each.next_attempt_at),
        "settled_at": time(each.settled_at),
        "outcome": each.outcome,
    }


def detail(each: Detail) -> Json:
    return delivery(each.delivery) | {
        "body": json.loads(each.body),
        "attempt_log": [
            {
                "attempt": entry.attempt,
                "started_at": iso(entry.started_at),
                "duration_ms": entry.duration_ms,
                "status": entry.status,
                "outcome": entry.outcome,
                "response": entry.response,
            }
            for entry in each.attempts
        ],
    }


def silence(each: Silence, now: int) -> Json:
    return {
        "id": each.id,
        "rule_id": each.rule_id,
        "matchers": dict(each.matchers),
        "starts_at": iso(each.starts_at),
        "ends_at": iso(each.ends_at),
        "comment": each.comment,
        "author": each.author,
        "created_at": iso(each.created_at),
        "active": each.starts_at <= now < each.ends_at,
    }


def receiver(each: Receiver, last: Delivery | None) -> Json:
    return {
        "id": each.id,
        "name": each.name,
        "origin": each.origin,
        "kind": each.kind.value,
        "shown": each.shown,
        "disabled": each.disabled,
        "signed": each.signed,
        "secrets": each.secrets,
        "version": each.version,
        "last_delivery": None if last is None else delivery(last),
    }
