"""Conversations with one tool through the OpenAI SDK, each told to it on a line as a JSON list:
``[URL, "json" | "stream" | "socket", STEPS]``. Prints what came of it as a line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import openai

TOOL: Any = {
    "type": "function",
    "name": "bash",
    "description": "Run a command.",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
        "additionalProperties": False,
    },
}
MODEL = "gpt-5.5"


def ask(client: openai.OpenAI, how: str, items: list[Any]) -> Any:
    """One request that replays everything; the answer's response."""
    asked: Any = {"model": MODEL, "input": items, "tools": [TOOL], "store": False}
    asked |= {"include": ["reasoning.encrypted_content"], "prompt_cache_key": "sdk-session"}
    if how == "json":
        return client.responses.create(**asked)
    with client.responses.create(stream=True, **asked) as events:
        completed = [event.response for event in events if event.type == "response.completed"]
    return completed[-1]


def replaying(url: str, how: str, steps: int) -> list[Any]:
    client = openai.OpenAI(base_url=url, api_key="sk-test", max_retries=0)
    items: list[Any] = [{"role": "user", "content": f"run echo hi {steps} times"}]
    answers = []
    while True:
        response = ask(client, how, items)
        answers.append(response)
        items += response.output
        results = results_of(response)
        if not results:
            return answers
        items += results


def anchored(url: str, steps: int) -> list[Any]:
    """Over one WebSocket, with the client's own anchors."""
    client = openai.OpenAI(base_url=url, api_key="sk-test", max_retries=0)
    more: Any = {"input": [{"role": "user", "content": f"run echo hi {steps} times"}]}
    answers = []
    with client.responses.connect() as connection:
        while True:
            connection.response.create(model=MODEL, tools=[TOOL], store=False, **more)
            for event in connection:
                if event.type in ("error", "response.failed"):
                    raise SystemExit(event.to_json())
                if event.type == "response.completed":
                    response = event.response
                    break
            answers.append(response)
            results = results_of(response)
            if not results:
                return answers
            more = {"input": results, "previous_response_id": response.id}


def results_of(response: Any) -> list[Any]:
    calls = [item for item in response.output if item.type == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": "hi\n"}
        for call in calls
    ]


def main() -> None:
    for line in sys.stdin:
        url, how, steps = json.loads(line)
        answers = anchored(url, int(steps)) if how == "socket" else replaying(url, how, int(steps))
        told = {"ids": [answer.id for answer in answers], "last": answers[-1].output_text}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
