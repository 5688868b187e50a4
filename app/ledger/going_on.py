"""Sessions that go on at their ends: what is new in them is judged for all of them at once.

Of each the judging so far is remembered, so that its old rows are not read again. New rows are
found by their ids, whosesoever they are. Where a session has not just grown at its end it is
forgotten: whatever takes the ground from a verdict has a turn of its session wait for a new one
(``store``), and with that turn the session is read anew (``app.ledger.judging``).
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sqlalchemy import ColumnElement, Connection, literal_column

from app.ledger import store
from app.ledger.grounds import JUDGED_BY
from app.ledger.models import UNJUDGED
from app.ledger.rollups.among import among_these, listed, text
from app.ledger.rollups.broken import NEEDED
from app.ledger.rows import TurnRow, light
from app.ledger.store import Verdict
from engine.model import Kind

TURNS = 100_000
"""Turns that are remembered, of all sessions together; each takes some hundred bytes."""
IDLE_MS = 60_000
"""A session that has been still for so long makes room for others. Else those stay that are there:
if each new one were to drive out another, of too many none would be found again."""
STILL_MS = 1_800_000
"""One that has been still for so long is forgotten: to read it anew once takes little."""
_EACH = 512
"""Of a session no more turns are remembered."""
_EMPTY = 8
"""What a session takes beside them, in turns."""

_ORDER = (
    "ended_at", "started_at", "coalesce(epoch, -1)", "coalesce(epoch_turn, -1)",
    "coalesce(input_tokens, -1)", "turn_id",
)  # fmt: skip
ORDER: tuple[ColumnElement[Any], ...] = tuple(literal_column(one) for one in _ORDER)
"""``app.analysis.chains.order_of``."""
_VERDICT = ("cache_verdict", "cache_grade", "missed_tokens")
_READ = (
    *dict.fromkeys(name for name in (*JUDGED_BY, "session_key", *NEEDED) if name not in _VERDICT),
    *_VERDICT,
)
"""All that verdicts and sums of breaks depend on, the verdict last."""
_row = light(_READ)
_ROWS = f"SELECT id, {', '.join((*_ORDER, *_READ))} FROM turns WHERE "  # noqa: S608  (our own)
_ROW = 1 + len(_ORDER)
"""Where the columns of the row begin."""


class Fold(Protocol):
    """Judges the rows of one session, pushed in their order."""

    def push(self, row: TurnRow) -> Mapping[str, Verdict]:
        """The verdicts that are new or another one with this row, by ``turn_id``."""


@dataclass(slots=True)
class Known:
    """A session as far as it is judged."""

    fold: Fold
    seen: int
    """Its rows so far."""
    newest: int
    """The greatest of their ids when they were first read."""
    last: tuple[Any, ...]
    """The order of the last of them."""
    turn: int | None
    """The id of some generation turn of them."""
    at: int = 0
    """When it went on, in epoch milliseconds."""

    @property
    def weight(self) -> int:
        return _EMPTY + min(self.seen, _EACH)


class Remembered:
    """Sessions, those that went on last; as many as have ``turns`` together."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._held = 0

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, session: str) -> bool:
        return session in self._known

    def __getitem__(self, session: str) -> Known:
        return self._known[session]

    def sessions(self) -> list[str]:
        return list(self._known)

    def put(self, session: str, known: Known, now: int) -> None:
        """``now``: epoch milliseconds."""
        known.at = now
        self._known[session] = known
        self._held += known.weight
        while now >= self._oldest_at() + STILL_MS:
            self.forget(next(iter(self._known)))
        while self._held > self.turns:
            oldest = next(iter(self._known)) if now >= self._oldest_at() + IDLE_MS else session
            self.forget(oldest)

    def _oldest_at(self) -> int:
        return next(iter(self._known.values())).at

    def take(self, session: str) -> Known | None:
        known = self._known.get(session)
        self.forget(session)
        return known

    def forget(self, session: str) -> None:
        known = self._known.pop(session, None)
        if known is not None:
            self._held -= known.weight

    def clear(self) -> None:
        self._known.clear()
        self._held = 0


def news(
    connection: Connection, remembered: Remembered, after: int, limit: int
) -> tuple[int, dict[str, list[int]]] | None:
    """The ids of rows that came after one, of sessions that are remembered or have turns that wait;
    and the last id that was looked at. None where nothing came."""
    query = f"SELECT id, session_key, {UNJUDGED} FROM turns "  # noqa: S608  (our own)
    query += text(connection, "WHERE id > ? ORDER BY id LIMIT ?")
    found = connection.exec_driver_sql(query, (after, limit)).all()
    last = found[-1][0] if found else after
    begun = {session for _, session, waits in found if waits}
    new = [
        (number, session)
        for number, session, _ in found
        if (number > remembered[session].newest if session in remembered else session in begun)
    ]
    if connection.dialect.name == "postgresql":
        # A row may become visible after others that have greater ids.
        mine = among_these(connection, "session_key")
        query = f"SELECT id, session_key FROM turns WHERE {mine} AND {UNJUDGED} "  # noqa: S608
        query += text(connection, "AND id <= ? ORDER BY id LIMIT ?")
        values = (remembered.sessions(), last, limit)
        late = connection.exec_driver_sql(query, values).all()
        new = list({row[0]: row for row in (*new, *late)}.values())
    if not found and not new:
        return None
    by_session: defaultdict[str, list[int]] = defaultdict(list)
    for number, session in new:
        by_session[session].append(number)
    return last, by_session


def judge(
    connection: Connection,
    sessions: Mapping[str, Known],
    new: Mapping[str, Sequence[int]],
    last: int,
) -> dict[str, Known]:
    """Judge new rows, as ``news`` found them; returns the sessions as they are then, but for those
    that have not just grown at their ends or begun. Of what fails neither the old nor the new ones
    are of any use."""
    rows = _read(connection, [number for ids in new.values() for number in ids])
    begun = {session for session, known in sessions.items() if not known.seen}
    still = _still_there(connection, sessions) | begun
    on_postgresql = connection.dialect.name == "postgresql"
    counted = sessions.keys() if on_postgresql else begun
    if counted:
        still -= counted - _complete(connection, {one: sessions[one] for one in counted}, new, last)
    went_on: dict[str, Known] = {}
    judged: list[tuple[int, TurnRow, TurnRow]] = []
    revised: dict[str, Verdict] = {}
    for session, ids in new.items():
        known = sessions[session]
        mine = sorted((rows[number] for number in ids if number in rows), key=lambda one: one.order)
        if (
            session not in still
            or len(mine) < len(ids)
            or mine[0].order <= known.last
            or any(one.row.session_key != session for one in mine)
        ):
            continue
        wanted: dict[str, Verdict] = {}
        for one in mine:
            wanted.update(known.fold.push(one.row))
        for one in mine:
            verdict = wanted.pop(one.row.turn_id, None)
            if verdict is not None and verdict != one.values[-len(_VERDICT) :]:
                after = _row((*one.values[: -len(_VERDICT)], *verdict))
                judged.append((one.id, one.row, after))
            if one.row.kind == Kind.GENERATION:
                known.turn = one.id
        revised |= wanted
        known.seen += len(mine)
        known.last = mine[-1].order
        went_on[session] = known
    store.put_judged(connection, judged, revised)
    return went_on


class _Found(NamedTuple):
    id: int
    order: tuple[Any, ...]
    values: tuple[Any, ...]
    row: TurnRow


def _read(connection: Connection, ids: Collection[int]) -> dict[int, _Found]:
    """They are locked."""
    lock = " FOR UPDATE" if connection.dialect.name == "postgresql" else ""
    query = f"{_ROWS}{among_these(connection, 'id')} ORDER BY id{lock}"
    found = connection.exec_driver_sql(query, (listed(connection, ids),))
    return {
        row[0]: _Found(row[0], row[1:_ROW], row[_ROW:], _row(row[_ROW:]))
        for row in map(tuple, found)
    }


def _still_there(connection: Connection, sessions: Mapping[str, Known]) -> set[str]:
    """Those that have a turn left. If another one went, a turn waits for that reason."""
    some = {known.turn: session for session, known in sessions.items() if known.turn is not None}
    query = (
        f"SELECT id, session_key FROM turns WHERE {among_these(connection, 'id')} "  # noqa: S608
        f"AND kind = '{Kind.GENERATION.value}'"
    )
    found = connection.exec_driver_sql(query, (listed(connection, some),))
    return {session for number, session in found if some[number] == session}


def _complete(
    connection: Connection,
    sessions: Mapping[str, Known],
    new: Mapping[str, Sequence[int]],
    last: int,
) -> set[str]:
    """Those that have no rows so far beside the known and the new ones. One that waits for no
    verdict may have become visible after others with greater ids."""
    query = (
        "SELECT session_key, count(*) FROM turns "  # noqa: S608  (our own)
        f"WHERE {among_these(connection, 'session_key')} AND id <= {last} GROUP BY session_key"
    )
    found = connection.exec_driver_sql(query, (listed(connection, list(sessions)),))
    return {
        session for session, count in found if count == sessions[session].seen + len(new[session])
    }
