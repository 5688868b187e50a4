"""The sample agents of ``warmline demo``: five habits of real agents, told apart by their names.

Each is a round that is done again and again, with pauses, under a new session name:

- ``coder``: a task, a tool loop, the next task. Always continued.
- ``notes``: a block ``_meta`` stands only in the newest tool result and is taken out of the older
  one, which changes what the model has already seen: ``prefix_mismatch``. After two such rounds it
  works for five without touching old results, so that an alert on it fires and resolves.
- ``writer``: replaces its history by a summary and says so: ``epoch_reset``.
- ``crew``: a lead whose sub-agents work side by side, each in a session of its own.
- ``legacy``: behind an upstream that has no WebSockets: ``http_full``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from openai import AsyncOpenAI

from app.demo.conversation import Conversation, answer, command_of

logger = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]
HTTP_ONLY = "http_only"
"""Name of the upstream of ``legacy``."""
MODEL, OTHER_MODEL = "gpt-6-sol", "gpt-5.5"
_AFTER_ERROR = 5.0
_FAULTY, _TIDY = 2, 5
"""Rounds of ``notes``, in turn."""
_STEPS = ("tests/test_parser.py", "tests/test_api.py", "tests/test_store.py", "tests/test_cli.py")


@dataclass
class Agents:
    """``origin``: where the gateway is. ``pace`` scales the pauses; 0 is no pause at all."""

    origin: str
    pace: float = 1.0
    failures: int = 0
    """Requests that failed since the start."""
    rounds: dict[str, int] = field(default_factory=dict)
    """Finished rounds per agent."""

    async def run(self) -> None:
        """Work until cancelled."""
        default = self._client("/v1")
        legacy = self._client(f"/u/{HTTP_ONLY}/v1")
        habits: dict[str, Callable[[int], Awaitable[None]]] = {
            "coder": lambda n: coder(default, f"coder-{n}", self._sleep),
            "notes": lambda n: notes(default, f"notes-{n}", self._sleep, tidy=is_tidy(n)),
            "writer": lambda n: writer(default, f"writer-{n}", self._sleep),
            "crew": lambda n: crew(default, f"crew-{n}", self._sleep),
            "legacy": lambda n: coder(
                legacy, f"legacy-{n}", self._sleep, tasks=2, model=OTHER_MODEL
            ),
        }
        async with default, legacy, asyncio.TaskGroup() as group:
            for name, habit in habits.items():
                group.create_task(self._repeat(name, habit), name=name)

    async def _repeat(self, name: str, habit: Callable[[int], Awaitable[None]]) -> None:
        number = 0
        while True:
            number += 1
            try:
                await habit(number)
            except Exception as error:
                self.failures += 1
                logger.warning("the sample agent %s failed: %s", name, _told(error))
                await asyncio.sleep(_AFTER_ERROR * self.pace)
            else:
                self.rounds[name] = self.rounds.get(name, 0) + 1
            await self._sleep(4.0)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.pace)

    def _client(self, path: str) -> AsyncOpenAI:
        return AsyncOpenAI(
            base_url=self.origin + path, api_key="sample-agents", max_retries=0, timeout=60.0
        )


def _told(error: Exception) -> str:
    """What happened, in one line, without anything of the request."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(sorted({_told(inner) for inner in error.exceptions}))
    status = getattr(error, "status_code", None)
    code = getattr(error, "code", None)
    return " ".join(str(part) for part in (type(error).__name__, status, code) if part is not None)


def printed(command: str) -> str:
    """What a command of the sample agents prints: made up, the same for the same command."""
    target = command.rsplit(maxsplit=1)[-1] if command.split() else "."
    lines = [
        f"{target}::case_{number:02d} passed in {number * 7 % 31} ms" for number in range(1, 25)
    ]
    return "\n".join((f"$ {command}", *lines, "24 passed"))


async def coder(
    client: AsyncOpenAI, name: str, sleep: Sleep, *, tasks: int = 4, model: str = MODEL
) -> None:
    talk = Conversation(client, name, model=model)
    for step in _STEPS[:tasks]:
        await talk.work(f"Look after {step}. Then run `pytest -q {step}` 3 times.", printed)
        await sleep(3.0)


def is_tidy(number: int) -> bool:
    """Whether ``notes`` leaves old results alone in its round of this number."""
    return (number - 1) % (_FAULTY + _TIDY) >= _FAULTY


async def notes(client: AsyncOpenAI, name: str, sleep: Sleep, *, tidy: bool = False) -> None:
    talk = Conversation(client, name, model=MODEL)
    newest: dict[str, str] | None = None
    for step in _STEPS[:3]:
        calls = await talk.say(f"Take notes on {step}, and run `cat {step}`.")
        while calls:
            for call in calls:
                text = printed(command_of(call))
                if newest is not None and not tidy:
                    newest["output"] = json.dumps(
                        {"result": json.loads(newest["output"])["result"]}
                    )
                meta = {"turns": len(talk.history), "budget": "within limits"}
                newest = answer(call, json.dumps({"result": text, "_meta": meta}))
                talk.history.append(newest)
            calls = await talk.ask()
        await sleep(4.0)


async def writer(client: AsyncOpenAI, name: str, sleep: Sleep) -> None:
    talk = Conversation(client, name, model=OTHER_MODEL, tools=())
    for chapter in range(1, 4):
        summary = {"x-warmline-epoch-reset": "summarize"} if chapter > 1 else {}
        for paragraph in range(1, 4):
            opening = f"Chapter {chapter}, paragraph {paragraph}: write it in 30 words."
            await talk.say(opening, **(summary if paragraph == 1 else {}))
            await sleep(1.5)
        talk.history = [
            {
                "type": "message",
                "role": "user",
                "content": f"Summary so far: {chapter} chapters are written and approved.",
            }
        ]
        await sleep(2.0)


async def crew(client: AsyncOpenAI, name: str, sleep: Sleep) -> None:
    """Sub-agents share the session and differ in the thread, as those of Codex do."""

    def member(thread: str) -> Conversation:
        headers = {"session-id": name, "thread-id": thread}
        return Conversation(client, thread, model=MODEL, headers=headers)

    lead = member(name)
    await lead.say("Plan the work for three helpers in 20 words.")
    async with asyncio.TaskGroup() as group:
        for number, step in enumerate(_STEPS[:3], 1):
            helper = member(f"{name}/helper-{number}")
            group.create_task(
                helper.work(f"Check {step}: run `pytest -q {step}` 2 times.", printed)
            )
    await sleep(1.0)
    await lead.say("The helpers are done. Sum it up in 20 words.")
    await sleep(6.0)
