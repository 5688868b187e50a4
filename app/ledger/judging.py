"""Verdicts into the ledger: rows that have none yet are judged, with all that depends on them.

A generation turn without a verdict waits; ``ix_turns_unjudged`` knows the sessions that have one.
Of a session that goes on at its end only what is new is read, and what is remembered of it says
the rest (``app.ledger.going_on``); any other change (a row from an import amid others, one that was
merged or deleted, the first time after a start) has its rows read anew from the beginning, some
hundred at a time. So the verdicts are the same whatever came when, and however often it was broken
off.

How a session is judged is not known here: ``app.judging`` brings it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, and_, func, select, text
from sqlalchemy.exc import OperationalError

from app.ledger import going_on, store, under_way
from app.ledger.database import WRITES
from app.ledger.going_on import ORDER, TURNS, Fold, Known, Remembered
from app.ledger.grounds import JUDGED_BY
from app.ledger.models import UNJUDGED, ledger_facts, turns
from app.ledger.rollups import state as states
from app.ledger.rollups import tables
from app.ledger.rows import COLUMNS, TurnRow
from app.ledger.store import NO_VERDICT, Verdict
from engine.model import Kind

AT_ONCE = 500
"""Rows of one transaction."""
LEASE_MS = 30_000
"""So long after its last transaction nobody else takes over from a process that judges."""
TRIES = 5
"""For a session that others change at the same time; then it waits for the next run."""
OWNER = "judged_by"

_GIVE_WAY = "SET LOCAL lock_timeout = '500ms'"
"""Half of what PostgreSQL waits before it looks for a circle and ends any one in it: who judges can
begin again, and who deletes or merges rows need not know how."""
_OVERTAKEN = frozenset({"40001", "40P01", "55P03"})
"""PostgreSQL: others changed the same rows, wait for each other with us in a circle, or take
long."""

c = turns.c
_NEEDED = (*JUDGED_BY, "cache_verdict", "cache_grade", "missed_tokens")
_BARE: dict[str, Any] = dict.fromkeys(COLUMNS) | {
    "recorded_at": 0,
    "eligible": False,
    "session_key": "",
}
"""What no verdict depends on."""


@dataclass(slots=True)
class _Work:
    fold: Fold
    ids: Sequence[int]
    """Rows to be pushed, in their order."""
    guard: int | None
    """The last generation turn of them."""
    others: int
    """Those that are no generation."""
    last: tuple[Any, ...] | None = None
    """The order of the last one."""


class NotOurs(Exception):
    """Another process judges at present."""


class _Changed(Exception):
    """Rows were changed by others meanwhile: they are judged the next time."""


@dataclass(slots=True)
class Judging:
    """Judges what waits. For one thread; what it remembers may be forgotten at any time."""

    engine: Engine
    new_fold: Callable[[bool], Fold]
    """Of a session, of which is told whether its beginning is no longer kept."""
    now: Callable[[], int]
    """Epoch milliseconds."""
    owner: str
    """A name that no other process has."""
    remembered: Remembered = field(default_factory=lambda: Remembered(TURNS))
    _until: int = 0
    """Up to this id rows of sessions that are remembered were looked at."""

    def run(
        self,
        *,
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda _done: None,
        between: Callable[[], None] = lambda: None,
        take_over: bool = False,
    ) -> int:
        """Judge all that waits now; returns how many rows were read for it.

        ``between`` is called after each transaction. With ``take_over`` another process that is
        at it leaves it to this one. Raises ``NotOurs`` where one is and stays.
        """
        done = 0
        for count in self._run(stop, take_over=take_over):
            done += count
            progress(done)
            between()
        return done

    def waiting(self) -> int:
        """How many turns wait for a verdict."""
        query = select(func.count()).select_from(turns).where(text(UNJUDGED))
        with self.engine.connect() as connection:
            return connection.execute(query).scalar_one()

    def release(self) -> None:
        """Let others judge at once."""
        self.remembered.clear()
        with self.engine.execution_options(**WRITES).begin() as connection:
            found = _owner(connection)
            if found is not None and found[0] == self.owner:
                states.remove(connection, OWNER)

    def _run(self, stop: Callable[[], bool], *, take_over: bool) -> Iterator[int]:
        yield from self._go_on(stop, take_over=take_over)
        session, tries = "", 0
        while not stop() and (next_one := self._next(session)) is not None:
            try:
                for count in self._judge(next_one, take_over=take_over):
                    yield count
                    if stop():
                        break
            except _Changed:
                tries += 1
                if tries < TRIES:
                    continue
            session, tries = next_one, 0

    def _go_on(self, stop: Callable[[], bool], *, take_over: bool) -> Iterator[int]:
        """Judge what is new in sessions that are remembered, and those that have just begun."""
        while not stop():
            with self.engine.connect() as connection:
                if not len(self.remembered):
                    self._until = _newest(connection)
                    return
                found = going_on.news(connection, self.remembered, self._until, AT_ONCE)
            if found is None:
                return
            last, new = found
            if new:
                yield self._judge_new(new, last, take_over=take_over)
            self._until = max(self._until, last)

    def _judge_new(self, new: Mapping[str, Sequence[int]], last: int, *, take_over: bool) -> int:
        went_on: Mapping[str, Known] = {}
        try:
            with self._transaction() as connection:
                if not self._hold(connection, take_over=take_over):
                    return 0
                # Taken out: what a transaction that fails leaves of them is of no use.
                sessions = {
                    session: self.remembered.take(session) or self._begun(connection, session)
                    for session in new
                }
                went_on = going_on.judge(connection, sessions, new, last)
        except _Changed:
            for session in new:
                self.remembered.forget(session)
            return 0
        for session, known in went_on.items():
            self.remembered.put(session, known, self.now())
        return sum(len(new[session]) for session in went_on)

    def _begun(self, connection: Connection, session: str) -> Known:
        return Known(self.new_fold(_is_cut(connection, session)), 0, 0, (), None)

    def _next(self, after: str) -> str | None:
        """A session with a turn that waits. What came since rows were looked at is not asked for:
        the next time it is, nearly always, all that is new in its session."""
        waits = and_(text(UNJUDGED), c.id <= self._until)
        query = select(func.min(c.session_key)).where(waits, c.session_key > after)
        with self.engine.connect() as connection:
            found: str | None = connection.execute(query).scalar_one()
        return found

    def _judge(self, session: str, *, take_over: bool) -> Iterator[int]:
        self.remembered.forget(session)
        work, at = None, 0
        while work is None or at < len(work.ids):
            with self._transaction() as connection:
                kept = self._hold(connection, take_over=take_over)
                if work is None:
                    work = self._work(connection, session)
                    _lock(connection, session, work)
                    if len(work.ids) > AT_ONCE:
                        _wait_on(connection, work.guard)
                        under_way.begin(connection, session)
                elif not kept or not under_way.undisturbed(connection, session):
                    raise _Changed
                some = work.ids[at : at + AT_ONCE]
                _push(connection, work.fold, some)
                if at and at + len(some) == len(work.ids):
                    under_way.end(connection)
            at += len(some)
            if at == len(work.ids) and work.guard is not None and work.last is not None:
                known = Known(work.fold, at, max(work.ids), work.last, work.guard)
                self.remembered.put(session, known, self.now())
            yield len(some)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        engine = self.engine.execution_options(**WRITES)
        try:
            with engine.begin() as connection:
                if connection.dialect.name == "postgresql":
                    connection.exec_driver_sql(_GIVE_WAY)
                yield connection
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) in _OVERTAKEN:
                raise _Changed from error
            raise

    def _hold(self, connection: Connection, *, take_over: bool) -> bool:
        """Be the one that judges; forget all if another one was it meanwhile.

        Returns whether this one was it since its last transaction.
        """
        now = self.now()
        found = _owner(connection, lock=True)
        if found is None or found[0] != self.owner:
            if found is not None and not take_over and now < found[1] + LEASE_MS:
                raise NotOurs
            self.remembered.clear()
            self._until = _newest(connection)
        if found is None or found[0] != self.owner or now > found[1] + LEASE_MS // 3:
            states.put(connection, OWNER, f"{self.owner} {now}")
        return found is not None and found[0] == self.owner

    def _work(self, connection: Connection, session: str) -> _Work:
        query = select(c.id, c.kind, *ORDER).where(c.session_key == session).order_by(*ORDER)
        found = connection.execute(query, execution_options={"yield_per": AT_ONCE})
        return _listed(self.new_fold(_is_cut(connection, session)), found)


def _newest(connection: Connection) -> int:
    newest: int | None = connection.execute(select(func.max(c.id))).scalar_one()
    return newest or 0


def _listed(fold: Fold, rows: Iterable[Any]) -> _Work:
    ids, guard, others, last = array("q"), None, 0, None
    for row in rows:
        ids.append(row[0])
        if row[1] == Kind.GENERATION:
            guard = row[0]
        else:
            others += 1
        last = row
    return _Work(fold, ids, guard, others, None if last is None else tuple(last[2:]))


def _is_cut(connection: Connection, session: str) -> bool:
    """Whether the beginning of a session was deleted as too old."""
    since = states.read(connection).rows_from
    if since is None:
        return False
    s = tables.sessions.c
    query = select(func.min(s.first_at)).where(s.session_key == session)
    first = connection.execute(query).scalar_one()
    return first is not None and first < since


def _lock(connection: Connection, session: str, work: _Work) -> None:
    """Let nobody change the rows that are judged first, once it is sure that they are the ones that
    were listed, in that order, and that nothing came that has rows after it judged anew.

    To see nothing of what others write meanwhile would not do: whoever changes sums that gateways
    change too would fail time and again.
    """
    if connection.dialect.name != "postgresql":
        return
    first = list(work.ids[:AT_ONCE])
    query = select(c.id, *ORDER).where(c.session_key == session, c.id.in_(first))
    locked = connection.execute(query.order_by(c.id).with_for_update()).all()
    ordered = sorted(locked, key=lambda row: tuple(row[1:]))
    others = and_(c.session_key == session, c.kind != Kind.GENERATION)
    there = connection.execute(select(func.count()).where(others)).scalar_one()
    if [row[0] for row in ordered] != first or there != work.others:
        raise _Changed


def _wait_on(connection: Connection, guard: int | None) -> None:
    """Let the last turn of a long piece of work wait until all of it is done."""
    turn_id = connection.execute(select(c.turn_id).where(c.id == guard)).scalar_one_or_none()
    if turn_id is None:  # it went since it was listed
        raise _Changed
    store.put_verdicts(connection, {turn_id: NO_VERDICT})


def _push(connection: Connection, fold: Fold, ids: Sequence[int]) -> None:
    query = select(c.id, *(c[name] for name in _NEEDED)).where(c.id.in_(list(ids)))
    by_id = {row[0]: row[1:] for row in connection.execute(query.order_by(c.id).with_for_update())}
    if len(by_id) < len(ids):
        raise _Changed
    had: dict[str, Verdict] = {}
    wanted: dict[str, Verdict] = {}
    for number in ids:
        row = TurnRow(**(_BARE | dict(zip(_NEEDED, by_id[number], strict=True))))
        had[row.turn_id] = Verdict(row.cache_verdict, row.cache_grade, row.missed_tokens)
        wanted |= fold.push(row)
    mine = {turn_id: new for turn_id, new in wanted.items() if had.get(turn_id, new) != new}
    # One that was reset since it was read is not to be taken for judged.
    earlier = {turn_id: new for turn_id, new in wanted.items() if turn_id not in had}
    store.put_verdicts(connection, mine, revised=earlier)


def _owner(connection: Connection, *, lock: bool = False) -> tuple[str, int] | None:
    query = select(ledger_facts.c.value).where(ledger_facts.c.name == OWNER)
    value = connection.execute(query.with_for_update() if lock else query).scalar_one_or_none()
    if value is None:
        return None
    owner, _, since = value.partition(" ")
    return owner, int(since)
