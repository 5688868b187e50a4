"""Agents that keep their histories and talk through nginx, each naming its session in its own way."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from sqlalchemy import Engine

from app.ledger import audit, queries
from app.ledger.rows import TurnRow
from tests.support.deployed import Deployment
from tests.support.nginx import SERVED_BY
from tests.support.provider import MODEL
from tests.support.stack import ALWAYS, TERMINAL

Json = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """How a client says whose turn it is: ``{name}`` in headers or body."""

    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)
    over: str = "sse"

    @property
    def is_named(self) -> bool:
        return "authorization" not in self.headers


WAYS = (
    Way({"x-warmline-session": "{name}"}),
    # Codex: sub-agents share the session-id of their parent.
    Way({"thread-id": "{name}", "session-id": "all-of-them"}),
    Way({"thread-id": "{name}", "session-id": "all-of-them"}, over="ws"),
    Way({"thread_id": "{name}", "session_id": "all-of-them"}),
    Way({"session-id": "{name}"}),
    Way({"session_id": "{name}"}, over="ws"),
    Way({"x-session-id": "{name}"}),
    Way({"x_session_id": "{name}"}),
    # Nothing in headers: the credential decides.
    Way(body={"prompt_cache_key": "{name}"}),
    Way({"authorization": "Bearer sk-{name}"}),
    Way({"authorization": "Bearer sk-{name}"}, over="ws"),
)


class TurnLostError(Exception):
    """A turn without a whole answer."""


class Agent:
    """One session. ``served_by`` are the gateways that answered, one for each turn."""

    def __init__(self, deployment: Deployment, http: aiohttp.ClientSession, name: str, way: Way):
        self.name = name
        self.way = way
        self.history: list[Json] = []
        self.served_by: list[str] = []
        self.answering = asyncio.Event()
        """Set with the first event of the first answer."""
        self._http = http
        self._url = f"{deployment.nginx.url}/v1/responses"
        self._headers = deployment.headers | _named(way.headers, name)
        self._body = {"model": MODEL, "store": False, **_named(way.body, name)}
        self._line: Line | None = None

    async def turn(self, text: str = "go on") -> Json:
        """Raises ``TurnLostError`` where it was not answered; the history is unchanged then."""
        given = [*self.history, {"type": "message", "role": "user", "content": text}]
        try:
            answer = await (self._frame(given) if self.way.over == "ws" else self._post(given))
        except aiohttp.ClientError as error:
            raise TurnLostError(f"{self.name}: {error!r}") from error
        if answer.get("type") != "response.completed":
            raise TurnLostError(f"{self.name}: {answer}")
        self.history = given + answer["response"]["output"]
        return answer

    def forget(self) -> None:
        """What it sends from now on is not what the model has seen."""
        assert self.history
        self.history[0] = {"type": "message", "role": "user", "content": "something else"}

    def _note(self, answer: aiohttp.ClientResponse) -> None:
        """nginx names all gateways that it tried, the one that answered last."""
        self.served_by.append(answer.headers[SERVED_BY].rpartition(" ")[2])

    async def _post(self, given: list[Json]) -> Json:
        body = self._body | {"input": given, "stream": True}
        async with self._http.post(self._url, json=body, headers=self._headers) as answer:
            self._note(answer)
            if answer.status != 200:
                raise TurnLostError(f"{self.name}: {answer.status} {await answer.text()}")
            last: Json = {}
            async for line in answer.content:
                if line.startswith(b"data:"):
                    last = json.loads(line[5:])
                    self.answering.set()
            return last

    async def _frame(self, given: list[Json]) -> Json:
        frame = {"type": "response.create", **self._body, "input": given}
        if self._line is None or not await self._line.send(frame):
            made = await self._http.ws_connect(self._url, headers=self._headers, max_msg_size=0)
            self._line = Line(made)
            await self._line.send(frame)
        self._note(self._line.socket._response)
        while (event := await self._line.events.get()) is not None:
            self.answering.set()
            if event["type"] in TERMINAL:
                return event
        raise TurnLostError(f"{self.name}: closed with {self._line.socket.close_code}")


class Line:
    """A WebSocket that is read all the time, as pings want it. None: it has ended."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.events: asyncio.Queue[Json | None] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self.socket:
            self.events.put_nowait(json.loads(message.data))
        self.events.put_nowait(None)

    async def send(self, frame: Json) -> bool:
        """False where it was closed since the turn before: nothing was sent then."""
        try:
            await self.socket.send_json(frame)
        except aiohttp.ClientConnectionResetError:
            return False
        return True


def _named(given: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value.format(name=name) for key, value in given.items()}


def make_agents(
    deployment: Deployment, http: aiohttp.ClientSession, count: int, prefix: str = "agent"
) -> list[Agent]:
    ways = itertools.cycle(WAYS)
    return [Agent(deployment, http, f"{prefix}-{n}", next(ways)) for n in range(count)]


async def take_turns(agents: Sequence[Agent], turns: int, *, at_once: int = 40) -> None:
    """Each agent takes so many turns, one after the other; so many agents at a time."""
    limit = asyncio.Semaphore(at_once)

    async def work(agent: Agent, number: int) -> None:
        async with limit:
            await agent.turn(f"{agent.name}, step {number}")

    async def session(agent: Agent) -> None:
        for number in range(turns):
            await work(agent, number)

    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(session(agent))


def by_session(rows: Sequence[TurnRow]) -> dict[str, list[tuple[str | None, str | None]]]:
    """Mode and reason of each session's turns, in order."""
    found: dict[str, list[tuple[str | None, str | None]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.started_at):
        found[row.session_key].append((row.mode, row.reason))
    return found


def all_rows(engine: Engine) -> list[TurnRow]:
    return [row for _, row in queries.after(engine, 0, limit=1_000_000)]


async def written(engine: Engine, count: int) -> None:
    """Wait until the ledger has so many rows: they are written by other processes."""
    async with asyncio.timeout(60):
        while await asyncio.to_thread(queries.count, engine, ALWAYS) < count:
            await asyncio.sleep(0.05)


def audited(engine: Engine) -> tuple[audit.Result, list[audit.Finding]]:
    """Every continued turn hangs on what the turn before it left; what does not is listed."""
    result = audit.Result()
    return result, list(audit.audit(engine, ALWAYS, result))
