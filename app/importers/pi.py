"""Sessions of pi and of oh-my-pi, which has grown out of it: ``~/.pi`` and ``~/.omp``.

A session is a tree: each entry names the one before it (``parentId``), and whoever goes back to an
earlier one goes on from there, in the same file. ``input`` leaves out what was read from the cache
and what was written to it. A message has the time of its request, its entry the time of its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from app.importers.foreign import Epochs, chain_of, milliseconds, row_of
from app.importers.importer import Importer, Item, Skipped
from app.importers.json_lines import count, first_records, inner, number, records, text
from app.importers.lines import Line
from app.importers.own_row import NO_TIME
from app.ledger.rows import TurnRow
from engine.model import Kind, Status, Usage, UsageState

NAME = "pi"
OH_MY_PI = "oh-my-pi"
_HEADER = frozenset({"id", "timestamp"})
_BREAKS = {"compaction": "compaction", "branch_summary": "branch", "reset_boundary": "reset"}
"""Entries after which the model is not sent what was before them."""
_STATUSES = {
    "length": Status.INCOMPLETE,
    "error": Status.ERROR,
    "aborted": Status.CLIENT_CLOSED,
}
_FAILED = frozenset({Status.ERROR, Status.CLIENT_CLOSED})
_FILE_NAME = re.compile(r"_([^_/\\]+)\.jsonl$")
_PATH = re.compile(r"[/\\]|\.jsonl$")
_FIGURES = ("input", "output", "cacheRead", "cacheWrite")


def recognizes(head: bytes) -> bool:
    return any(
        found.get("type") == "session" and found.keys() >= _HEADER for found in first_records(head)
    )


def read(lines: Iterable[Line]) -> Iterator[Item]:
    session = _Session()
    for found in records(lines):
        if isinstance(found, Skipped):
            yield found
        else:
            item = session.item(*found)
            if item is not None:
                yield item


@dataclass(frozen=True, slots=True)
class _State:
    """What an entry's path from the root tells of the next request on it."""

    answer: int | None = None
    """The last answer, by its place among the file's."""
    word: str | None = None
    """What has rewritten the history since."""
    provider: str | None = None
    effort: str | None = None
    tier: Any = None


class _Session:
    def __init__(self) -> None:
        self._name: str | None = None
        self._begun_at = 0
        self._copied_from: str | None = None
        self._states: dict[str, _State] = {}
        self._last = _State()
        """Of the entry before this line."""
        self._answers = 0
        self._epochs = Epochs()

    def item(self, line: int, entry: dict[str, Any]) -> TurnRow | Skipped | None:
        kind = text(entry.get("type"))
        if kind == "session":
            self._name = text(entry.get("id"))
            self._begun_at = milliseconds(entry.get("timestamp")) or 0
            self._copied_from = _parent(text(entry.get("parentSession")))
            return None
        before = self._before(entry)
        after, item = before, None
        if kind in _BREAKS:
            after = replace(before, word=_BREAKS[kind])
            item = self._summary(line, entry, before)
        elif kind == "thinking_level_change":
            after = replace(before, effort=text(entry.get("thinkingLevel")))
        elif kind == "service_tier_change":
            after = replace(before, tier=entry.get("serviceTier"))
        elif kind == "message":
            message = inner(entry.get("message"))
            if message.get("role") == "assistant":
                item, after = self._answer(line, entry, message, before)
        self._last = after
        name = text(entry.get("id"))
        if name is not None:
            self._states[name] = after
        return item

    def _before(self, entry: dict[str, Any]) -> _State:
        """The state of the entry that this one goes on from. Old files have no tree; where a line
        is missing, the one before it stands in."""
        if "parentId" not in entry:
            return self._last
        parent = entry["parentId"]
        if parent is None:
            return _State()
        return self._states.get(parent, self._last) if isinstance(parent, str) else self._last

    def _answer(
        self, line: int, entry: dict[str, Any], message: dict[str, Any], before: _State
    ) -> tuple[TurnRow | Skipped, _State]:
        ended_at = milliseconds(entry.get("timestamp"))
        if ended_at is None:
            return Skipped(line, NO_TIME, "timestamp"), before
        asked = count(message.get("timestamp"))
        status = _STATUSES.get(str(message.get("stopReason")), Status.COMPLETED)
        # What failed is not in the history that is sent next: it is passed over.
        failed = status in _FAILED
        word = None if failed else self._word(before)
        told = inner(message.get("usage"))
        provider = text(message.get("provider"))
        ttft, duration = number(message.get("ttft")), number(message.get("duration"))
        row = self._row(
            entry,
            ("answer", message.get("timestamp"), text(message.get("responseId"))),
            told,
            started_at=ended_at if asked is None else min(asked, ended_at),
            ended_at=ended_at,
            status=str(status),
            **self._epochs.next(word),
            client=NAME if ttft is None and duration is None else OH_MY_PI,
            upstream=provider or before.provider,
            model=text(message.get("model")),
            reasoning_effort=before.effort,
            service_tier=_tier(before.tier, provider),
            response_id=text(message.get("responseId")),
            ttft_ms=ttft,
            duration_ms=duration,
        )
        if failed:
            return row, before
        self._answers += 1
        return row, replace(
            before, answer=self._answers, word=None, provider=provider or before.provider
        )

    def _word(self, before: _State) -> str | None:
        """What lies between this answer and the one before it in the file."""
        gone_back = before.answer != (self._answers or None)
        return before.word or ("branch" if gone_back else None)

    def _summary(
        self, line: int, entry: dict[str, Any], before: _State
    ) -> TurnRow | Skipped | None:
        """The request that made a summary, where the entry tells of it."""
        told = inner(entry.get("usage"))
        if not told:
            return None
        ended_at = milliseconds(entry.get("timestamp"))
        if ended_at is None:
            return Skipped(line, NO_TIME, "timestamp")
        return self._row(
            entry,
            ("summary", text(entry.get("type")), None),
            told,
            started_at=ended_at,
            kind=str(Kind.COMPACTION),
            client=NAME,
            upstream=before.provider,
        )

    def _row(
        self,
        entry: dict[str, Any],
        identity: tuple[str | int | None, ...],
        told: dict[str, Any],
        **known: Any,
    ) -> TurnRow:
        """A forked session's file begins with entries of another one: they are that one's. So what
        a record is known by has nothing of the file, nor ids, which old files got when they were
        made into trees."""
        copied = self._copied_from is not None and known["started_at"] < self._begun_at
        session = self._copied_from if copied else self._name
        figures = [count(told.get(name)) for name in _FIGURES]
        return row_of(
            NAME,
            (*identity, text(entry.get("timestamp")), *figures),
            usage=_usage(told),
            session=session,
            chain=chain_of(NAME, session),
            **known,
        )


def _parent(told: str | None) -> str | None:
    """The id of the session that a fork was made of: told by itself, or in the name of its file."""
    if told is None:
        return None
    found = _FILE_NAME.search(told)
    return found[1] if found else None if _PATH.search(told) else told


def _usage(told: dict[str, Any]) -> Usage:
    """pi writes 0 for what a provider left out; where all is 0, nothing was told."""
    net, out, cached, written = (count(told.get(name)) for name in _FIGURES)
    if not any((net, out, cached, written)):
        return Usage()
    reasoning = count(told.get("reasoning", told.get("reasoningTokens")))
    inside = reasoning is not None and out is not None and reasoning <= out
    return Usage(
        input_tokens=None if net is None else net + (cached or 0) + (written or 0),
        cached_tokens=cached,
        cache_write_tokens=written,
        cache_write_long_tokens=count(told.get("cacheWrite1h")),
        output_tokens=out,
        reasoning_tokens=reasoning if inside else None,
        state=UsageState.REPORTED,
    )


def _tier(told: Any, provider: str | None) -> str | None:
    """A service tier, or one for each family of providers."""
    if isinstance(told, dict) and provider is not None:
        told = told.get(provider, told.get(provider.split("-")[0]))
    return text(told)


PI = Importer(NAME, "a session of pi or oh-my-pi", recognizes, read)
