"""One conversation of a sample agent: the whole history is sent with every request.

That is how agents that keep no state at the provider work (``store=False`` with encrypted
reasoning), and what makes their requests grow. The client is the official SDK as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from openai import AsyncOpenAI, OpenAIError

Item = dict[str, Any]
_ENDS = ("response.completed", "response.incomplete")

INSTRUCTIONS = "\n".join(
    (
        "You are a coding agent. You work in a checkout of a small service.",
        *(
            f"Rule {number}: {rule}"
            for number, rule in enumerate(
                (
                    "read a file before you change it, and keep a change to what was asked for.",
                    "run the tests that cover a change before you call it done.",
                    "say what a command will do when it can lose data, and ask first.",
                    "prefer the tools of the repository to tools of your own.",
                    "name files by their path from the root of the checkout.",
                    "report failures with the first line of the error and where it came from.",
                    "never print secrets, and never write them to a file.",
                    "stop when the task is done; do not begin another one.",
                )
                * 9,
                1,
            )
        ),
    )
)
"""Long enough (over 1,024 tokens) for a prompt cache to take notice of it."""

RUN_TOOL: Item = {
    "type": "function",
    "name": "bash",
    "description": "Run a command in the checkout and return what it printed.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
        "additionalProperties": False,
    },
    "strict": True,
}


class Conversation:
    """``headers`` are sent with every request; they name the session."""

    def __init__(
        self,
        client: AsyncOpenAI,
        name: str,
        *,
        model: str,
        headers: Mapping[str, str] | None = None,
        tools: tuple[Item, ...] = (RUN_TOOL,),
    ) -> None:
        self.name = name
        self.history: list[Item] = []
        self._client = client
        self._headers = {"x-warmline-session": name} if headers is None else dict(headers)
        self._fields: dict[str, Any] = {
            "model": model,
            "instructions": INSTRUCTIONS,
            "tools": list(tools),
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": name,
        }

    async def say(self, text: str, **headers: str) -> list[Item]:
        """Add a user message, ask, and return the tool calls of the answer."""
        self.history.append(
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        )
        return await self.ask(headers)

    async def ask(self, headers: Mapping[str, str] | None = None) -> list[Item]:
        """Send the history as it is, add the answer to it, and return its tool calls.

        Raises ``OpenAIError`` where there was no whole answer; the history is unchanged then.
        """
        # The SDK's types want its own parameter classes for every kind of item.
        create: Any = self._client.responses.create
        stream = await create(
            **self._fields,
            input=list(self.history),
            stream=True,
            extra_headers=self._headers | dict(headers or {}),
        )
        output: list[Item] | None = None
        async with stream:
            async for event in stream:
                if event.type in _ENDS:
                    output = [item.to_dict() for item in event.response.output]
        if output is None:
            raise OpenAIError("the stream ended without a whole answer")
        self.history += output
        return [item for item in output if item["type"] == "function_call"]

    async def work(self, text: str, run: Callable[[str], str], **headers: str) -> int:
        """``say``, then run the tools that are asked for until there are none; counts requests."""
        calls = await self.say(text, **headers)
        requests = 1
        while calls:
            self.history += [answer(call, run(command_of(call))) for call in calls]
            calls = await self.ask()
            requests += 1
        return requests


def answer(call: Item, output: str) -> Item:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": output}


def command_of(call: Item) -> str:
    """The command that a call of the tool asks for."""
    return str(json.loads(call["arguments"]).get("command", ""))
