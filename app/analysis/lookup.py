"""Which entry of the catalogue tells of a row's evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.analysis.catalogue import AFTER_A_FAULT, LOST, REASONS, Advice
from app.analysis.parted import Parted, parted
from app.analysis.testimony import compared
from app.ledger.rows import TurnRow
from engine.model import DivergenceClass, Nature, Reason, is_metadata

_VOLATILE = (Nature.TIME, Nature.NUMBER, Nature.IDENTIFIER)

COMPARED = frozenset({Reason.PREFIX_MISMATCH, Reason.NON_INPUT_FIELDS_CHANGED})
"""Reasons that come of comparing two requests, and have evidence."""


def of_change(row: TurnRow) -> str | None:
    """Which entry of ``CHANGES`` tells of what the client's requests show to have changed."""
    found = parted(row)
    match compared(row):
        case Reason.NON_INPUT_FIELDS_CHANGED:
            return of_fields(details_of(row, found))
        case Reason.PREFIX_MISMATCH:
            name = of_history(found)
            told = name == "tool_definitions" and found.details
            return of_fields(found.details) if told else name
        case _:
            return None


def details_of(row: TurnRow, found: Parted) -> Sequence[Mapping[str, Any]]:
    """What is known of the changed fields; their names at least."""
    return found.details or [{"field": name} for name in row.changed_field_names]


def of_reason(reason: str, fallback: str | None) -> Advice | None:
    """For reasons without evidence; None where there is nothing to say."""
    if reason == Reason.CONNECTION_LOST:
        if fallback is not None and fallback.startswith("after_"):
            return AFTER_A_FAULT
        return LOST.get(fallback or "")
    return REASONS.get(reason)


def of_history(found: Parted) -> str | None:
    """Which entry of ``HISTORY`` tells of it."""
    match found.klass:
        case DivergenceClass.TRUNCATED_TAIL:
            return "rewound"
        case DivergenceClass.TRUNCATED_HEAD:
            return "window"
        case DivergenceClass.REPLACED:
            return _replaced(found)
        case DivergenceClass.REORDERED:
            kinds = (found.kind_before or "", found.kind_now or "")
            tools = all(kind.endswith(("_output", "_call")) for kind in kinds)
            return "outputs_reordered" if tools else "items_reordered"
        case DivergenceClass.REMOVED:
            return _removed(found)
        case DivergenceClass.INSERTED:
            return _inserted(found)
        case DivergenceClass.EDITED:
            return _edited(found)
        case _:
            return None


def _replaced(found: Parted) -> str:
    if found.gone and found.new:
        return "summarized_history" if found.gone > found.new else "replaced_item"
    return "branched"


def _removed(found: Parted) -> str:
    if found.kind == "reasoning":
        return "reasoning_dropped"
    if found.gone is not None and found.gone > 2:
        return "block_dropped"
    if found.kind == "message:assistant":
        return "answer_dropped"
    if found.is_output or found.is_call:
        return "tool_items_dropped"
    return "note_dropped" if (found.kind or "").startswith("message:") else "item_dropped"


def _inserted(found: Parted) -> str:
    kind = found.kind_now or found.kind or ""
    if kind.endswith("_output"):
        return "output_inserted"
    model_made = kind == "message:assistant" or not kind.startswith("message:")
    return "item_inserted" if model_made else "note_inserted"


def _edited(found: Parted) -> str:
    steps = (found.path or "").split("/")[1:]
    if steps[:1] in (["id"], ["call_id"]):
        return "ids_remade"
    if steps[:1] == ["encrypted_content"]:
        return "ciphertext_lost"
    if found.kind in ("additional_tools", "mcp_list_tools"):
        return "tool_definitions"
    if found.is_output:
        return _output(found, steps)
    if found.nature == Nature.REMOVED and len(steps) == 1 and _is_answered(found):
        return "field_dropped"
    if found.nature == Nature.UNICODE:
        return "unicode_normalized"
    if found.is_call:
        return "arguments_reordered" if found.nature == Nature.REORDERED else "call_changed"
    if found.is_instruction:
        return "instruction_volatile" if found.nature in _VOLATILE else "instruction"
    if found.nature == Nature.WHITESPACE:
        return "text_trimmed"
    if found.kind == "message:assistant":
        return "answer_edited"
    if (found.kind or "").startswith("message:"):
        place = "first_message" if found.index == 0 else "message"
        if found.nature in _VOLATILE:
            return f"{place}_volatile"
        return "first_message" if found.index == 0 else "message_edited"
    return "item_changed"


def _is_answered(found: Parted) -> bool:
    return found.is_call or found.kind in ("message:assistant", "reasoning", "compaction")


def _output(found: Parted, steps: list[str]) -> str:
    # A key that is visible and begins like metadata, at any depth: /output/_meta, /output/0/_meta.
    if any(map(is_metadata, steps[1:])):
        return "metadata_moved"
    if found.nature == Nature.RESERIALIZED:
        return "output_respelled"
    if found.nature == Nature.UNICODE:
        return "unicode_normalized"
    if found.nature == Nature.WHITESPACE:
        return "text_trimmed"
    if found.nature == Nature.SHORTENED:
        return "output_shortened"
    return "output_volatile" if found.nature in _VOLATILE else "output_changed"


_TELLING = frozenset(
    {"tools_reordered", "tool_volatile", "instructions_volatile", "instructions_trimmed"}
)
"""Entries that tell of a fault whatever else has changed."""


def of_fields(details: Sequence[Mapping[str, Any]]) -> str | None:
    """Which entry of ``FIELDS`` tells of all these details; None where there are none."""
    found = [of_field(detail) for detail in details]
    if telling := next((name for name in found if name in _TELLING), None):
        return telling
    several = len({str(detail.get("field")) for detail in details}) > 1
    return "several" if several else next(iter(found), None)


def of_field(detail: Mapping[str, Any]) -> str:
    """Which entry of ``FIELDS`` tells of one detail of a changed field."""
    change, nature = detail.get("change"), detail.get("nature")
    match detail.get("field"):
        case "tools":
            return _tools(change, nature)
        case "instructions":
            if nature in _VOLATILE:
                return "instructions_volatile"
            return "instructions_trimmed" if nature == Nature.WHITESPACE else "instructions"
        case "user" | "safety_identifier":
            return "identity"
        case "model" | "reasoning" | "prompt_cache_key" | "text" | "tool_choice" as name:
            return str(name)
        case _:
            return "field"


def _tools(change: Any, nature: Any) -> str:
    if change == "reordered":
        return "tools_reordered"
    if change in ("added", "removed"):
        return "tools_set"
    return "tool_volatile" if nature in _VOLATILE else "tool_changed"
