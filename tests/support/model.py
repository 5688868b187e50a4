"""A model whose answers are short and of every kind: a function of the random source it is given."""

from __future__ import annotations

import random
from typing import Any

from app.demo.provider.items import kind_of
from app.demo.provider.replies import (
    Asked,
    Reply,
    custom_tool_call,
    function_call,
    message,
    reasoning,
    refusal,
    unknown_item,
)

Json = dict[str, Any]

_ARGUMENTS: tuple[Any, ...] = (
    '{"cmd":"ls -la"}',
    '{"cmd": "ls -la", "timeout": 1.0}',
    '{ "b": [1, 2.50, null, true], "a": {"y": "é\\u00e9", "x": -0} }',
    '{"cmd": "a", "cmd": "b"}',
    "{}",
    "{not json",
    "",
    '{"big": 12345678901234567890, "small": 1e-7}',
    '{"text": "line\\nline \\ud83d\\ude00"}',
)
_WORDS = ("so", "é", "line\nline", '"quoted"', "\U0001f600", "tab\t", "\\")


class Model:
    """A ``Responder``. Every answer is new, as those of a model are, unless it ``echoes``."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._count = 0

    def __call__(self, asked: Asked, /) -> Reply:
        self._count += 1
        out: list[Json] = list(self._thoughts(asked))
        calls = sum(1 for item in asked.transcript[-6:] if kind_of(item).endswith("_output"))
        chance = self._random.random()
        if chance < 0.45 and calls < 3:
            out += self._calls(asked)
        elif chance < 0.48:
            out.append(refusal(f"no {self._count}"))
        elif chance < 0.51:
            out.append(unknown_item(number=self._count))
        elif chance < 0.54:
            out.append(self._search())
        if chance >= 0.40 or not out:
            out.append(self._message())
        return Reply(tuple(out))

    def _message(self) -> Json:
        if self._random.random() < 0.1:
            return message("Done.", phase="final_answer")  # the same words again, as models do
        phase = self._random.choice([None, "commentary", "final_answer"])
        text = f"{self._random.choice(_WORDS)} {self._count}"
        return message(text, phase=phase) if self._random.random() < 0.8 else message(text)

    def _thoughts(self, asked: Asked) -> list[Json]:
        chance = self._random.random()
        if chance < 0.4:
            return []
        summary = [f"thinking {self._count}"] if chance < 0.7 else []
        wants = "reasoning.encrypted_content" in (asked.body.get("include") or ())
        more: Json = {"content": []} if chance > 0.9 else {}
        return [reasoning(f"gAAAAA{self._count:06d}" if wants else None, summary, **more)]

    def _calls(self, asked: Asked) -> list[Json]:
        out = []
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            call_id = asked.new_id("call")[:16]
            if self._random.random() < 0.2:
                out.append(custom_tool_call("exec", f"text({self._count});", call_id))
                continue
            more: Json = {"namespace": "agents"} if self._random.random() < 0.1 else {}
            arguments = self._random.choice(_ARGUMENTS)
            out.append(function_call("exec_command", arguments, call_id, **more))
        return out

    def _search(self) -> Json:
        action: Json = {"type": "search", "query": f"q {self._count}", "queries": ["q"]}
        if self._random.random() < 0.5:
            action["sources"] = [{"type": "url", "url": "https://example.com"}]
        return {"type": "web_search_call", "action": action}
