"""The default model: a deterministic agent that does what the last user message says.

- ``run CMD`` (or ``run CMD N times``): that many calls of a tool that runs commands, one after
  another, or all at once with ``in parallel``; then an answer. The tool is chosen from those
  offered, at the top level or in ``additional_tools`` items; Codex's are known by name.
- ``call TOOL`` / ``use TOOL`` (``N times``, ``in parallel``): the same for any tool by name, with
  arguments made up from its schema.
- ``spawn an agent: TEXT``: Codex's ``spawn_agent``.
- ``refuse``: a refusal. ``in N words``: the length of the answer.
- anything else: an answer.

A reasoning item leads every reply of a reasoning model.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from .items import kind_of
from .replies import Asked, Reply, custom_tool_call, function_call, message, reasoning, refusal
from .wire import Json

_SENTENCE = (
    "the build passes now because each module reads its settings once and keeps them while a "
    "request is served so that two readers agree on what they saw even when the file changes and "
    "nothing else in the tree depends on the old order of calls which the tests confirm"
)
WORDS = tuple(_SENTENCE.split())
RUNNERS = ("exec_command", "shell", "bash", "local_shell", "exec")
DEFAULT_LENGTH = 24

_COMMAND = re.compile(r"\brun[ :]+`?(?P<what>[^`\n]+)", re.IGNORECASE)
_CALL = re.compile(r"\b(?:call|use)[ :]+(?:the )?`?(?P<what>[\w.-]+)", re.IGNORECASE)
_SPAWN = re.compile(r"\bspawn (?:an? |one )?(?:sub-?)?agent[s]?:? *(?P<what>[^\n]+)", re.IGNORECASE)
_TIMES = re.compile(r" (?P<n>\d+) times\b", re.IGNORECASE)
_PARALLEL = re.compile(r" in parallel\b", re.IGNORECASE)
_LENGTH = re.compile(r"\bin (\d+) words\b", re.IGNORECASE)


class Agent:
    """A ``Responder``. Depends on nothing but the request."""

    def __call__(self, asked: Asked, /) -> Reply:
        text, since = last_user_message(asked.transcript)
        done = sum(1 for item in since if kind_of(item).endswith("_call"))
        digest = blake2b(f"{text}|{len(asked.transcript)}".encode(errors="replace")).digest()
        out: list[Json] = list(_thought(asked, digest))
        calls = list(self._calls(asked, text, done))
        if calls:
            if done == 0:
                out.append(message(f"I will start with {_words(digest, 6)}.", phase="commentary"))
            return Reply((*out, *calls))
        if re.search(r"\brefuse\b", text, re.IGNORECASE):
            return Reply((*out, refusal("I can't help with that.")))
        wanted = _LENGTH.search(text)
        length = int(wanted.group(1)) if wanted else DEFAULT_LENGTH
        answer = f"Done: {_words(digest, length)}."
        return Reply((*out, message(answer, phase="final_answer")))

    def _calls(self, asked: Asked, text: str, done: int) -> Iterator[Json]:
        tools = offered_tools(asked)
        if asked.body.get("tool_choice") == "none" or not tools:
            return
        times = _TIMES.search(text)
        parallel = _PARALLEL.search(text) is not None
        plain = _PARALLEL.sub("", _TIMES.sub("", text))
        wanted = int(times.group("n")) if times else 1
        if done >= wanted:
            return
        count = wanted if parallel and asked.body.get("parallel_tool_calls") is not False else 1
        if match := _SPAWN.search(plain):
            name, argument = "spawn_agent", match.group("what").strip()
        elif match := _COMMAND.search(plain):
            name = next((n for n in RUNNERS if n in tools), next(iter(tools)))
            argument = match.group("what").strip()
        elif (match := _CALL.search(plain)) and match.group("what") in tools:
            name, argument = match.group("what"), ""
        elif asked.body.get("tool_choice") == "required" and done == 0:
            name, argument = next(iter(tools)), ""
        else:
            return
        if name not in tools:
            return
        for _ in range(count):
            yield _call(tools[name], name, argument, asked.new_id("call"))


def last_user_message(transcript: tuple[Json, ...]) -> tuple[str, tuple[Json, ...]]:
    """Its text, and the items that came after it."""
    for index in range(len(transcript) - 1, -1, -1):
        item = transcript[index]
        if kind_of(item) == "message" and item.get("role") == "user":
            return _content_text(item.get("content")), transcript[index + 1 :]
    return "", transcript


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(p["text"] for p in parts if isinstance(p.get("text"), str))


def offered_tools(asked: Asked) -> dict[str, Json]:
    """Callable tools by name, each with ``namespace`` where it stands in one."""
    out: dict[str, Json] = {}
    lists = [asked.body.get("tools") or []]
    lists += [i["tools"] for i in asked.transcript if kind_of(i) == "additional_tools"]
    for tools in lists:
        for tool in tools:
            _add_tool(out, tool)
    return out


def _add_tool(out: dict[str, Json], tool: Any, namespace: str | None = None) -> None:
    if not isinstance(tool, dict):
        return
    kind = tool.get("type")
    if kind == "namespace":
        name = tool.get("name")
        for inner in tool.get("tools") or ():
            # "functions" is the name of having no namespace.
            _add_tool(out, inner, None if name == "functions" else name)
    elif kind in ("function", "custom") and isinstance(tool.get("name"), str):
        out.setdefault(tool["name"], {**tool, "namespace": namespace})


def _call(tool: Json, name: str, argument: str, call_id: str) -> Json:
    if tool.get("type") == "custom":
        return custom_tool_call(name, _script(name, argument), call_id)
    more = {"namespace": tool["namespace"]} if tool.get("namespace") else {}
    return function_call(name, _arguments(tool, name, argument), call_id, **more)


def _script(name: str, argument: str) -> str:
    """Codex's code mode takes JavaScript."""
    if name == "exec":
        return f"text({json.dumps(argument or 'hi')});"
    return argument or "hi"


def _arguments(tool: Json, name: str, argument: str) -> str:
    if name == "exec_command":
        return json.dumps({"cmd": argument}, separators=(",", ":"))
    if name == "spawn_agent":
        return json.dumps({"message": argument})
    schema = tool.get("parameters") or {}
    values = _sample(schema, "arguments", argument)
    return json.dumps(values if isinstance(values, dict) else {}, ensure_ascii=False)


def _sample(schema: Any, name: str, argument: str) -> Any:
    """A value that the schema allows; the argument stands where a command is expected."""
    if not isinstance(schema, dict):
        return argument
    if schema.get("enum"):
        return schema["enum"][0]
    for variants in (schema.get("anyOf"), schema.get("oneOf")):
        if variants:
            return _sample(variants[0], name, argument)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        properties = schema.get("properties") or {}
        required = schema.get("required", list(properties))
        return {k: _sample(properties.get(k, {}), k, argument) for k in required}
    if kind == "array":
        if name == "command":
            return ["bash", "-lc", argument]
        return [_sample(schema.get("items", {}), name, argument)]
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return False
    if kind == "null":
        return None
    return argument or name


def _thought(asked: Asked, digest: bytes) -> Iterator[Json]:
    model = str(asked.body.get("model"))
    settings = asked.body.get("reasoning")
    if settings is None and not model.startswith(("gpt-5", "gpt-6", "o")):
        return
    wants = "reasoning.encrypted_content" in (asked.body.get("include") or ())
    summarize = isinstance(settings, dict) and settings.get("summary") not in (None, "none")
    summary = [f"**Thinking about {_words(digest, 4)}**"] if summarize else []
    yield reasoning(ciphertext(digest) if wants else None, summary)


def ciphertext(seed: bytes, size: int = 288) -> str:
    """An opaque text as a reasoning item's ``encrypted_content``: a function of the seed."""
    blocks = (blake2b(seed, salt=n.to_bytes(2, "big")).digest() for n in range(-(-size // 64)))
    return "gAAAAAB" + base64.urlsafe_b64encode(b"".join(blocks)[:size]).decode()


def _words(digest: bytes, count: int) -> str:
    start = int.from_bytes(digest[:4], "big")
    step = 1 + digest[4] % 7
    return " ".join(WORDS[(start + i * step) % len(WORDS)] for i in range(count))
