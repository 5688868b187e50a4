"""Items as the provider holds them, and what it demands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .errors import ApiError, invalid_type, invalid_value, missing_parameter
from .wire import Json, dumps

REQUIRED: dict[str, tuple[str, ...]] = {
    "message": ("role", "content"),
    "reasoning": ("summary",),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "tool_search_call": ("arguments",),
    "tool_search_output": ("tools",),
    "additional_tools": ("role", "tools"),
    "configuration_update": (),
    "compaction": ("encrypted_content",),
    "compaction_summary": ("encrypted_content",),
    "context_compaction": (),
    "compaction_trigger": (),
    "item_reference": ("id",),
    "file_search_call": ("id", "queries"),
    "web_search_call": (),
    "code_interpreter_call": ("id", "container_id"),
    "computer_call": ("call_id",),
    "computer_call_output": ("call_id", "output"),
    "image_generation_call": ("id",),
    "local_shell_call": ("action",),
    "local_shell_call_output": ("output",),
    "shell_call": ("call_id", "action"),
    "shell_call_output": ("call_id", "output"),
    "apply_patch_call": ("call_id", "operation"),
    "apply_patch_call_output": ("call_id", "status"),
    "mcp_list_tools": ("server_label", "tools"),
    "mcp_approval_request": ("server_label", "name", "arguments"),
    "mcp_approval_response": ("approval_request_id", "approve"),
    "mcp_call": ("server_label", "name", "arguments"),
    "program": ("call_id", "code"),
    "program_output": ("call_id", "result"),
    "agent_message": (),
}
"""Required fields of each input item. Ids are not among them: clients drop them, and it works."""

STRINGS = frozenset({"call_id", "name", "arguments", "id", "server_label", "encrypted_content"})
ID_PREFIXES = {"function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}
ROLES = ("user", "assistant", "system", "developer")
ANSWERED_CALLS = frozenset({"function_call", "custom_tool_call"})
"""Calls which must have an output in the transcript before the model may go on."""

# Not part of what the model is shown, hence not part of the cached prefix either.
_UNRENDERED = frozenset(
    {
        "id",
        "status",
        "annotations",
        "logprobs",
        "created_by",
        "metadata",
        "internal_chat_message_metadata_passthrough",
    }
)


@dataclass(frozen=True)
class Item:
    """One held item: the text that was received or sent, and its value."""

    text: str
    value: Json
    made: bool = False
    """Made by the model: sent as an output item."""
    echoed: bool = False
    """And then received again, as part of a client's history."""
    from_string: bool = False
    """The whole ``input`` was a string, so the spelling of the message is ours."""

    @cached_property
    def rendered(self) -> bytes:
        """What the model sees of it, as the prompt cache compares it."""
        return dumps(_rendered(self.value)).encode()

    @property
    def kind(self) -> str:
        return kind_of(self.value)


def output_item(value: Json) -> Item:
    return Item(dumps(value), value, made=True)


def kind_of(value: Json) -> str:
    """An item without ``type`` is a message if it has a role."""
    kind = value.get("type")
    if isinstance(kind, str):
        return kind
    if kind is None and "role" in value:
        return "message"
    if kind is None and set(value) == {"id"}:
        return "item_reference"
    return ""


def _rendered(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k: _rendered(v)
            for k, v in sorted(value.items())
            if k not in _UNRENDERED and v is not None
        }
    if isinstance(value, list):
        return [_rendered(v) for v in value]
    return value


def input_items(
    value: Any,
    texts: Sequence[str],
    known_kinds: frozenset[str],
    made_ids: AbstractSet[str] = frozenset(),
) -> list[Item]:
    """The request's ``input`` as items; a string is one user message. Raises ``ApiError``.

    ``made_ids``: ids of items that this provider has sent as output.
    """
    if value is None:
        return []
    if isinstance(value, str):
        content = [{"type": "input_text", "text": value}]
        message: Json = {"type": "message", "role": "user", "content": content}
        return [Item(dumps(message), message, from_string=True)]
    if not isinstance(value, list):
        raise invalid_type("input", "a string or an array of items")
    out = []
    for index, (element, text) in enumerate(zip(value, texts, strict=True)):
        check_item(element, f"input[{index}]", known_kinds)
        echoed = element.get("id") in made_ids
        out.append(Item(text, element, made=echoed, echoed=echoed))
    return out


def check_item(value: Any, where: str, known_kinds: frozenset[str]) -> None:
    """Raise ``ApiError`` unless the item has what its type requires.

    ``known_kinds`` are types beyond the documented ones that this provider itself has sent.
    """
    if not isinstance(value, dict):
        raise invalid_type(where, "an object")
    kind = kind_of(value)
    if kind in known_kinds and kind not in REQUIRED:
        return
    if not kind:
        raise missing_parameter(f"{where}.type")
    if kind not in REQUIRED:
        raise invalid_value(f"{where}.type", kind, ", ".join(f"'{k}'" for k in REQUIRED))
    for field in REQUIRED[kind]:
        if value.get(field) is None:
            raise missing_parameter(f"{where}.{field}")
        if field in STRINGS and kind != "tool_search_call" and not isinstance(value[field], str):
            raise invalid_type(f"{where}.{field}", "a string")
    identifier = value.get("id")
    if identifier is not None and not isinstance(identifier, str):
        raise invalid_type(f"{where}.id", "a string")
    prefix = ID_PREFIXES.get(kind)
    if prefix and identifier is not None and not identifier.startswith(prefix):
        raise ApiError(
            f"Invalid '{where}.id': '{identifier}'. Expected an ID that begins with '{prefix}'.",
            code="invalid_value",
            param=f"{where}.id",
        )
    if kind == "message":
        _check_message(value, where)


def _check_message(value: Json, where: str) -> None:
    role = value["role"]
    if role not in ROLES:
        raise invalid_value(f"{where}.role", role, ", ".join(f"'{r}'" for r in ROLES))
    content = value["content"]
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise invalid_type(f"{where}.content", "a string or an array of content parts")
    allowed = (
        ("output_text", "refusal")
        if role == "assistant"
        else ("input_text", "input_image", "input_file", "input_audio")
    )
    for index, part in enumerate(content):
        at = f"{where}.content[{index}]"
        if not isinstance(part, dict):
            raise invalid_type(at, "an object")
        if part.get("type") not in allowed:
            supported = ", ".join(f"'{k}'" for k in allowed)
            raise invalid_value(f"{at}.type", part.get("type"), supported)
        if part["type"] in ("input_text", "output_text") and not isinstance(part.get("text"), str):
            raise missing_parameter(f"{at}.text")


def resolve_references(
    items: Iterable[Item], lookup: Callable[[str], Item | None]
) -> tuple[Item, ...]:
    """Replace each ``item_reference`` by the stored item it names."""
    out = []
    for held in items:
        if held.kind != "item_reference":
            out.append(held)
            continue
        found = lookup(held.value["id"])
        if found is None:
            raise ApiError(
                f"Item with id '{held.value['id']}' not found. Items are not persisted when "
                "`store` is set to false.",
                status=404,
                param="input",
            )
        out.append(found)
    return tuple(out)


def check_transcript(items: Sequence[Item], *, generates: bool, require_outputs: bool) -> None:
    """Rules on the whole reconstructed transcript: unique ids, calls and outputs in pairs."""
    _check_unique_ids(items)
    calls: set[str] = set()
    answered: set[str] = set()
    for held in items:
        value = held.value
        if held.kind.endswith(("_call", "program")):
            calls.update(v for v in (value.get("call_id"), value.get("id")) if isinstance(v, str))
    for held in items:
        if not held.kind.endswith("_output"):
            continue
        value = held.value
        call_id = value.get("call_id") or value.get("id")
        if isinstance(call_id, str):
            answered.add(call_id)
        if held.kind in ("tool_search_output", "program_output"):
            continue
        if call_id not in calls:
            what = held.kind.removesuffix("_output").replace("_", " ")
            raise ApiError(
                f"No tool call found for {what} output with call_id {call_id}.", param="input"
            )
    if not (generates and require_outputs):
        return
    for held in items:
        if held.kind in ANSWERED_CALLS and held.value["call_id"] not in answered:
            what = "custom tool call" if held.kind == "custom_tool_call" else "function call"
            raise ApiError(
                f"No tool output found for {what} {held.value['call_id']}.", param="input"
            )


def _check_unique_ids(items: Sequence[Item]) -> None:
    seen: set[str] = set()
    for held in items:
        identifier = held.value.get("id")
        # The output of a local shell call bears the id of its call.
        if not isinstance(identifier, str) or held.kind == "local_shell_call_output":
            continue
        if identifier in seen:
            raise ApiError(
                f"Duplicate item found with id {identifier}. "
                "Remove duplicate items from your input and try again.",
                param="input",
            )
        seen.add(identifier)
