"""Sentences on where a request parts from what the provider holds (DESIGN 4.4, evidence)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.ledger.rows import TurnRow
from engine.model import DivergenceClass

NAMED_AT_MOST = 3
"""Names in one sentence; the row holds them all."""

_VERBS = {"added": "was added", "removed": "was removed", "changed": "was changed"}
_FIELD_VERBS = {"added": "newly given", "removed": "no longer given", "changed": "changed"}


def fields_changed(row: TurnRow) -> str:
    """Which fields beside the input changed, and where the evidence tells, how."""
    evidence = row.evidence_object or {}
    details = [text for text in map(_detail, evidence.get("field_details") or ()) if text]
    if details:
        return f"Sent in full: {_list(details)}."
    names = row.changed_field_names
    if not names:
        return "Sent in full: a setting of the request beside its input changed."
    also = ""
    if evidence.get("index") is not None or row.diverged_at is not None:
        also = "; the history changed too"
    return f"Sent in full: {_list(list(names))} changed{also}."


def prefix_mismatch(row: TurnRow) -> str:
    """Where the history stopped being what the provider holds."""
    evidence = row.evidence_object or {}
    index = row.diverged_at if row.diverged_at is not None else evidence.get("index")
    before, now = evidence.get("length_before"), evidence.get("length_now")
    if row.diverged_class == DivergenceClass.TRUNCATED_TAIL:
        return _shorter(before, now)
    if row.diverged_class == DivergenceClass.TRUNCATED_HEAD:
        return "Sent in full: the beginning of the history was dropped."
    if index is None:
        return "Sent in full: the history is no longer what the provider holds."
    kind = row.diverged_kind or evidence.get("kind_before") or evidence.get("kind_now")
    item = f"item {index + 1}" + (f" ({kind})" if kind else "")
    match row.diverged_class:
        case DivergenceClass.EDITED:
            return f"Sent in full: {item} was edited{_place(row, evidence)}."
        case DivergenceClass.INSERTED:
            return f"Sent in full: a new item was inserted before {item} of the history."
        case DivergenceClass.REMOVED:
            return f"Sent in full: {item} was removed from the history."
        case DivergenceClass.REORDERED:
            return f"Sent in full: from {item} on, the history is in another order."
        case DivergenceClass.REPLACED:
            return f"Sent in full: from {item} on, the history was replaced by another."
        case None:
            return f"Sent in full: {item} is not what the provider holds{_place(row, evidence)}."
        case other:
            return f"Sent in full: {item} differs ({other}){_place(row, evidence)}."


def _shorter(before: Any, now: Any) -> str:
    if isinstance(before, int) and isinstance(now, int) and before > now:
        less = " 1 item" if before - now == 1 else f" {before - now:,} items"
        return f"Sent in full: the history is{less} shorter than what the provider holds."
    return "Sent in full: the history is shorter than what the provider holds."


def _place(row: TurnRow, evidence: Mapping[str, Any]) -> str:
    path = row.diverged_path or evidence.get("path")
    if not path:
        return ""
    offset = evidence.get("offset")
    at = f", character {offset + 1:,}" if isinstance(offset, int) else ""
    was, is_now = evidence.get("value_length_before"), evidence.get("value_length_now")
    length = ""
    if isinstance(was, int) and isinstance(is_now, int) and was != is_now:
        unit = " characters" if at else ""
        length = f" ({was:,} → {is_now:,}{unit})"
    return f" at {path}{at}{length}"


def _detail(detail: Mapping[str, Any]) -> str:
    """``{"field": "tools", "change": "added", "name": "exec"}`` in words."""
    field = detail.get("field")
    change = detail.get("change")
    if not isinstance(field, str) or not isinstance(change, str):
        return ""
    name = detail.get("name")
    if isinstance(name, str):
        what = f"the tool {name}" if field == "tools" else f"{name} in {field}"
        if change == "reordered":
            return f"{what} changed its place"
        return f"{what} {_VERBS.get(change, change)}"
    if change == "reordered":
        return f"{field} came in another order"
    line = detail.get("line")
    where = f" from line {line}" if isinstance(line, int) else ""
    return f"{field} {_FIELD_VERBS.get(change, change)}{where}"


def _list(words: list[str]) -> str:
    if len(words) > NAMED_AT_MOST:
        more = len(words) - NAMED_AT_MOST
        return f"{', '.join(words[:NAMED_AT_MOST])} and {more} more"
    if len(words) > 1:
        return f"{', '.join(words[:-1])} and {words[-1]}"
    return words[0]
