"""Sentences on which fields beside the input changed, and how (DESIGN 4.4, evidence)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.analysis.parted import parted
from app.ledger.rows import TurnRow
from engine.model import Nature

NAMED_AT_MOST = 3
"""Names in one sentence; the row holds them all."""

_VERBS = {"added": "was added", "removed": "was removed", "changed": "was changed"}
_FIELD_VERBS = {"added": "newly given", "removed": "no longer given", "changed": "changed"}
_ONLY: dict[str, str] = {
    Nature.TIME: "only a date or time differs",
    Nature.NUMBER: "only a number differs",
    Nature.IDENTIFIER: "only an identifier differs",
    Nature.WHITESPACE: "only white space differs",
    Nature.UNICODE: "only the Unicode form differs",
}


def fields_changed(row: TurnRow) -> str:
    """Which fields beside the input changed, and where the evidence tells, how."""
    return f"Sent in full: {what_changed(row)}."


def what_changed(row: TurnRow) -> str:
    """The same as a clause."""
    found = parted(row)
    also = "" if found.index is None else "; the history changed too"
    if told := _sentences(found.details):
        return f"{_list(told)}{also}"
    names = row.changed_field_names
    if not names:
        return f"a setting of the request beside its input changed{also}"
    return f"{_list(names)} changed{also}"


def _sentences(details: Sequence[Mapping[str, Any]]) -> list[str]:
    """One for each detail, but for tools that came or went in numbers: those are one together."""
    crowds = {change: _named(details, change) for change in ("added", "removed")}
    told: dict[str, None] = {}
    for detail in details:
        change = str(detail.get("change"))
        names = crowds.get(change, []) if _is_of_tools(detail) else []
        if len(names) < NAMED_AT_MOST:
            told[_detail(detail)] = None
        else:
            told[f"{len(names):,} tools were {change} ({_list(names)})"] = None
    return [text for text in told if text]


def _named(details: Sequence[Mapping[str, Any]], change: str) -> list[str]:
    return [
        detail["name"]
        for detail in details
        if _is_of_tools(detail) and detail.get("change") == change
    ]


def _is_of_tools(detail: Mapping[str, Any]) -> bool:
    return detail.get("field") == "tools" and isinstance(detail.get("name"), str)


def _detail(detail: Mapping[str, Any]) -> str:
    """``{"field": "tools", "change": "added", "name": "exec"}`` in words."""
    field, change = detail.get("field"), detail.get("change")
    left_out = detail.get("left_out")
    if isinstance(field, str) and isinstance(left_out, int):
        return f"{left_out:,} more of {field}"
    if not isinstance(field, str) or not isinstance(change, str):
        return ""
    name = detail.get("name")
    if isinstance(name, str):
        what = f"the tool {name}" if field == "tools" else f"{name} in {field}"
        if change == "reordered":
            return f"{what} changed its place"
        return f"{what} {_VERBS.get(change, change)}{_inside(detail)}"
    at = detail.get("at")
    if change == "reordered":
        from_ = f" from number {at + 1:,} on" if isinstance(at, int) else ""
        return f"{field} came in another order{from_}"
    path = detail.get("path")
    what = f"{field}{path}" if isinstance(path, str) else field
    if isinstance(detail.get("line"), int) or isinstance(detail.get("offset"), int):
        return f"{what} {_FIELD_VERBS.get(change, change)}{_where(detail)}"
    return f"{what} {_FIELD_VERBS.get(change, change)}{_values(detail)}"


def _inside(detail: Mapping[str, Any]) -> str:
    path = detail.get("path")
    if not isinstance(path, str):
        return ""
    return f" at {path}{_where(detail, from_='')}"


def _where(detail: Mapping[str, Any], *, from_: str = " from") -> str:
    """The line, or of a text of one line the character; with both values known, these."""
    if values := _values(detail):
        return values
    line, offset = detail.get("line"), detail.get("offset")
    nature = detail.get("nature")
    only = f" ({_ONLY[nature]})" if isinstance(nature, str) and nature in _ONLY else ""
    if not isinstance(line, int) and not isinstance(offset, int):
        return only
    places = [f"line {line:,}"] if isinstance(line, int) else []
    if isinstance(offset, int):
        places.append(f"character {offset + 1:,}")
    return f"{from_ or ','} {', '.join(places)}{only}"


def _values(detail: Mapping[str, Any]) -> str:
    """Old and new value, where the evidence holds them: they are words of the protocol."""
    before, now = detail.get("before"), detail.get("now")
    if before is not None and now is not None:
        return f" from {_word(before)} to {_word(now)}"
    if now is not None:
        return f" ({_word(now)})"
    return "" if before is None else f" (it was {_word(before)})"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list(words: Sequence[str]) -> str:
    if len(words) > NAMED_AT_MOST:
        more = len(words) - NAMED_AT_MOST
        return f"{', '.join(words[:NAMED_AT_MOST])} and {more} more"
    if len(words) > 1:
        return f"{', '.join(words[:-1])} and {words[-1]}"
    return words[0]
