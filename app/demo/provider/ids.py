"""Ids that look like the provider's and are the same in every run of the same seed."""

from __future__ import annotations

from hashlib import blake2b


class Ids:
    """Callable: ``ids("resp")`` → ``resp_…``. The seed is the only source of variety."""

    def __init__(self, seed: str = "") -> None:
        self._seed = seed
        self._next = 0

    def __call__(self, prefix: str) -> str:
        self._next += 1
        digest = blake2b(f"{self._seed}/{self._next}".encode(), digest_size=20).hexdigest()
        return f"{prefix}_{self._next:06x}{digest}"


PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "tool_search_call": "tsc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "computer_call": "cu",
    "image_generation_call": "ig",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "compaction": "cmp",
}


def item_prefix(kind: str) -> str:
    return PREFIXES.get(kind, "item")
