"""The body of an Alertmanager webhook, version 4, which many receivers accept. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from app.alerts.fitting import Room
from app.alerts.message import Message, lines, title
from app.alerts.states import Told
from app.alerts.words import clean, cut
from app.ledger.rows import iso

NOT_ENDED = "0001-01-01T00:00:00Z"
"""``endsAt`` of what still fires."""
_LABELS_BYTES = 5_000
"""They are sent twice; the rest of the body has the rest of its limit."""
_LABEL_LENGTHS = (1_000, 400, 200, 100, 50, 20)


def build(message: Message, room: Room, receiver_name: str) -> dict[str, Any]:
    labels = _labels(message)
    annotations = _annotations(message, room)
    resolved = message.told is Told.RESOLVED
    status = "resolved" if resolved else "firing"
    started = message.at if message.started_at is None else message.started_at
    ended = message.at if message.ended_at is None else message.ended_at
    fingerprint = _fingerprint(message)
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alert="{fingerprint}"}}',
        "truncatedAlerts": 0,
        "status": status,
        "receiver": room.line(receiver_name),
        "groupLabels": {"alertname": labels["alertname"]},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": room.url(message.links.alert.partition("?")[0]) or "",
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": iso(started),
                "endsAt": iso(ended) if resolved else NOT_ENDED,
                "generatorURL": room.url(message.links.rows) or "",
                "fingerprint": fingerprint,
            }
        ],
    }


def _fingerprint(message: Message) -> str:
    """16 hex digits. Another one for a test, so that its ``resolved`` ends no real alert."""
    named = f"{message.dedupe_key}/test" if message.test else message.dedupe_key
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _labels(message: Message) -> dict[str, str]:
    """The same for all that is told of one alert: receivers recognise it by them.

    So what they are cut to depends on nothing else of the message.
    """
    for most in _LABEL_LENGTHS:
        labels = _labels_within(message, most)
        if len(json.dumps(labels, ensure_ascii=False).encode()) < _LABELS_BYTES:
            break
    return labels


def _labels_within(message: Message, most: int) -> dict[str, str]:
    """A label whose name is taken is kept as ``exported_NAME``, as Prometheus does."""
    rule = message.rule
    labels = {
        "alertname": cut(clean(rule.name), most),
        "severity": rule.severity.value,
        "signal": rule.signal.value,
    }
    if message.test:
        labels["test"] = "true"
    for given in (message.labels, rule.labels):
        for name, value in given.items():
            valid = label_name(name)
            while valid in labels:
                valid = f"exported_{valid}"
            labels[valid] = cut(clean(value), most)
    return labels


def label_name(name: str) -> str:
    """As Prometheus allows it: letters, digits and ``_``, no digit first, no ``__`` first."""
    valid = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return re.sub(r"^(?=\d)|^_{2,}", "_", valid) or "_"


def _annotations(message: Message, room: Room) -> dict[str, str]:
    links = message.links
    found = {
        "summary": room.line(title(message)),
        "description": room.lines(lines(message)),
        "runbook_url": room.url(message.rule.runbook_url),
        "alert": room.url(links.alert),
        "rows": room.url(links.rows),
        "csv": room.url(links.csv),
        "silence": room.url(links.silence),
    }
    return {name: text for name, text in found.items() if text}
