"""Transcripts of Claude Code: ``~/.claude/projects/**/*.jsonl``.

A line for each block of an answer, so that one request is several lines, each with the usage as far
as it was known then. They belong together by the message's id and the request's, across copies of
one history as well: a resumed session and a side chain repeat lines of others. ``input_tokens``
leaves out what was read from the cache and what was written to it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from app.importers.foreign import Epochs, chain_of, milliseconds, row_of
from app.importers.importer import Importer, Item, Skipped
from app.importers.json_lines import count, first_records, inner, records, text
from app.importers.lines import Line
from app.importers.own_row import NO_TIME
from app.ledger.rows import TurnRow
from engine.model import Status, Usage, UsageState

NAME = "claude-code"
UPSTREAM = "anthropic"
_IDENTIFYING = frozenset({"sessionId", "uuid"})
_SYNTHETIC = "<synthetic>"
"""The model of answers that the tool has written itself, mostly about errors."""
_OPEN = 64
"""Requests whose lines may still come, among those of others that answer at the same time."""
_REMEMBERED = 4_096
"""Lines that an answer may name as the one before it."""
_FIGURES = (
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "cache_write_long_tokens",
    "output_tokens",
)
_BOUNDARIES = {"compact_boundary": "compaction", "microcompact_boundary": "microcompaction"}


def recognizes(head: bytes) -> bool:
    if any(found.keys() >= _IDENTIFYING for found in first_records(head)):
        return True
    # The first lines may be longer than what is looked at.
    return head.lstrip()[:1] == b"{" and b'"sessionId":"' in head and b'"parentUuid":' in head


def read(lines: Iterable[Line]) -> Iterator[Item]:
    transcript = _Transcript()
    for found in records(lines):
        if isinstance(found, Skipped):
            yield found
        else:
            yield from transcript.items(*found)
    yield from transcript.rest()


@dataclass(slots=True)
class _Request:
    """One request, of as many lines as have come."""

    first: dict[str, Any]
    last: dict[str, Any]
    started_at: int
    answered_at: int
    """When its first line was written."""
    ended_at: int
    chain: str
    epoch: dict[str, Any]
    """Its columns."""
    usage: Usage
    stop: str | None = None


@dataclass(slots=True)
class _Talk:
    """One conversation: its epochs, and what lies before its next request."""

    epochs: Epochs = field(default_factory=Epochs)
    reset: str | None = None


class _Transcript:
    def __init__(self) -> None:
        self._open: OrderedDict[tuple[str | None, ...], _Request] = OrderedDict()
        self._asked: OrderedDict[str, int] = OrderedDict()
        """When lines were written that are no answers, by their ids."""
        self._roots: OrderedDict[str, str] = OrderedDict()
        """Lines of side chains that have no name: where their chain begins."""
        self._talks: dict[str, _Talk] = {}

    def items(self, number: int, line: dict[str, Any]) -> Iterator[Item]:
        kind = line.get("type")
        if kind == "assistant":
            yield from self._answer(number, line)
            return
        name, at = text(line.get("uuid")), milliseconds(line.get("timestamp"))
        chain = self._chain(line)
        word = _BOUNDARIES.get(str(line.get("subtype"))) if kind == "system" else None
        if word is not None:
            self._talks.setdefault(chain, _Talk()).reset = word
        elif name is not None and at is not None:
            _remember(self._asked, name, at)

    def rest(self) -> Iterator[Item]:
        while self._open:
            yield self._row(*self._open.popitem(last=False))

    def _answer(self, number: int, line: dict[str, Any]) -> Iterator[Item]:
        message = inner(line.get("message"))
        message.pop("content", None)  # it is most of the line, and the line is kept for a while
        ended_at = milliseconds(line.get("timestamp"))
        chain = self._chain(line)
        if ended_at is None:
            yield Skipped(number, NO_TIME, "timestamp")
        elif message.get("model") == _SYNTHETIC:
            yield Skipped(number, "is an answer that the tool wrote itself")
        elif not inner(message.get("usage")):
            yield Skipped(number, "is an answer without usage")
        else:
            key = _key(line, message)
            request = self._open.get(key)
            if request is None:
                request = self._open[key] = self._begun(line, chain, ended_at)
            request.last = line
            request.ended_at = max(request.ended_at, ended_at)
            request.usage = _greater(request.usage, _usage(inner(message["usage"])))
            request.stop = text(message.get("stop_reason")) or request.stop
            if len(self._open) > _OPEN:
                yield self._row(*self._open.popitem(last=False))

    def _begun(self, line: dict[str, Any], chain: str, at: int) -> _Request:
        talk = self._talks.setdefault(chain, _Talk())
        asked = self._asked.get(text(line.get("parentUuid")) or "", at)
        request = _Request(
            first=line,
            last=line,
            started_at=min(asked, at),
            answered_at=at,
            ended_at=at,
            chain=chain,
            epoch=talk.epochs.next(talk.reset),
            usage=Usage(),
        )
        talk.reset = None
        return request

    def _chain(self, line: dict[str, Any]) -> str:
        """Of two readings of a request the greater name stands (``app.ledger.joining``): the main
        conversation's before that of a side chain that repeats it."""
        session = _session(line)
        if line.get("isSidechain") is not True:
            return f"main-{chain_of(NAME, session)}"
        agent = text(line.get("agentId"))
        if agent is not None:
            return f"agent-{chain_of(NAME, session, 'agent', agent)}"
        name = text(line.get("uuid")) or ""
        root = self._roots.get(text(line.get("parentUuid")) or "", name)
        _remember(self._roots, name, root)
        return f"agent-{chain_of(NAME, session, 'side', root)}"

    def _row(self, key: tuple[str | None, ...], request: _Request) -> TurnRow:
        message = inner(request.last.get("message"))
        usage = inner(message.get("usage"))
        cut = request.stop in ("max_tokens", "model_context_window_exceeded")
        diagnosis = inner(inner(message.get("diagnostics")).get("cache_miss_reason"))
        return row_of(
            NAME,
            key,
            started_at=request.started_at,
            ended_at=request.ended_at,
            recorded_at=request.answered_at,
            usage=request.usage,
            status=str(Status.INCOMPLETE) if cut else None,
            session=_session(request.first),
            chain=request.chain,
            **request.epoch,
            client=NAME,
            client_version=text(request.first.get("version")),
            upstream=UPSTREAM,
            model=text(message.get("model")),
            service_tier=text(usage.get("service_tier")),
            response_id=text(message.get("id")),
            provider_miss_reason=text(diagnosis.get("type")),
        )


def _session(line: dict[str, Any]) -> str | None:
    """A forked session's copies belong to the session that they were copied from."""
    source = inner(line.get("forkedFrom"))
    return text(source.get("sessionId")) or text(line.get("sessionId"))


def _key(line: dict[str, Any], message: dict[str, Any]) -> tuple[str | None, ...]:
    name, request = text(message.get("id")), text(line.get("requestId"))
    if name is None and request is None:
        return ("line", text(line.get("uuid")), text(line.get("timestamp")))
    return ("request", name, request)


def _usage(told: dict[str, Any]) -> Usage:
    net = count(told.get("input_tokens"))
    read, written = (count(told.get(f"cache_{name}_input_tokens")) for name in ("read", "creation"))
    return Usage(
        input_tokens=None if net is None else net + (read or 0) + (written or 0),
        cached_tokens=read,
        cache_write_tokens=written,
        cache_write_long_tokens=count(
            inner(told.get("cache_creation")).get("ephemeral_1h_input_tokens")
        ),
        output_tokens=count(told.get("output_tokens")),
        state=UsageState.REPORTED,
    )


def _greater(one: Usage, other: Usage) -> Usage:
    """Figures grow from line to line, so that the greatest is the last one that there was."""
    figures = {
        name: max(known)
        for name in _FIGURES
        if (known := [u for u in (getattr(one, name), getattr(other, name)) if u is not None])
    }
    return Usage(**figures, state=UsageState.REPORTED)


def _remember(found: OrderedDict[str, Any], name: str, value: Any) -> None:
    found[name] = value
    if len(found) > _REMEMBERED:
        found.popitem(last=False)


CLAUDE_CODE = Importer(NAME, "a transcript of Claude Code", recognizes, read)
