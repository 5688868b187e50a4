"""Rollouts of Codex in the shapes of their eras, made line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from app.importers.codex import read
from app.importers.importer import Around, Parents, Remark, Skipped, Vector
from app.ledger.rows import TurnRow
from tests.support.importing import lines_of

BEGAN = datetime(2026, 11, 1, 10, 0, tzinfo=UTC)


def thread(number: int, at: float = 0) -> str:
    """The id of a session or turn that was made ``at`` seconds after ``BEGAN``."""
    ms = round((BEGAN.timestamp() + at) * 1_000)
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7000-8000-{number:012x}"


THREAD = thread(1)


def usage(given: int, cached: int | None = 0, out: int = 10, **more: int) -> dict[str, int]:
    """The figures of a request, as Codex writes them."""
    made = {"input_tokens": given, "output_tokens": out, "total_tokens": given + out, **more}
    return made if cached is None else {**made, "cached_input_tokens": cached}


def added(*some: dict[str, int]) -> dict[str, int]:
    return {name: sum(one.get(name, 0) for one in some) for name in {n for s in some for n in s}}


class Rollout:
    """A file; each line is a second later than the one before, unless ``at`` says when."""

    def __init__(self, name: str = THREAD, **meta: Any) -> None:
        self.lines: list[bytes] = []
        self.total: dict[str, int] = {}
        self.name = name
        self._second = -1.0
        self.meta(name, **meta)

    def line(self, kind: str, payload: Any, at: float | None = None) -> Rollout:
        self._second = self._second + 1 if at is None else at
        moment = BEGAN + timedelta(seconds=self._second)
        text = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {"timestamp": text, "type": kind, "payload": payload}
        return self.raw(json.dumps(record, separators=(",", ":")).encode())

    def raw(self, *lines: bytes) -> Rollout:
        self.lines += lines
        return self

    def meta(self, name: str, **more: Any) -> Rollout:
        known = {"originator": "codex_cli_rs", "cli_version": "0.99.0", "model_provider": "openai"}
        return self.line("session_meta", {"id": name, **known, **more})

    def event(self, name: str, at: float | None = None, **more: Any) -> Rollout:
        return self.line("event_msg", {"type": name, **more}, at)

    def context(self, model: str = "gpt-5.5", **more: Any) -> Rollout:
        return self.line("turn_context", {"model": model, "effort": "high", **more})

    def started(self, turn: str | None = None) -> Rollout:
        return self.event("task_started", **({} if turn is None else {"turn_id": turn}))

    def done(self, turn: str | None = None, **more: Any) -> Rollout:
        return self.event("task_complete", **({} if turn is None else {"turn_id": turn}), **more)

    def sent(self) -> Rollout:
        return self.line("response_item", {"type": "message", "role": "user", "content": []})

    def answered(self) -> Rollout:
        return self.line("response_item", {"type": "message", "role": "assistant", "content": []})

    def counted(self, last: Any, total: Any = ..., at: float | None = None) -> Rollout:
        """A count; without ``total`` the session's has grown by ``last``."""
        if total is ...:
            self.total = total = added(self.total, last)
        info = {"total_token_usage": total, "last_token_usage": last}
        known = {name: value for name, value in info.items() if value is not None}
        limits = {"primary": {"used_percent": len(self.lines)}}
        return self.event("token_count", at, info=known, rate_limits=limits)

    def recorded(self, used: dict[str, int], response: str, **more: Any) -> Rollout:
        """A record of a response; the session's total grows by it."""
        self.total = added(self.total, used)
        payload = {
            "thread_id": self.name,
            "session_id": self.name,
            "response_id": response,
            "usage": used,
            "thread_token_usage": self.total,
            **more,
        }
        return self.line("token_usage_record", payload)

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)


def recorded(turn: str | None = None, **meta: Any) -> Rollout:
    """Three responses, each told of twice, as Codex does since it writes records."""
    file = Rollout(cli_version="0.171.0", session_id=THREAD, **meta).started(turn)
    for number, (given, cached) in enumerate(((9_000, 0), (9_500, 8_960), (9_900, 9_472)), 1):
        file.sent().answered().recorded(usage(given, cached), f"resp_{number}", turn_id=turn)
        file.counted(usage(given, cached), total=file.total)
        file.counted(usage(given, cached), total=file.total)
    return file


def items(
    data: bytes | Rollout, name: str = "", parents: Parents = lambda _session: None
) -> list[TurnRow | Skipped | Remark]:
    whole = data.data if isinstance(data, Rollout) else data
    return list(read(lines_of(whole), Around(name, parents)))


def rows(data: bytes | Rollout, **around: Any) -> list[TurnRow]:
    return [item for item in items(data, **around) if isinstance(item, TurnRow)]


def skipped(data: bytes | Rollout, **around: Any) -> list[str]:
    return [str(item) for item in items(data, **around) if isinstance(item, Skipped)]


def inputs(some: Iterable[TurnRow]) -> list[int | None]:
    return [row.input_tokens for row in some]


def known(**histories: list[Vector]) -> Parents:
    return histories.get
