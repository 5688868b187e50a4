"""The alerts of a view, as charts mark them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Engine

from app.alerts import event_store
from app.alerts.groups import labels_of
from app.alerts.states import State
from app.charts.marks import Mark, Word
from app.ledger.filters import Filter

WORDS: Mapping[State, Word] = {State.FIRING: "fired", State.INACTIVE: "resolved"}
"""Any other state ends an alert without resolving it: paused, deleted, nothing to judge."""


def alert_marks(engine: Engine, view: Filter) -> list[Mark]:
    """Of all rules, but those of groups that the view leaves out, such as another model."""
    return [
        Mark(each.at, WORDS.get(each.after, "ended"), each.rule_name)
        for each in event_store.turnings(engine, view.start, view.end)
        if _shown(view, labels_of(each.group_key))
    ]


def _shown(view: Filter, labels: Mapping[str, str]) -> bool:
    return all(
        value in view.include.get(name, (value,)) and value not in view.exclude.get(name, ())
        for name, value in labels.items()
    )
