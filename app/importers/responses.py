"""Logs of the Responses API: Responses objects, streams of events as text, and events or frames of
a WebSocket as JSON Lines, wrapped by a logger or bare.

A response that has ended is a row, known by its id, however often it is told. What the log has
times for is measured by them; requests and responses are put together where only one can be meant.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from app.importers import json_values
from app.importers.foreign import chain_of, row_of
from app.importers.importer import Importer, Item, Skipped
from app.importers.json_lines import count, decoded, inner, text
from app.importers.lines import BOM, Line, from_first
from app.importers.responses_told import (
    CREATE,
    WHOLE,
    Request,
    Response,
    Told,
    error_of,
    has_output,
    look,
    moment,
)
from app.ledger.rows import TurnRow
from engine.model import Kind, Mode, Status, Usage, UsageState

NAME = "responses"
NO_RESPONSE = "tells of no response"
NOT_ENDED = "is a response that has not ended"
NO_END = "begins a response whose end is not in the file"
NO_TIME = "is a response without a time"
REPEATED = "repeats a response that was there before"
_BEGINNING = 4_096
"""Bytes of an object, longer than what is looked at, that tell what it is."""
_BEGINS = re.compile(rb'"object"\s*:\s*"response"|"type"\s*:\s*"response\.[a-z_.]+"')
_STREAM = re.compile(rb'^(?:event:\s*response\.|data:\s*\{"type":\s*"response\.)', re.MULTILINE)
_OF_A_STREAM = (b"event:", b"data:", b"id:", b"retry:", b":")
_OPENING = frozenset({"response.created", "response.queued", "response.in_progress"})
_ENDING = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled",
     "response.done", "error"}
)  # fmt: skip
_STATUSES = {
    "completed": Status.COMPLETED,
    "incomplete": Status.INCOMPLETE,
    "failed": Status.FAILED,
    "cancelled": Status.CLIENT_CLOSED,
}
_ENDED_AS = {
    "response.incomplete": Status.INCOMPLETE,
    "response.failed": Status.FAILED,
    "response.cancelled": Status.CLIENT_CLOSED,
    "error": Status.ERROR,
}
"""By the event, for a response that has no status of its own."""
_LIMITS = frozenset(
    {"rate_limit_exceeded", "usage_limit_reached", "insufficient_quota", "rate_limit_error"}
)
"""Codes of errors that say that too much was asked for."""
_REMEMBERED = 4_096
"""Responses that may be told again, or that are still going on."""


def recognizes(head: bytes) -> bool:
    start = head.removeprefix(BOM).lstrip()
    if start.startswith(_OF_A_STREAM):
        return _STREAM.search(start) is not None
    return start[:1] in (b"{", b"[") and any(map(_is_ours, json_values.first_objects(head)))


def _is_ours(data: bytes) -> bool:
    try:
        found = look(data)
    except (msgspec.MsgspecError, RecursionError):
        return data.lstrip()[:1] == b"{" and _BEGINS.search(data, 0, _BEGINNING) is not None
    return found is not None and found.type not in ("", "error")


def read(lines: Iterable[Line]) -> Iterator[Item]:
    source = from_first(lines)
    first = next(source, None)
    if first is None:
        return
    whole: Iterator[Line] = chain([first], source)
    if first.data.removeprefix(BOM).lstrip().startswith(_OF_A_STREAM):
        whole = _data_of(whole)
    log = _Log()
    for found in decoded(whole, look):
        if isinstance(found, Skipped):
            yield found
        else:
            yield from log.meet(*found)
    yield from log.rest()


def _data_of(lines: Iterator[Line]) -> Iterator[Line]:
    """The data of a stream's events, each of one line."""
    for line in lines:
        name, _, data = line.data.removeprefix(BOM).partition(b":")
        if line.too_long:
            yield line
        elif name.strip() == b"data" and data.strip() != b"[DONE]":
            yield line._replace(data=data)


@dataclass(slots=True)
class _Asked:
    """A request that a client has sent over a WebSocket."""

    request: Request | None
    at: int | None


@dataclass(slots=True)
class _Open:
    """A response that has begun."""

    line: int
    response: Response
    at: int | None
    asked: _Asked | None
    first_at: int | None = None
    """When its first output came."""
    mixed: bool = False
    """Others go on at the same time: whose output it is cannot be told."""


class _Log:
    def __init__(self) -> None:
        self._asked: _Asked | None = None
        """The request whose response has not begun."""
        self._several = False
        """There is more than one of these: whose response begins cannot be told."""
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._done: OrderedDict[tuple[str | None, int | None], None] = OrderedDict()

    def meet(self, line: int, told: Told | None) -> Iterator[Item]:
        if told is None:
            yield Skipped(line, NO_RESPONSE)
        elif told.type == CREATE:
            self._several = self._asked is not None
            self._asked = _Asked(told.request, told.at)
        elif told.type == WHOLE:
            yield self._whole(line, told)
        elif told.type in _OPENING:
            yield from self._begin(line, told)
        elif told.type in _ENDING:
            yield from self._end(line, told)
        elif told.type:
            self._output(told)

    def rest(self) -> Iterator[Skipped]:
        for found in self._open.values():
            yield Skipped(found.line, NO_END)

    def _whole(self, line: int, told: Told) -> TurnRow | Skipped:
        assert told.response is not None
        if text(told.response.status) not in _STATUSES:
            return Skipped(line, NOT_ENDED)
        return self._once(line, told, told.response, None)

    def _begin(self, line: int, told: Told) -> Iterator[Skipped]:
        name = None if told.response is None else text(told.response.id)
        if told.response is None or name is None or name in self._open:
            return
        asked = None if self._several else self._asked
        self._asked, self._several = None, False
        self._open[name] = _Open(line, told.response, told.at, asked)
        if len(self._open) > _REMEMBERED:
            yield Skipped(self._open.popitem(last=False)[1].line, NO_END)
        if len(self._open) > 1:
            for found in self._open.values():
                found.mixed = True

    def _output(self, told: Told) -> None:
        if told.at is None or len(self._open) != 1:
            return
        (found,) = self._open.values()
        if found.first_at is None and not found.mixed and has_output(told):
            found.first_at = told.at

    def _end(self, line: int, told: Told) -> Iterator[Item]:
        if told.response is not None:
            begun = self._open.pop(text(told.response.id) or "", None)
            yield self._once(line, told, told.response, begun)
        elif len(self._open) == 1:
            # An error names no response: it is of the one that is going on.
            _, begun = self._open.popitem()
            begun.response.status, begun.response.error = None, error_of(told)
            yield self._once(line, told, begun.response, begun)
        else:
            yield Skipped(line, NO_RESPONSE)

    def _once(
        self, line: int, told: Told, response: Response, begun: _Open | None
    ) -> TurnRow | Skipped:
        known = (text(response.id), moment(response.created_at))
        if known[0] is not None:
            if known in self._done:
                return Skipped(line, REPEATED)
            self._done[known] = None
            if len(self._done) > _REMEMBERED:
                self._done.popitem(last=False)
        return _row(line, told, response, begun)


def _row(line: int, told: Told, response: Response, begun: _Open | None) -> TurnRow | Skipped:
    asked = None if begun is None else begun.asked
    # The time that a logger gives a whole object may be of anything.
    ended_at = moment(response.completed_at) if told.type == WHOLE else told.at
    asked_at = None if asked is None else asked.at
    begun_at = None if begun is None else begun.at
    times = (asked_at, moment(response.created_at), begun_at, ended_at, told.at)
    started_at = next((at for at in times if at is not None), None)
    if started_at is None:
        return Skipped(line, NO_TIME)
    request = told.request if asked is None else asked.request
    session, previous = _session(response, request), _of("previous_response_id", response, request)
    name = text(response.id)
    usage = _usage(inner(response.usage))
    # Some providers use an id again, for another response.
    identity: tuple[str | int | None, ...] = ("response", name, moment(response.created_at))
    if name is None:
        figures = (usage.input_tokens, usage.cached_tokens, usage.output_tokens)
        identity = ("values", text(response.model), previous, started_at, ended_at, *figures)
    return row_of(
        NAME,
        identity,
        started_at=started_at,
        ended_at=ended_at,
        usage=usage,
        session=session,
        chain=_chain(session, previous, identity),
        model=text(response.model),
        service_tier=text(response.service_tier),
        reasoning_effort=text(inner(_of("reasoning", response, request)).get("effort")),
        store=response.store if isinstance(response.store, bool) else None,
        prompt_cache_key=text(_of("prompt_cache_key", response, request)),
        previous_response_id=previous,
        response_id=name,
        provider_miss_reason=_diagnosis(inner(response.prompt_cache_diagnostics)),
        **_ended(told, response),
        **_sent(request, asked, previous),
        **_measured(begun, asked_at, told.at),
    )


def _usage(told: dict[str, Any]) -> Usage:
    if not told:
        return Usage()
    given, outs = inner(told.get("input_tokens_details")), inner(told.get("output_tokens_details"))
    lengths = inner(given.get("cache_write_tokens_details"))
    return Usage(
        input_tokens=count(told.get("input_tokens")),
        cached_tokens=count(given.get("cached_tokens")),
        cache_write_tokens=count(given.get("cache_write_tokens")),
        cache_write_long_tokens=count(lengths.get("ttl_12h_tokens")),
        output_tokens=count(told.get("output_tokens")),
        reasoning_tokens=count(outs.get("reasoning_tokens")),
        total_tokens=count(told.get("total_tokens")),
        state=UsageState.REPORTED,
    )


def _diagnosis(told: dict[str, Any]) -> str | None:
    """The provider's word on the cache: why it was missed, else what it says of it."""
    return text(told.get("reason")) or text(told.get("type"))


def _of(name: str, response: Response, request: Request | None) -> Any:
    """What the response repeats of its request, else what the request says, if it is there."""
    told = getattr(response, name)
    return getattr(request, name, None) if told is None else told


def _session(response: Response, request: Request | None) -> str | None:
    talk = _of("conversation", response, request)
    return (
        text(inner(talk).get("id"))
        or text(talk)
        or text(_of("prompt_cache_key", response, request))
    )


def _chain(
    session: str | None, previous: str | None, identity: tuple[str | int | None, ...]
) -> str:
    """Of one that names no session: a chain is known by the response that it goes on from, which
    comes before it wherever it is in the ledger; else the response begins one."""
    if session is not None:
        return chain_of(NAME, session)
    return chain_of(NAME, *(identity if previous is None else ("after", previous)))


def _ended(told: Told, response: Response) -> dict[str, Any]:
    error = inner(response.error)
    code = text(error.get("code")) or text(error.get("type"))
    status = _STATUSES.get(str(response.status)) or _ENDED_AS.get(told.type, Status.COMPLETED)
    if status in (Status.FAILED, Status.ERROR) and code in _LIMITS:
        status = Status.RATE_LIMITED
    return {"status": str(status), "error_code": code}


def _sent(request: Request | None, asked: _Asked | None, previous: str | None) -> dict[str, Any]:
    """How it was sent, where a frame was seen that asked for it: over a WebSocket, then."""
    items = None if request is None else request.items
    if asked is None:
        return {"items_sent": items}
    return {
        "mode": str(Mode.WS_FULL if previous is None else Mode.WS_INCREMENTAL),
        "items_sent": items,
        "items_total": items if previous is None else None,
        "kind": str(Kind.WARMUP) if request is not None and request.generate is False else None,
    }


def _measured(begun: _Open | None, asked_at: int | None, ended_at: int | None) -> dict[str, Any]:
    """From the request's own time on; from the response's all would look shorter."""
    if begun is None or asked_at is None:
        return {}
    times = {"first_event_ms": begun.at, "ttft_ms": begun.first_at, "duration_ms": ended_at}
    return {name: at - asked_at for name, at in times.items() if at is not None and at >= asked_at}


RESPONSES = Importer(NAME, "a log of the Responses API", recognizes, read, split=json_values.split)
