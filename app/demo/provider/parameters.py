"""The parameters of a request: which there are, and what they may be."""

from __future__ import annotations

from typing import Any

from .errors import ApiError, invalid_type, missing_parameter, unknown_parameter
from .flavours import Flavour
from .wire import Json

_CREATE = """
    access_programs background background_options client_metadata context_management conversation
    image include input instructions max_output_tokens max_tool_calls metadata model moderation
    parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
    prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options
    temperature text tool_choice tools top_logprobs top_p truncation user
"""
CREATE = frozenset(_CREATE.split())
"""Of ``POST /v1/responses``. ``client_metadata`` is undocumented; Codex sends it everywhere."""
FRAME = frozenset({"type", "generate", "stream_id"})
"""What a ``response.create`` frame may have beyond them."""
_COMPACT = """
    client_metadata include input instructions metadata model parallel_tool_calls
    previous_response_id prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
    service_tier text tool_choice tools user
"""
COMPACT = frozenset(_COMPACT.split())

_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "model": ((str,), "a string"),
    "instructions": ((str, list), "a string or an array"),
    "previous_response_id": ((str,), "a string"),
    "prompt_cache_key": ((str,), "a string"),
    "prompt_cache_options": ((dict,), "an object"),
    "prompt_cache_retention": ((str,), "a string"),
    "store": ((bool,), "a boolean"),
    "stream": ((bool,), "a boolean"),
    "background": ((bool,), "a boolean"),
    "generate": ((bool,), "a boolean"),
    "parallel_tool_calls": ((bool,), "a boolean"),
    "include": ((list,), "an array"),
    "tools": ((list,), "an array"),
    "reasoning": ((dict,), "an object"),
    "text": ((dict,), "an object"),
    "metadata": ((dict,), "an object"),
    "client_metadata": ((dict,), "an object"),
    "tool_choice": ((str, dict), "a string or an object"),
    "max_output_tokens": ((int,), "an integer"),
    "temperature": ((int, float), "a number"),
    "top_p": ((int, float), "a number"),
    "stream_id": ((str,), "a string"),
}
_STREAM_ID = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def check_parameters(body: Json, *, frame: bool, flavour: Flavour) -> None:
    """Raise ``ApiError`` for an unknown, ill-typed or forbidden parameter."""
    for name in body:
        if name not in CREATE and not (frame and name in FRAME):
            raise unknown_parameter(name)
    check_types(body)
    if frame:
        _check_frame(body, flavour)
    if not isinstance(body.get("model"), str) and body.get("prompt") is None:
        raise missing_parameter("model")
    if not flavour.stores and body.get("store") is not False:
        raise ApiError("Store must be set to false", param="store")
    if not frame and flavour.stream_only and body.get("stream") is not True:
        raise ApiError("Stream must be set to true", param="stream")
    if body.get("previous_response_id") is not None and body.get("conversation") is not None:
        raise ApiError(
            "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.",
            code="mutually_exclusive_parameters",
            param="previous_response_id",
        )
    if body.get("prompt_cache_options") is not None:
        if flavour.cache_options == "none":
            raise ApiError("Unsupported parameter: prompt_cache_options")
        if flavour.cache_options == "new_models" and not writes_are_reported(
            str(body.get("model"))
        ):
            raise unknown_parameter("prompt_cache_options")
    metadata = body.get("client_metadata")
    if metadata is not None and not all(isinstance(v, str) for v in metadata.values()):
        raise invalid_type("client_metadata", "a map of strings")


def check_types(body: Json) -> None:
    for name, value in body.items():
        if value is None or name not in _TYPES:
            continue
        types, expected = _TYPES[name]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise invalid_type(name, expected)
    for index, tool in enumerate(body.get("tools") or ()):
        if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
            raise missing_parameter(f"tools[{index}].type")


def _check_frame(body: Json, flavour: Flavour) -> None:
    if body.get("background"):
        raise ApiError("Background mode is not supported over WebSocket.", param="background")
    lane = body.get("stream_id")
    if lane is None:
        return
    if not flavour.lanes:
        raise unknown_parameter("stream_id")
    if not 1 <= len(lane) <= 256 or not set(lane) <= _STREAM_ID:
        raise ApiError(
            "Invalid 'stream_id': 1 to 256 characters of A-Z, a-z, 0-9, '_', '.', '-'.",
            code="invalid_stream_id",
            param="stream_id",
        )


def writes_are_reported(model: str) -> bool:
    """From GPT-5.6 on, usage tells how many tokens were written to the cache."""
    return model.startswith(("gpt-5.6", "gpt-6"))


def compaction_threshold(body: Json) -> int | None:
    """Tokens of input from which the server compacts by itself, if the request asks for it."""
    entries: Any = body.get("context_management")
    if not isinstance(entries, list):
        return None
    for entry in entries:
        if isinstance(entry, dict) and entry.get("type") == "compaction":
            threshold = entry.get("compact_threshold")
            return threshold if isinstance(threshold, int) else None
    return None
