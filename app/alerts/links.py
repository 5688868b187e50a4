"""The rows behind an alert as a filter, and the addresses in a message that lead to them.

Addresses begin with the service's own public address, without a slash at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

from app.alerts.rules import Rule
from app.alerts.signals import Signal
from app.alerts.states import OTHER
from app.ledger.conditions import SUCCEEDED
from app.ledger.filters import UNKNOWN, Filter
from app.ledger.summary import ERRORS
from engine.model import Kind, Mode, Reason

_INCREMENTAL = tuple(mode.value for mode in Mode if mode.incremental)


def offending(rule: Rule, labels: Mapping[str, str], start: int, end: int) -> Filter:
    """The rows of a group in a window (epoch ms) that a person who got an alert wants to see.

    - mismatch, break and error rate: exactly the turns in the numerator;
    - incremental rate: the others of its denominator, the turns that were not continued;
    - cached ratio, time to first token, missed tokens: all turns that could count.

    A weight of tokens counts less than these rows where their usage is unknown: the grammar of
    filters has no word for that. Nor has it one for the group ``other``, whose rows are those of
    no group that is watched by itself: its filter is that of the whole rule. A link cannot carry a
    label of nothing but blanks, which the grammar takes for none.
    """
    view = rule.view(max(start, 0), end)
    if not labels or set(labels.values()) != {OTHER}:
        for name, value in labels.items():
            view = _only(view, name, value)
    if rule.signal is Signal.ERROR_RATE:
        return _only(view, "status", *(status.value for status in ERRORS))
    view = _only(_only(view, "kind", Kind.GENERATION.value), "status", *SUCCEEDED)
    match rule.signal:
        case Signal.MISMATCH_RATE:
            view = _only(view, "reason", Reason.PREFIX_MISMATCH.value)
            return _without(_only(view, "eligible", "true"), "mode", UNKNOWN)
        case Signal.BREAK_RATE:
            return _without(_only(view, "eligible", "true"), "mode", *_INCREMENTAL, UNKNOWN)
        case Signal.INCREMENTAL_RATE:
            return _without(view, "mode", *_INCREMENTAL, UNKNOWN)
        case _:
            return view


def rows_link(base_url: str, view: Filter) -> str:
    """The page of these rows."""
    return f"{base_url}/requests?{view.to_query()}"


def csv_link(base_url: str, view: Filter) -> str:
    """These rows as CSV."""
    return f"{base_url}/api/requests.csv?{view.to_query()}"


def alert_link(base_url: str, rule_id: str) -> str:
    return f"{base_url}/alerts?{urlencode({'rule': rule_id})}"


def silence_link(base_url: str, rule_id: str, labels: Mapping[str, str]) -> str:
    """The form of a silence for this group of the rule; the labels are parameters of their
    names."""
    return f"{base_url}/alerts?{urlencode({'silence': rule_id, **labels})}"


def _only(view: Filter, name: str, *values: str) -> Filter:
    """The rows of the view that have one of these values as well."""
    asked = view.include.get(name)
    kept = values if asked is None else tuple(value for value in asked if value in values)
    if kept:
        return replace(view, include={**view.include, name: kept})
    # No row has two values. The grammar writes "none" as a value that is asked for and excluded.
    return _without(replace(view, include={**view.include, name: values}), name, *values)


def _without(view: Filter, name: str, *values: str) -> Filter:
    left_out = tuple(dict.fromkeys((*view.exclude.get(name, ()), *values)))
    return replace(view, exclude={**view.exclude, name: left_out})
