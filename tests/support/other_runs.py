"""Loops of an embedded agent, and conversations over kept responses, as runs of the soak."""

from __future__ import annotations

from collections.abc import Container, Sequence

from engine.model import TurnFacts
from tests.support.agent_loops import AgentLoop
from tests.support.kept_conversations import KeptConversations
from tests.support.report import Report


class _Steps:
    """Each step is a function of the seed and its number, whichever others are left out."""

    name = ""

    def __init__(self, seed: int, left_out: Container[int]) -> None:
        self.report = Report()
        self._seed, self._left_out, self._step = seed, left_out, 0

    def _is_next(self) -> str | None:
        """The seed of the next step; None where it is left out."""
        self._step += 1
        return None if self._step in self._left_out else f"{self._seed}/{self._step}"

    def _tell(self, wrong: Sequence[str]) -> None:
        self.report.faults = [f"{self.name}: {what}" for what in wrong]

    def _add_up(self, rows: Sequence[TurnFacts], transcripts: int) -> None:
        report = self.report
        report.turns = report.clients[self.name] = len(rows)
        for row in rows:
            report.modes[str(row.mode)] += 1
            report.reasons[str(row.reason)] += 1
            report.outcomes[f"{row.mode} {row.reason}"] += 1
            report.continued[self.name] += bool(row.mode and row.mode.incremental)
        report.checked["transcripts"] = transcripts


class Loop(_Steps):
    name = "embedded"

    def __init__(self, seed: int, left_out: Container[int]) -> None:
        super().__init__(seed, left_out)
        self._loop = AgentLoop(seed)

    async def step(self) -> None:
        seed = self._is_next()
        if seed is not None:
            self._loop.random.seed(seed)
            await self._loop.step()
            self._tell(self._loop.wrong)

    def finish(self) -> None:
        """Every step has judged its turn."""

    async def aclose(self) -> None:
        self._add_up(self._loop.facts, self._loop.compared)
        self.report.checked["frozen items"] = self._loop.frozen
        await self._loop.session.aclose()


class Kept(_Steps):
    name = "kept"

    def __init__(self, seed: int, left_out: Container[int]) -> None:
        super().__init__(seed, left_out)
        self._run = KeptConversations(seed)

    async def step(self) -> None:
        seed = self._is_next()
        if seed is not None:
            self._run.random.seed(seed)
            await self._run.step()
            self._tell(self._run.faults)

    def finish(self) -> None:
        """Every step has judged its turns."""

    async def aclose(self) -> None:
        self._add_up(self._run.stack.facts, self._run.compared)
        await self._run.stack.driver.aclose()
