"""Rollouts of Codex: what the client writes down of each session (docs/formats.md).

Usage has had three sources, and each request is taken from the best that its file has: a record of
each response (``token_usage_record``), the counts of the session (``token_count``), or, in the
oldest files, none. A request's id does not hang on the file that it stands in, so that a file that
was moved, compressed or cut makes the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from app.importers.codex_forks import Descent, Whose
from app.importers.codex_lines import Told, recognizes, told
from app.importers.codex_rows import (
    ROLLBACK,
    Session,
    Turn,
    duration,
    failure,
    parent_of,
)
from app.importers.codex_usage import Counter, Figures, No, Request, figures
from app.importers.foreign import milliseconds
from app.importers.importer import Around, Importer, Item, Remark, Skipped, Vector
from app.importers.json_lines import inner, text
from app.importers.lines import Line
from app.ledger.rows import TurnRow
from engine.model import Status, Usage

_ID = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_NAME = re.compile(rf"rollout-.*?{_ID}(?:_{_ID})?", re.IGNORECASE)
NO_TIME = "has no time that can be read"
NO_SESSION = "is of a session that the file does not name"
NO_USAGE = "Codex wrote down no usage in this session: how many requests it made is unknown."
RECORD_REPEATED = "repeats a record that was there before"


def session_of(name: str) -> str | None:
    """The session that a file's name tells."""
    return next(iter(_names(name)), None)


def _names(name: str) -> list[str]:
    """The ids in a file's name: of two the first is the session's, the other one of a file that
    took the place of a session's earlier one."""
    found = _NAME.match(name)
    return [part.lower() for part in found.groups() if part] if found else []


def read(lines: Iterable[Line], around: Around | None = None) -> Iterator[Item]:
    """The requests of one rollout."""
    yield from _File(around or Around()).read(lines)


def vectors(lines: Iterable[Line]) -> list[Vector]:
    """All counts of a rollout, its own and copied ones, for comparison with a copy of them."""
    counter = Counter()
    found: list[Vector] = []
    for line in told(lines):
        if isinstance(line, Told):
            if line.event == "token_count":
                request = counter.meet(line.payload.get("info"))
                if isinstance(request, Request):
                    found.append(request.vector)
            else:
                _mark(counter, line)
    return found


def _mark(counter: Counter, line: Told) -> None:
    """After these, counters may fall."""
    if line.type in ("compacted", "session_meta") or line.event in _REWRITING:
        counter.mark()


_REWRITING = frozenset({"context_compacted", "thread_rolled_back"})
_TURN_BEGINS = frozenset({"task_started", "turn_started"})
_TURN_ENDS = frozenset({"task_complete", "turn_complete", "turn_aborted"})


class _File:
    def __init__(self, around: Around) -> None:
        names = _names(around.name)
        self._named = next(iter(names), None)
        self._both = names if len(names) > 1 else []
        self._session: Session | None = None
        self._descent = Descent(around.parents)
        self._counter = Counter()
        self._turn = Turn()
        self._records = False
        """Since there is one record per response, counts tell nothing more."""
        self._record_keys: set[tuple[Any, ...]] = set()
        self._last: Request | None = None
        """The latest count that was taken, until something else is."""
        self._input = ""
        """The time of the latest line that goes to the model."""
        self._told = False

    def read(self, lines: Iterable[Line]) -> Iterator[Item]:
        for line in told(lines):
            if isinstance(line, Skipped):
                yield line
            else:
                yield from self._meet(line)
        yield from self._turn.release()
        if not self._told:
            yield Remark(NO_USAGE)

    def _meet(self, line: Told) -> Iterator[Item]:
        _mark(self._counter, line)
        if line.event == "token_count":
            yield from self._count(line)
        elif line.type == "token_usage_record":
            yield from self._record(line)
        elif line.event == "output":
            self._turn.answered = self._turn.sent
        elif line.event == "input":
            self._goes_to_the_model(line)
        elif line.type == "turn_context":
            yield from self._begin(text(line.payload.get("turn_id")), line)
            self._goes_to_the_model(line)
            self._known().context(line.payload)
        elif line.event in _TURN_BEGINS:
            yield from self._begin(text(line.payload.get("turn_id")), line, anew=True)
            self._goes_to_the_model(line)
        elif line.event in _TURN_ENDS:
            yield from self._end(line)
        elif line.type == "session_meta":
            self._meta(line)
        elif line.type == "compacted":
            self._turn.compaction(text(line.payload.get("response")))
            self._known().compacted()
            self._goes_to_the_model(line)
        elif line.event == "context_compacted":
            self._known().compacted()
        elif line.event == "thread_rolled_back":
            self._known().replaced(ROLLBACK)
        elif line.event == "thread_settings_applied":
            self._known().settings(line.payload)
        elif line.event == "error":
            self._turn.error = line.payload

    # Whose it is

    def _known(self, name: str | None = None) -> Session:
        """The file's session; a file without a beginning is named by its name."""
        if self._session is None or not self._session.name:
            name = self._named or name or ""
            self._session = self._session or Session(name, root=name or None)
            self._session.name = name
            self._session.root = self._session.root or name or None
            if name:
                self._descent.born(name, None)
        return self._session

    def _meta(self, line: Told) -> None:
        payload = line.payload
        name = text(payload.get("id"))
        if name is None:
            return
        if self._session is None:
            # A first line that is lost leaves the meta of a copied history in its place.
            own = name if line.number == 1 or self._named is None else self._named
            self._session = Session(own, root=own)
            created = text(payload.get("timestamp")) or line.time
            self._descent.born(own, milliseconds(created) if own == name else None)
            if own == name:
                self._session.meta(payload)
                forked, parent = text(payload.get("forked_from_id")), parent_of(payload)
                if forked is not None:
                    # As 0.171 does: a place in the parent's file instead of a copy of it.
                    pointing = payload.get("forked_from_ordinal_exclusive") is not None
                    self._descent.came_from(forked, copies=not pointing)
                if parent is not None:
                    self._descent.came_from(parent, copies=False)
        elif name == self._session.name:
            self._session.client_of(payload)
        if name != self._session.name:
            self._descent.came_from(name, copies=True)

    def _rename(self, name: str) -> None:
        """A record names another one of the file's two ids: its session goes by that name."""
        session = self._known()
        if name != session.name:
            session.rename(name)
            self._descent.session = name

    # Turns

    def _goes_to_the_model(self, line: Told) -> None:
        self._input = line.time
        self._turn.sent, self._turn.answered = True, False

    def _begin(self, name: str | None, line: Told, *, anew: bool = False) -> Iterator[Item]:
        """``anew``: the line says so, even if it names no turn."""
        if name == self._turn.name if name is not None else not anew:
            return
        rest = self._turn
        self._turn = Turn(name, line.time)
        self._descent.turn(name)
        yield from rest.release()

    def _end(self, line: Told) -> Iterator[Item]:
        turn, payload = self._turn, line.payload
        name = text(payload.get("turn_id"))
        if name is not None and turn.name is not None and name != turn.name:
            return
        turn.name = turn.name or name
        turn.error = inner(payload.get("error")) or turn.error
        ttft = payload.get("time_to_first_token_ms")
        if turn.rows:
            turn.time_to_first_token(ttft)
        row = self._without_usage(line, aborted=line.event == "turn_aborted")
        if row is not None:
            self._told = True
            yield from turn.add(row if turn.used else replace(row, ttft_ms=duration(ttft)))
        self._turn = Turn()
        self._descent.turn(None)
        yield from turn.release()

    def _without_usage(self, line: Told, *, aborted: bool) -> TurnRow | None:
        """A row for what a turn sent without hearing of usage, where it is known to have sent."""
        turn = self._turn
        # Before there were records, answers were written down after their usage.
        answered = turn.answered and (self._records or not turn.used)
        code, http_status = None, None
        if aborted:
            found = str(Status.CLIENT_CLOSED) if answered else None
        elif turn.error:
            failed = failure(turn.error, answered=answered)
            found, code, http_status = failed or (None, None, None)
        else:
            found = str(Status.COMPLETED) if turn.answered and not turn.used else None
        ended = milliseconds(line.time)
        if found is None or ended is None or self._descent.of_turn() is not Whose.OWN:
            return None
        session = self._known()
        if not session.name:
            return None
        started = milliseconds(self._input if turn.used else turn.began or self._input)
        return session.row(
            ("end", turn.name or line.time),
            started=ended if started is None else started,
            ended=ended,
            usage=Usage(),
            status=found,
            error_code=code,
            http_status=http_status,
            turn_group=turn.name,
        )

    # Usage

    def _count(self, line: Told) -> Iterator[Item]:
        if self._records:
            return
        request = self._counter.meet(line.payload.get("info"))
        if request is No.NOTHING:
            return
        if isinstance(request, No):
            yield Skipped(line.number, request.value)
            return
        self._turn.used = self._told = True
        whose = self._descent.of(request.vector, milliseconds(line.time))
        self._last = request if whose is Whose.OWN else None
        yield from self._used(line, whose, request.usage, ("count", *request.key))

    def _record(self, line: Told) -> Iterator[Item]:
        payload = line.payload
        used, whole = figures(payload.get("usage")), figures(payload.get("thread_token_usage"))
        thread, response = text(payload.get("thread_id")), text(payload.get("response_id"))
        if self._session is None or not self._session.name:
            self._known(thread)
        if thread in self._both:
            self._rename(thread)
        self._turn.used = self._told = True
        if not self._records:
            self._records = True
            before, self._last = self._last, None
            if before is not None and before.vector == whole.vector + used.vector:
                self._turn.adopt(response)  # the one response that both sources tell of
                return
        turn = text(payload.get("turn_id"))
        key = ("record", turn, response, *whole.vector, *used.vector)
        whose = self._descent.of_thread(thread, whole.vector + used.vector)
        if key in self._record_keys:
            yield Skipped(line.number, RECORD_REPEATED)
            return
        self._record_keys.add(key)
        root = text(payload.get("session_id"))
        yield from self._used(line, whose, used, key, response=response, turn=turn, root=root)

    def _used(
        self,
        line: Told,
        whose: Whose,
        used: Figures,
        key: tuple[str | int | None, ...],
        *,
        response: str | None = None,
        turn: str | None = None,
        root: str | None = None,
    ) -> Iterator[Item]:
        sent, self._turn.sent, self._turn.answered = self._turn.sent, False, False
        session = self._known()
        if whose is not Whose.OWN:
            session.inherited()
            yield Skipped(line.number, whose.value)
            return
        ended = milliseconds(line.time)
        if ended is None or not session.name:
            yield Skipped(line.number, NO_TIME if ended is None else NO_SESSION)
            return
        session.root = root or session.root
        started = milliseconds(self._input) if sent else None
        yield from self._turn.add(
            session.row(
                key,
                started=ended if started is None else started,
                ended=ended,
                usage=used.usage(),
                response_id=response,
                turn_group=turn or self._turn.name,
            )
        )


CODEX = Importer("codex", "a rollout of Codex", recognizes, read, read)
