"""Sentences on where a request parts from what the provider holds (DESIGN 4.4, evidence): of one
turn, and of all breaks that share its fingerprint."""

from __future__ import annotations

from app.analysis.parted import Parted, parted
from app.ledger.rows import TurnRow
from engine.model import DivergenceClass, Nature

EDITS: dict[str, str] = {
    Nature.ADDED: "{item} has something new{place}",
    Nature.REMOVED: "{item} has lost what it had{place}",
    Nature.REORDERED: "{item} has its list in another order{place}",
    Nature.RESERIALIZED: "{item} has the same JSON in another spelling{place}",
    Nature.WHITESPACE: "{item} differs in white space only{place}",
    Nature.UNICODE: "{item} has the same text in another Unicode form{place}",
    Nature.TIME: "{item} has another date or time{place}",
    Nature.NUMBER: "{item} has another number{place}",
    Nature.IDENTIFIER: "{item} has another identifier{place}",
    Nature.SHORTENED: "{item} was shortened{place}",
    Nature.LENGTHENED: "{item} was lengthened{place}",
    Nature.REWRITTEN: "{item} was edited{place}",
    Nature.TYPE: "{item} has a value of another type{place}",
}
"""What is said of an edited item, by the nature of the change."""

_VOLATILE = "{item} has another date, number or identifier{place}"
_EDITED = "{item} was edited{place}"
ALIKE = EDITS | {
    Nature.TIME: _VOLATILE,
    Nature.NUMBER: _VOLATILE,
    Nature.IDENTIFIER: _VOLATILE,
    Nature.SHORTENED: _EDITED,
    Nature.LENGTHENED: _EDITED,
    Nature.TYPE: _EDITED,
}
"""The same without what one fingerprint does not tell apart."""


def where_parted(row: TurnRow) -> str:
    """Where the history stopped being what the provider holds, as a clause."""
    found = parted(row)
    more = "; more differs after it" if found.further else ""
    return f"{_said(found)}{more}"


def where_all_parted(row: TurnRow) -> str:
    """The same of all turns that have the fingerprint of this one: without places in the history,
    counts and lengths, which are another one's in each of them."""
    found = parted(row)
    match found.klass:
        case DivergenceClass.TRUNCATED_TAIL:
            return "the history is shorter than what the provider holds"
        case DivergenceClass.TRUNCATED_HEAD:
            return "the beginning of the history was dropped"
        case DivergenceClass.EDITED:
            said = ALIKE.get(found.nature or "", _EDITED)
            place = f" at {_shape(found.path)}" if found.path else ""
            return said.format(item=_earlier(found.kind), place=place)
        case DivergenceClass.INSERTED:
            return f"a new item{_bracketed(found.kind_now)} was inserted into the history"
        case DivergenceClass.REMOVED:
            return f"{_earlier(found.kind)} was removed from the history"
        case DivergenceClass.REORDERED:
            return "the history is in another order"
        case DivergenceClass.REPLACED:
            by = _bracketed(found.kind_now)
            return f"{_earlier(found.kind)} was replaced by another{by}"
        case _:
            return "the history is no longer what the provider holds"


def _said(found: Parted) -> str:
    if found.klass == DivergenceClass.TRUNCATED_TAIL:
        return _shorter(found)
    if found.klass == DivergenceClass.TRUNCATED_HEAD:
        return f"the beginning of the history was dropped{_count(found.gone)}"
    if found.index is None:
        return "the history is no longer what the provider holds"
    item = _item(found.index, found.kind)
    match found.klass:
        case DivergenceClass.EDITED:
            said = EDITS.get(found.nature or "", _EDITED)
            return said.format(item=item, place=_place(found))
        case DivergenceClass.INSERTED:
            return _inserted(found)
        case DivergenceClass.REMOVED:
            return _removed(item, found)
        case DivergenceClass.REORDERED:
            return f"from {item} on, the history is in another order{_count(found.gone)}"
        case DivergenceClass.REPLACED:
            return _replaced(item, found)
        case None:
            return f"{item} is not what the provider holds{_place(found)}"
        case other:
            return f"{item} differs ({other}){_place(found)}"


def _item(index: int, kind: str | None) -> str:
    return f"item {index + 1:,}{_bracketed(kind)}"


def _earlier(kind: str | None) -> str:
    return f"an earlier item{_bracketed(kind)}"


def _shape(path: str) -> str:
    return "/".join("*" if step.isdigit() else step for step in path.split("/"))


def _bracketed(kind: str | None) -> str:
    return f" ({kind})" if kind else ""


def _count(items: int | None) -> str:
    if items is None:
        return ""
    return " (1 item)" if items == 1 else f" ({items:,} items)"


def _shorter(found: Parted) -> str:
    before, now = found.length_before, found.length_now
    if before is not None and now is not None and before > now:
        less = " 1 item" if before - now == 1 else f" {before - now:,} items"
        return f"the history is{less} shorter than what the provider holds"
    return "the history is shorter than what the provider holds"


def _inserted(found: Parted) -> str:
    before = _item(found.index or 0, found.kind_before)
    kind = _bracketed(found.kind_now)
    if found.new is None or found.new == 1:
        return f"a new item{kind} was inserted before {before} of the history"
    return f"{found.new:,} new items{kind} were inserted before {before} of the history"


def _removed(item: str, found: Parted) -> str:
    if found.gone is None or found.gone == 1:
        return f"{item} was removed from the history"
    return f"{item} and what followed it ({found.gone:,} items) were removed from the history"


def _replaced(item: str, found: Parted) -> str:
    if found.gone and found.new:
        if found.gone == found.new == 1:
            return f"{item} was replaced by another ({found.kind_now or 'unknown'})"
        gone = "1 item was" if found.gone == 1 else f"{found.gone:,} items were"
        return f"from {item} on, {gone} replaced by {found.new:,}"
    return f"from {item} on, the history was replaced by another"


def _place(found: Parted) -> str:
    if not found.path:
        return ""
    line = "" if found.line is None else f", line {found.line:,}"
    at = "" if found.offset is None else f", character {found.offset + 1:,}"
    was, now = found.value_before, found.value_now
    length = ""
    if was is not None and now is not None and was != now:
        unit = " characters" if at else ""
        length = f" ({was:,} → {now:,}{unit})"
    return f" at {found.path}{line}{at}{length}"
