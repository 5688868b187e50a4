"""One row for a call that both a gateway and another tool's log tell of.

The gateway's row stays and learns what only the log knows (``app.ledger.same_call`` decides both).
The log's record has no row of its own then: it is kept beside (``merged_records``), with what the
gateway's row was before. So all can be taken back, and whatever comes or goes in whatever order,
a session that is looked at again has what its rows and records make of it.

Sessions whose records are new wait (``unmerged_sessions``) until ``merge_waiting`` looks at them;
whoever writes rows of gateways has theirs looked at with ``merge``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
)

from app.ledger import store
from app.ledger.database import WRITES
from app.ledger.joining import joined
from app.ledger.models import merged_records, turns, unmerged_sessions
from app.ledger.rollups import tables
from app.ledger.rollups.among import text
from app.ledger.rollups.contribution import ANY
from app.ledger.rows import COLUMNS, TurnRow
from app.ledger.same_call import LOGGED, Call, differ, learned, matched

AT_ONCE = store.AT_ONCE // 2
"""Records of one transaction, each with a row; and sessions that are looked for at once."""
_NEWEST = 10_000
_CONCLUDED = frozenset({"cache_verdict", "cache_grade", "missed_tokens", "cost_usd", "price_note"})
_LOCK = "SELECT pg_advisory_xact_lock(5172066043215873391)"
_MARK = (
    "INSERT INTO unmerged_sessions (session, times) VALUES (?, 1) "
    "ON CONFLICT (session) DO UPDATE SET times = unmerged_sessions.times + 1"
)
c, m, u = turns.c, merged_records.c, unmerged_sessions.c
_columns = [c[name] for name in COLUMNS]
_UNMARK = delete(unmerged_sessions).where(
    u.session == bindparam("name"), u.times == bindparam("seen")
)
_log = c.source.startswith(LOGGED, autoescape=True)


def mark(connection: Connection, sessions: Iterable[str | None]) -> None:
    """Have sessions looked at again."""
    names = sorted({name for name in sessions if name is not None})
    if names:
        connection.exec_driver_sql(text(connection, _MARK), [(name,) for name in names])


def merge_waiting(engine: Engine, *, stop: Callable[[], bool] = lambda: False) -> int:
    """Look at all sessions that wait; returns how many records got another place.

    May be broken off anywhere and repeated; ``stop`` is asked after each session.
    """
    changed, last = 0, ""
    while not stop():
        query = select(u.session, u.times).where(u.session > last).order_by(u.session)
        with engine.connect() as connection:
            found = connection.execute(query.limit(AT_ONCE)).all()
        if not found:
            break
        changed += merge(engine, [name for name, _ in found], stop=stop)
        if stop():
            break
        with engine.execution_options(**WRITES).begin() as connection:
            # Not those that were marked again meanwhile.
            looked_at = [{"name": name, "seen": times} for name, times in found]
            connection.execute(_UNMARK, looked_at)
        last = found[-1].session
    return changed


def merge(
    engine: Engine, sessions: Collection[str], *, stop: Callable[[], bool] = lambda: False
) -> int:
    """Let each call of these sessions have one row; returns how many records got another place."""
    names, changed = sorted(sessions), 0
    with engine.connect() as connection:
        if not _two_sides(connection):
            return 0
        found = [
            name
            for first in range(0, len(names), AT_ONCE)
            for name in _of_two_sides(connection, names[first : first + AT_ONCE])
        ]
    parting: list[str] = []
    joining: dict[str, str] = {}
    for name in found:
        if stop():
            break
        with engine.connect() as connection:
            wanted, now = _wanted(connection, name)
        parting += [record for record, turn_id in now.items() if wanted.get(record) != turn_id]
        joining |= {
            record: turn_id for record, turn_id in wanted.items() if now.get(record) != turn_id
        }
        if len(parting) + len(joining) >= AT_ONCE:
            changed += _change(engine, parting, joining)
            parting, joining = [], {}
    return changed + _change(engine, parting, joining)


def newest_sessions(engine: Engine) -> list[str]:
    """The sessions of the newest rows, as many as may have been written just before."""
    newest = select(func.max(c.id)).scalar_subquery()
    query = select(c.session).where(c.id > newest - _NEWEST, c.session.is_not(None)).distinct()
    with engine.connect() as connection:
        return list(connection.execute(query).scalars())


def _two_sides(connection: Connection) -> bool:
    """Whether the ledger has rows of gateways and of logs at all."""
    source = tables.keys.c.source
    query = select(source).where(source != ANY).distinct()
    sources = connection.execute(query).scalars().all()
    logs = sum(name.startswith(LOGGED) for name in sources)
    return logs < len(sources) and (
        logs > 0 or connection.execute(select(m.record_id).limit(1)).first() is not None
    )


def _of_two_sides(connection: Connection, names: Sequence[str]) -> list[str]:
    logged = case((_log, 1), else_=0)
    both = (
        select(c.session)
        .where(c.session.in_(names))
        .group_by(c.session)
        .having(func.min(logged) < func.max(logged))
    )
    merged = select(m.session).where(m.session.in_(names))
    return sorted(connection.execute(both.union(merged)).scalars())


def _change(engine: Engine, parting: Sequence[str], joining: dict[str, str]) -> int:
    writing, changed = engine.execution_options(**WRITES), 0
    for some in _parts(parting):
        with writing.begin() as connection:
            changed += len(part(connection, m.record_id.in_(some)))
    for some in _parts(list(joining)):
        with writing.begin() as connection:
            changed += _join(connection, {record: joining[record] for record in some})
    return changed


def _wanted(connection: Connection, session: str) -> tuple[dict[str, str], dict[str, str]]:
    """Which record belongs to which gateway's row, and to which it does now."""
    seen: dict[str, Call] = {}
    logged: dict[str, Call] = {}
    now: dict[str, str] = {}
    query = select(c.source, *(c[name] for name in Call._fields)).where(c.session == session)
    for source, *values in connection.execute(query):
        call = Call(*values)
        (logged if source.startswith(LOGGED) else seen)[call.turn_id] = call
    merged = select(m.record_id, m.turn_id, m.record, m.before).where(m.session == session)
    for record_id, turn_id, record, before in connection.execute(merged):
        now[record_id] = turn_id
        told = json.loads(record)
        logged.setdefault(record_id, Call(*(told.get(name) for name in Call._fields)))
        if turn_id in seen:
            known = {n: v for n, v in json.loads(before).items() if n in Call._fields}
            seen[turn_id] = seen[turn_id]._replace(**known)
    return matched(seen.values(), logged.values()), now


def _join(connection: Connection, pairs: dict[str, str]) -> int:
    """Merge records that have rows with gateways' rows, as far as both are still there."""
    _hold(connection)
    rows = _locked(connection, [*pairs, *pairs.values()])
    query = select(m.turn_id).where(m.turn_id.in_(list(pairs.values())))
    taken = set(connection.execute(query).scalars())
    good = [
        (rows[record], rows[turn_id])
        for record, turn_id in pairs.items()
        if record in rows and turn_id in rows and turn_id not in taken
    ]
    if not good:
        return 0
    connection.execute(
        merged_records.insert(),
        [
            {
                "record_id": record.turn_id,
                "turn_id": row.turn_id,
                "import_id": record.import_id or "",
                "session": record.session,
                "session_key": record.session_key,
                "tenant": record.tenant,
                "started_at": record.started_at,
                **_told(row, record),
            }
            for record, row in good
        ],
    )
    store.exchange(
        connection,
        [learned(row, record) for record, row in good],
        gone=[record.turn_id for record, _ in good],
    )
    return len(good)


def part(connection: Connection, condition: ColumnElement[bool], *, keep: bool = True) -> list[str]:
    """Let gateways' rows be as they were, and records have rows of their own unless not to ``keep``
    them; returns the ids of some records, at most ``AT_ONCE``, for which that holds now.

    A gateway's row that is gone stays so.
    """
    _hold(connection)
    query = select(m.record_id, m.turn_id, m.session, m.record, m.before).where(condition)
    found = connection.execute(query.order_by(m.record_id).limit(AT_ONCE)).all()
    if not found:
        return []
    ids = [one.record_id for one in found]
    rows = _locked(connection, [one.turn_id for one in found])
    before = {one.turn_id: json.loads(one.before) for one in found}
    connection.execute(delete(merged_records).where(m.record_id.in_(ids)))
    store.exchange(
        connection,
        [replace(row, **before[name]) for name, row in rows.items()],
        new=[_row(one.record) for one in found] if keep else (),
    )
    mark(connection, {one.session for one in found})  # another record may take the place
    return ids


def part_orphans(engine: Engine) -> None:
    """Give records rows again whose gateways' rows were taken back."""
    there = select(c.id).where(c.turn_id == m.turn_id).exists()
    found = [""]
    while found:
        with engine.execution_options(**WRITES).begin() as connection:
            found = part(connection, ~there)


def learn(engine: Engine, known: Mapping[str, TurnRow]) -> None:
    """Let rows of records, by their ids, know what another reading of these tells; where these are
    merged, the gateways' rows."""
    for some in _parts(list(known)):
        with engine.execution_options(**WRITES).begin() as connection:
            _learn(connection, {name: known[name] for name in some})


def _learn(connection: Connection, known: Mapping[str, TurnRow]) -> None:
    _hold(connection)
    query = select(m.record_id, m.turn_id, m.record, m.before).where(m.record_id.in_(list(known)))
    merged = {one.turn_id: one for one in connection.execute(query)}
    changed = []
    for name, row in _locked(connection, [*known, *merged]).items():
        if name not in merged:
            together = _together(row, known[name])
            if together is not row:
                changed.append(together)
            continue
        record = _row(merged[name].record)
        together = _together(record, known[record.turn_id])
        if together is not record:
            original = replace(row, **json.loads(merged[name].before))
            values = _told(original, together)
            connection.execute(merged_records.update().where(m.turn_id == name).values(values))
            changed.append(learned(original, together))
    if changed:
        store.exchange(connection, changed)
        mark(connection, {row.session for row in changed})  # they may be other calls by now


def _together(one: TurnRow, other: TurnRow) -> TurnRow:
    return joined(one, other) if one.source == other.source else one


def ids_among(connection: Connection, record_ids: Collection[str]) -> set[str]:
    """Those of these records that are merged."""
    query = select(m.record_id).where(m.record_id.in_(record_ids))
    return set(connection.execute(query).scalars())


def forget(connection: Connection, turn_ids: Collection[str]) -> list[str]:
    """Forget what was merged with rows that are deleted; returns the records' ids."""
    gone = delete(merged_records).where(m.turn_id.in_(turn_ids)).returning(m.record_id)
    return list(connection.execute(gone).scalars())


def forget_names(connection: Connection) -> None:
    """Forget sessions that wait and have no rows any more."""
    left = or_(
        select(c.id).where(c.session == u.session).exists(),
        select(m.record_id).where(m.session == u.session).exists(),
    )
    connection.execute(delete(unmerged_sessions).where(~left))


def counted(engine: Engine, import_id: str) -> tuple[int, int]:
    """How many records of an import are merged, and how many of these tell other figures."""
    query = select(func.count(), func.sum(case((m.differs, 1), else_=0)))
    with engine.connect() as connection:
        merged, differing = connection.execute(query.where(m.import_id == import_id)).one()
    return merged, differing or 0


def _told(row: TurnRow, record: TurnRow) -> dict[str, Any]:
    """The columns that change when more is told of a record."""
    new = learned(row, record)
    names = [name for name in COLUMNS if getattr(row, name) != getattr(new, name)]
    known = {
        name: value
        for name, value in zip(COLUMNS, record.values(), strict=True)
        if value is not None and name not in _CONCLUDED
    }
    return {
        "differs": differ(row, record),
        "record": json.dumps(known),
        "before": json.dumps({name: getattr(row, name) for name in names}),
    }


def _row(record: str) -> TurnRow:
    return TurnRow(**(dict.fromkeys(COLUMNS) | json.loads(record)))


def _locked(connection: Connection, turn_ids: Sequence[str]) -> dict[str, TurnRow]:
    query = select(*_columns).where(c.turn_id.in_(turn_ids)).order_by(c.id).with_for_update()
    found = (TurnRow.of(values) for values in connection.execute(query))
    return {row.turn_id: row for row in found}


def _hold(connection: Connection) -> None:
    """Let nobody else merge before this transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_LOCK)


def _parts(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[first : first + AT_ONCE] for first in range(0, len(ids), AT_ONCE))
