"""The groups of a rule: their names, and which of them are watched on their own.

A group is a combination of values of the dimensions in ``group_by``. It is named by its labels as
canonical JSON, the *key*. A rule watches at most ``MAX_GROUPS`` of them, so that a dimension with
endless values cannot flood anyone: the rest are one group together, whose labels all say
``other``. Nothing that was counted is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from app.alerts.rules import Rule
from app.alerts.signals import Measure, total
from app.alerts.states import MAX_GROUPS, OTHER

GroupKey = str
ALONE: GroupKey = "{}"
"""The one group of a rule that does not group."""


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def key_of(labels: Mapping[str, str]) -> GroupKey:
    """One text per set of labels, whatever order they come in."""
    return _canonical(dict(labels))


def labels_of(key: GroupKey) -> dict[str, str]:
    """Raises ``ValueError`` for what ``key_of`` did not write."""
    labels = json.loads(key)
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise ValueError("a group's key is a JSON object of texts")
    return labels


def other_of(rule: Rule) -> GroupKey:
    """The key of the group of all that found no place. A value that is itself called ``other``
    belongs there too."""
    return key_of(dict.fromkeys(rule.group_by, OTHER))


def dedupe_key(rule_id: str, key: GroupKey) -> str:
    """What a receiver matches the messages of one alert by: the same when it fires and ends."""
    return hashlib.sha256(_canonical([rule_id, labels_of(key)]).encode()).hexdigest()


def check(rule: Rule, keys: Iterable[GroupKey]) -> None:
    """Raises ``ValueError`` where a key is of another grouping: its alerts have to be ended, and
    it to be forgotten, when the rule is edited."""
    wanted = frozenset(rule.group_by)
    for key in keys:
        if _dimensions(key) != wanted:
            raise ValueError(f"a group has other dimensions than {', '.join(wanted) or 'none'}")


@lru_cache(4_096)
def _dimensions(key: GroupKey) -> frozenset[str]:
    """Kept, for the same keys come with each of thousands of evaluations."""
    return frozenset(labels_of(key))


def place(
    tracked: Collection[GroupKey], present: Mapping[GroupKey, Measure], rule: Rule
) -> dict[GroupKey, Measure]:
    """The groups to evaluate, by key in ascending order: at most ``MAX_GROUPS``.

    Tracked groups keep their place, with or without rows. New ones join by their number of rows,
    most first, while there is room; the rest are added up as the group ``other``.
    """
    if not rule.group_by:
        return {ALONE: present.get(ALONE, Measure())}
    other = other_of(rule)
    placed = {key: present.get(key, Measure()) for key in tracked if key != other}
    waiting = [key for key in present if key not in placed and key != other]
    waiting.sort(key=lambda key: (-present[key].rows, key))
    room = max(0, MAX_GROUPS - 1 - len(placed))
    placed |= {key: present[key] for key in waiting[:room]}
    rest = [present[key] for key in waiting[room:]]
    if other in present:
        rest.append(present[other])
    if rest or other in tracked:
        placed[other] = total(rest)
    return dict(sorted(placed.items()))
