"""The signed body: ``{type, timestamp, data}`` (docs/alerts.md, "The signed message").

Pure. ``data`` grows by new fields only, as long as ``schema_version`` stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.alerts.fitting import Room, number
from app.alerts.message import Message, lines, title
from app.alerts.signals import CATALOGUE
from app.alerts.words import clean
from app.ledger.rows import iso

SCHEMA_VERSION = 1
_CAUSES, _FINGERPRINTS, _SAMPLES = 3, 3, 5
_ID = 200
"""Characters of an id."""


def build(message: Message, room: Room) -> dict[str, Any]:
    return {
        "type": message.type,
        "timestamp": iso(message.at),
        "data": {"schema_version": SCHEMA_VERSION, **_data(message, room)},
    }


def _data(message: Message, room: Room) -> dict[str, Any]:
    rule = message.rule
    return {
        "alert_id": message.alert_id,
        "dedupe_key": message.dedupe_key,
        "test": message.test,
        "title": room.line(title(message)),
        "text": room.lines(lines(message)),
        "rule": {
            "id": rule.id,
            "name": room.line(rule.name),
            "description": room.line(rule.description),
            "owner": room.line(rule.owner),
        },
        "state": message.told.value,
        "previous_state": message.before.value,
        "severity": rule.severity.value,
        "labels": {name: room.line(value) for name, value in rule.labels.items()},
        "group": {name: room.line(value) for name, value in message.labels.items()},
        "signal": rule.signal.value,
        "weight": rule.weight.value,
        "confidence": rule.confidence.value,
        "unit": CATALOGUE[rule.signal].unit,
        "threshold": number(rule.threshold),
        "recover": number(rule.recover),
        **_measured(message),
        "window": {"from": iso(message.start), "to": iso(message.end)},
        "started_at": _time(message.started_at),
        "ended_at": _time(message.ended_at),
        "duration_ms": message.duration_ms,
        "peak": number(message.peak),
        "cause": None if message.cause is None else message.cause.value,
        "repeat": message.repeat,
        **_details(message, room),
        "links": {
            "alert": room.url(message.links.alert),
            "rows": room.url(message.links.rows),
            "csv": room.url(message.links.csv),
            "silence": room.url(message.links.silence),
        },
        "runbook_url": room.url(rule.runbook_url),
    }


def _measured(message: Message) -> dict[str, Any]:
    """``turns`` are those that the value rests on; ``rows`` all that the rule's filter selects."""
    reading = message.reading
    if reading is None:
        names = ("value", "bound", "numerator", "denominator", "turns", "unknown", "rows", "lack")
        return dict.fromkeys(names)
    measure = reading.measure
    unit = CATALOGUE[message.rule.signal].unit
    return {
        "value": number(reading.value),
        "bound": number(reading.bound),
        "numerator": None if unit == "ms" else measure.part,
        "denominator": measure.whole if unit == "ratio" else None,
        "turns": measure.turns,
        "unknown": measure.unknown,
        "rows": measure.rows,
        "lack": None if reading.lack is None else reading.lack.value,
    }


def _details(message: Message, room: Room) -> dict[str, Any]:
    details = message.details
    if details is None:
        return {"top_causes": [], "top_fingerprints": [], "sample_request_ids": []}
    return {
        "top_causes": [
            {
                "sentence": room.line(cause.sentence),
                "reason": None if cause.reason is None else room.line(cause.reason),
                "fingerprint": next(iter(_ids([cause.fingerprint or ""], 1)), "") or None,
                "turns": cause.turns,
            }
            for cause in details.top_causes[:_CAUSES]
        ],
        "top_fingerprints": _ids(details.top_fingerprints, _FINGERPRINTS),
        "sample_request_ids": _ids(details.sample_turn_ids, _SAMPLES),
    }


def _ids(given: Sequence[str], most: int) -> list[str]:
    """Whole or not at all: half an id names nothing."""
    return [clean(each) for each in given[:most] if len(each) <= _ID]


def _time(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)
