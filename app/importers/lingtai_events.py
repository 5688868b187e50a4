"""What LingTai's ``events.jsonl`` tells of the calls of the ledger beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.importers.importer import Skipped
from app.importers.json_lines import number, records, text
from app.importers.lines import Line

EVENTS = "events.jsonl"
_REBUILDS = {"psyche_molt": "molt", "refresh_complete": "refresh"}
_WANTED = (b"llm_response", *(word.encode() for word in _REBUILDS))


class Events:
    """The few that matter of very many, in memory that grows with the calls only."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.there = False
        self.durations: dict[str, float] = {}
        """Milliseconds that the provider took, by the call's id."""
        self.estimated: set[str | None] = set()
        """Calls whose figures are the tool's own estimate."""
        self._rebuilds: list[tuple[int, str]] = []
        """When the agent's context was built anew (epoch ms), and by what; the next one last."""
        for found in records(self._of_interest(lines)):
            if not isinstance(found, Skipped):
                self._keep(found[1])
        self._rebuilds.sort(reverse=True)

    def rebuilt(self, at: int) -> str | None:
        """What has rebuilt the context since the call that was asked for before, until ``at``.

        To molt is to leave the history; to be refreshed is to begin again with it.
        """
        words = set()
        while self._rebuilds and self._rebuilds[-1][0] <= at:
            words.add(self._rebuilds.pop()[1])
        return "molt" if "molt" in words else next(iter(words), None)

    def _of_interest(self, lines: Iterable[Line]) -> Iterable[Line]:
        for line in lines:
            self.there = True
            if any(word in line.data for word in _WANTED):
                yield line

    def _keep(self, event: dict[str, Any]) -> None:
        kind = text(event.get("type"))
        call = text(event.get("api_call_id"))
        if kind == "llm_response" and call is not None:
            wait = number(event.get("provider_wait_ms"))
            if wait is not None:
                self.durations[call] = wait
            if event.get("estimated") is True:
                self.estimated.add(call)
        elif kind in _REBUILDS:
            at = number(event.get("ts"))
            if at is not None:
                self._rebuilds.append((round(at * 1000), _REBUILDS[kind]))
