"""Fakes for those who test an agent on the embedded engine: a scripted upstream, a manual clock.

``ScriptedUpstream`` is both transports of a ``ResponsesSession`` and answers what it is told to, at
once and without a network. It keeps the rules that matter to a history: each connection holds
nothing but its latest response, and every tool call needs an output. It is no model and no
provider: it prices nothing, caches nothing and checks few parameters.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from engine.errors import ConnectFailed, ConnectionLost, UpgradeRejected
from engine.transports.base import Headers

Item: TypeAlias = Mapping[str, Any]


class ManualClock:
    """Stands still until it is told to move. Seconds."""

    def __init__(self, now: float = 1_800_000_000.0, monotonic: float = 1_000.0) -> None:
        self._now, self._monotonic = now, monotonic

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time does not go back")
        self._now += seconds
        self._monotonic += seconds


@dataclass(frozen=True, slots=True)
class Fail:
    """The provider ends the turn with an error; with ``status`` before any event of the response.

    Without one, it is a ``response.failed`` behind ``after`` events.
    """

    code: str = "server_error"
    status: int | None = None
    after: int = 1


@dataclass(frozen=True, slots=True)
class Lose:
    """The connection ends behind ``after`` events of the response."""

    after: int = 1


@dataclass(frozen=True, slots=True)
class Incomplete:
    """These output items, then ``response.incomplete``."""

    output: Sequence[Item] = ()


Reply: TypeAlias = str | Item | Sequence[Item] | Fail | Lose | Incomplete
"""A text, an output item, several, or one of the faults."""


def message(text: str) -> dict[str, Any]:
    """An assistant message, as a provider writes it."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [part]}


def function_call(name: str, call_id: str, arguments: str = "{}") -> dict[str, Any]:
    """A tool call, as a provider writes it."""
    return {
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def reasoning(encrypted: str, summary: str | None = None) -> dict[str, Any]:
    """A reasoning item with its ciphertext, as a provider writes it."""
    parts = [] if summary is None else [{"type": "summary_text", "text": summary}]
    return {"type": "reasoning", "summary": parts, "encrypted_content": encrypted}


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it arrived: over which connection (None: HTTP), and what it was."""

    connection: int | None
    body: dict[str, Any]


class ScriptedUpstream:
    """Answers each turn with the next of ``replies``; use it as ``websocket`` and as ``http``.

    ``sent`` are the requests in their order, ``handshakes`` the headers of each connection that
    was asked for, ``held`` what the provider would hold of each response. Usage is made up from
    lengths, or left out with ``reports_usage`` False.
    """

    def __init__(self, replies: Iterable[Reply] = (), *, reports_usage: bool = True) -> None:
        self.replies: deque[Reply] = deque(replies)
        self._reports_usage = reports_usage
        self.sent: list[Sent] = []
        self.handshakes: list[Headers] = []
        self.post_headers: list[Headers] = []
        self.held: dict[str, list[Item]] = {}
        self._refusals: deque[int | None] = deque()
        self._connections: list[_Connection] = []
        self._responses = 0

    def refuse(self, *, times: int = 1, status: int | None = None) -> None:
        """The next connects fail: refused, or answered with this HTTP status."""
        self._refusals.extend([status] * times)

    def drop(self) -> None:
        """All live connections end."""
        for connection in self._connections:
            connection.closed = True

    # --- the two transports -----------------------------------------------------------------

    async def connect(self, url: str, headers: Headers, within: float) -> _Connection:  # noqa: ARG002
        self.handshakes.append(headers)
        if self._refusals:
            status = self._refusals.popleft()
            if status is None:
                raise ConnectFailed("refused")
            raise UpgradeRejected(status, [], b'{"error":{"code":"refused"}}')
        connection = _Connection(self, len(self._connections))
        self._connections.append(connection)
        return connection

    async def post(self, url: str, headers: Headers, body: bytes, within: float) -> _Answer:  # noqa: ARG002
        self.post_headers.append(headers)
        request = json.loads(body)
        self.sent.append(Sent(None, request))
        return _Answer(list(self._answer(request, None)))

    # --- the provider -----------------------------------------------------------------------

    def _answer(self, request: dict[str, Any], latest: str | None) -> Iterable[_Step]:
        """The events of one response. An exception in place of an event ends the connection."""
        previous = request.get("previous_response_id")
        if previous is not None and previous != latest:
            yield _error(400, "previous_response_not_found", "previous_response_id")
            return
        given = request["input"]
        known = [] if previous is None else self.held[previous]
        said = [{"role": "user", "content": given}] if isinstance(given, str) else given
        items: list[Item] = [*known, *said]
        if _calls_without_output(items):
            yield _error(400, "missing_tool_output", "input")
            return
        reply = self.replies.popleft() if self.replies else "done"
        if isinstance(reply, Fail) and reply.status is not None:
            yield _error(reply.status, reply.code, None)
            return
        self._responses += 1
        yield from self._played(reply, items, f"resp_{self._responses}")

    def _played(self, reply: Reply, items: list[Item], id_: str) -> Iterable[_Step]:
        output = [{"id": f"{id_}_{n}", **item} for n, item in enumerate(_output(reply))]
        events: list[_Step] = [{"type": "response.created", "response": {"id": id_}}]
        for n, item in enumerate(output):
            events.append({"type": "response.output_item.added", "output_index": n, "item": item})
            events.append({"type": "response.output_item.done", "output_index": n, "item": item})
        if isinstance(reply, Lose):
            yield from events[: reply.after]
            yield ConnectionLost(1006, sent=True)
            return
        if isinstance(reply, Fail):
            yield from events[: reply.after]
            yield _ended(id_, "failed", [], error={"code": reply.code, "message": reply.code})
            return
        self.held[id_] = [*items, *output]
        yield from events
        status = "incomplete" if isinstance(reply, Incomplete) else "completed"
        usage = _usage(items, output) if self._reports_usage else None
        yield _ended(id_, status, output, usage=usage)


_Step: TypeAlias = dict[str, Any] | ConnectionLost


def _output(reply: Reply) -> Sequence[Item]:
    if isinstance(reply, Fail | Lose):
        return [message("never finished")]
    if isinstance(reply, Incomplete):
        return reply.output
    if isinstance(reply, str):
        return [message(reply)]
    return [reply] if isinstance(reply, Mapping) else reply


def _ended(id_: str, status: str, output: list[Any], **more: Any) -> dict[str, Any]:
    response = {"id": id_, "object": "response", "status": status, "output": output, **more}
    return {"type": f"response.{status}", "response": response}


def _error(status: int, code: str, param: str | None) -> dict[str, Any]:
    type_ = "invalid_request_error" if status < 500 else "server_error"
    error = {"type": type_, "code": code, "message": code, "param": param}
    return {"type": "error", "status": status, "error": error}


def _usage(items: Sequence[Item], output: Sequence[Item]) -> dict[str, Any]:
    """One token for four characters: enough to tell more from less."""
    given, made = (len(json.dumps(part)) // 4 for part in (items, output))
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }


def _calls_without_output(items: Sequence[Item]) -> set[Any]:
    calls = {i.get("call_id") for i in items if str(i.get("type")).endswith("_call")}
    outputs = {i.get("call_id") for i in items if str(i.get("type")).endswith("_call_output")}
    return calls - outputs - {None}


class _Connection:
    """One connection: it holds the latest response and nothing else."""

    def __init__(self, upstream: ScriptedUpstream, number: int) -> None:
        self.closed = False
        self._upstream, self._number = upstream, number
        self._latest: str | None = None
        self._steps: deque[_Step] = deque()

    async def send(self, frame: bytes) -> None:
        if self.closed:
            raise ConnectionLost(None, sent=False)
        request = json.loads(frame)
        self._upstream.sent.append(Sent(self._number, request))
        self._steps = deque(self._upstream._answer(request, self._latest))  # noqa: SLF001
        last = self._steps[-1]
        self._latest = None
        if not isinstance(last, ConnectionLost) and last["type"] in _ANSWERED:
            self._latest = last["response"]["id"]

    async def receive(self) -> bytes:
        if self.closed:
            raise ConnectionLost(None, sent=True)
        await asyncio.sleep(0)  # as a real one would: others get their turn
        step = self._steps.popleft()
        if isinstance(step, ConnectionLost):
            self.closed = True
            raise step
        return json.dumps(step).encode()

    def take(self) -> bytes | None:
        return None

    async def ping(self, within: float) -> bool:  # noqa: ARG002
        return not self.closed

    async def close(self) -> None:
        self.closed = True


_ANSWERED = frozenset({"response.completed", "response.incomplete"})


class _Answer:
    """An HTTP answer: a stream of events, or an error with its status."""

    def __init__(self, steps: list[_Step]) -> None:
        first = steps[0]
        self.status, kind = 200, "text/event-stream"
        if not isinstance(first, ConnectionLost) and first["type"] == "error":
            self.status, kind = first["status"], "application/json"
        self.headers: Headers = [("content-type", kind)]
        self._steps = steps

    async def chunks(self) -> AsyncIterator[bytes]:
        for step in self._steps:
            await asyncio.sleep(0)
            if isinstance(step, ConnectionLost):
                raise step
            if self.status != 200:
                yield json.dumps({"error": step["error"]}).encode()
            else:
                yield f"event: {step['type']}\ndata: {json.dumps(step)}\n\n".encode()

    async def close(self) -> None:
        """There is nothing to give back."""
