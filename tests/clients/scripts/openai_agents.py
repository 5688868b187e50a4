"""Pairs of runs of an agent with one tool through the Agents SDK, each told to it on a line as a
JSON list: ``[URL, "http" | "socket", STEPS]``, and ``"anchored"`` where the SDK shall name the last
response instead of replaying. Prints what came of it as a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import agents
import openai

MODEL = "gpt-5.5"


@agents.function_tool
def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}\n"


AGENT = agents.Agent(name="tester", instructions="Be brief.", tools=[bash])


def request(steps: int, before: list[Any]) -> list[Any]:
    return [*before, {"role": "user", "content": f"run echo hi {steps} times"}]


async def over_http(url: str, steps: int, **more: Any) -> list[Any]:
    client = openai.AsyncOpenAI(base_url=url, api_key="sk-test", max_retries=0)
    model = agents.OpenAIResponsesModel(MODEL, client)
    agent = AGENT.clone(model=model)
    first = await agents.Runner.run(agent, request(steps, []), **more)
    second = await agents.Runner.run(agent, request(steps, first.to_input_list()), **more)
    await client.close()
    return [first, second]


async def over_a_socket(url: str, steps: int, **more: Any) -> list[Any]:
    agent = AGENT.clone(model=MODEL)
    async with agents.responses_websocket_session(base_url=url, api_key="sk-test") as session:
        first = await session.run(agent, request(steps, []), **more)
        second = await session.run(agent, request(steps, first.to_input_list()), **more)
    return [first, second]


def main() -> None:
    agents.set_tracing_disabled(True)
    for line in sys.stdin:
        url, how, steps, *anchored = json.loads(line)
        more = {"auto_previous_response_id": True} if anchored else {}
        runs = asyncio.run(
            (over_a_socket if how == "socket" else over_http)(url, int(steps), **more)
        )
        ids = [answer.response_id for run in runs for answer in run.raw_responses]
        print(json.dumps({"ids": ids, "last": runs[-1].final_output}), flush=True)


if __name__ == "__main__":
    main()
