"""What is kept of the groups of rules, between two evaluations and for the page.

States change only in transactions that also move the rule on (``evaluated_until``) or edit it
(``version``): whoever has read a rule and its states and finds both unchanged when it writes, has
read states that still hold.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from app.alerts import records, tables
from app.alerts.groups import GroupKey
from app.alerts.records import Observation
from app.alerts.states import Memory

_table = tables.states
_VALUES = ("state", "since", "memory", "reading", "told_receivers")


@dataclass(frozen=True, slots=True)
class GroupState:
    memory: Memory = field(default_factory=Memory)
    observation: Observation | None = None
    """The last reading; None before the first evaluation."""
    told_receivers: tuple[str, ...] = ()
    """Ids of those who were told that it fires, and are to hear of its end."""


def load(connection: Connection, rule_id: str) -> dict[GroupKey, GroupState]:
    """The groups of a rule by key, ascending. Raises ``ValueError`` for what cannot be read."""
    query = select(_table).where(_table.c.rule_id == rule_id).order_by(_table.c.group_key)
    return {row["group_key"]: _read(row) for row in connection.execute(query).mappings()}


def load_all(connection: Connection) -> dict[str, dict[GroupKey, GroupState]]:
    """The groups of every rule that has some, by rule: for a page that shows them all.

    What cannot be read is left out; its rule has a ``failure`` that says so.
    """
    query = select(_table).order_by(_table.c.rule_id, _table.c.group_key)
    found: dict[str, dict[GroupKey, GroupState]] = {}
    for row in connection.execute(query).mappings():
        with contextlib.suppress(ValueError):
            found.setdefault(row["rule_id"], {})[row["group_key"]] = _read(row)
    return found


def save(
    connection: Connection,
    rule_id: str,
    before: Mapping[GroupKey, GroupState],
    after: Mapping[GroupKey, GroupState],
) -> None:
    """Make ``after`` of what ``load`` gave as ``before``."""
    gone = [{"_key": key} for key in before if key not in after]
    new = [(key, state) for key, state in after.items() if key not in before]
    changed = [
        (key, state) for key, state in after.items() if key in before and state != before[key]
    ]
    here = _table.c.rule_id == rule_id
    one = _table.c.group_key == bindparam("_key")
    if gone:
        connection.execute(delete(_table).where(here, one), gone)
    if changed:
        connection.execute(
            update(_table)
            .where(here, one)
            .values({name: bindparam(f"_{name}") for name in _VALUES}),
            [
                {"_key": key} | {f"_{name}": value for name, value in _write(state).items()}
                for key, state in changed
            ],
        )
    if new:
        connection.execute(
            insert(_table),
            [{"rule_id": rule_id, "group_key": key} | _write(state) for key, state in new],
        )


def observation_text(observation: Observation | None, **also: str) -> str | None:
    """As the columns ``reading`` hold it, with what else is to stand there."""
    if observation is None:
        return None
    values = records.reading_to_dict(
        observation.reading,
        at=observation.at,
        window_start=observation.window_start,
        window_end=observation.window_end,
    )
    return json.dumps(values | also, allow_nan=False)


def read_observation(text: str | None) -> Observation | None:
    """Raises ``ValueError`` for what ``observation_text`` did not write."""
    return None if text is None else records.reading_from_dict(json.loads(text))


def _write(state: GroupState) -> dict[str, Any]:
    told = json.dumps(state.told_receivers) if state.told_receivers else None
    return {
        "state": state.memory.state.value,
        "since": state.memory.since,
        "memory": json.dumps(records.memory_to_dict(state.memory), allow_nan=False),
        "reading": observation_text(state.observation),
        "told_receivers": told,
    }


def _read(row: Mapping[Any, Any]) -> GroupState:
    told = row["told_receivers"]
    return GroupState(
        records.memory_from_dict(json.loads(row["memory"])),
        read_observation(row["reading"]),
        () if told is None else tuple(json.loads(told)),
    )
