"""Adding what rows contribute to the rollups, in the transaction that writes the rows.

Everything is added by the database itself (numbers by ``+``, times by appending), in the order of
the keys: several gateways may do so at once and neither lose anything nor wait for each other in
circles. Stretches coarser than the finest are summed up once they are over, when the first row of
the next hour comes; rows that come later than that are added at every level.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from operator import add as plus
from typing import Any

from sqlalchemy import Connection

from app.ledger.rollups import lives
from app.ledger.rollups import state as states
from app.ledger.rollups.among import text
from app.ledger.rollups.contribution import (
    HOUR,
    LEVELS,
    MINUTE,
    SESSION_LEVELS,
    SESSION_SUMS,
    SUMS,
    Contributions,
    Key,
    SessionAt,
    add_counts,
    facts_of,
    start_of,
)
from app.ledger.rollups.distribution import read_counts, stored_counts
from app.ledger.rollups.state import RollupState

DETAILS = (0, 1)
LONG = 1_024
"""Bytes from which on times of five minutes are made shorter when their hour is over."""
GRACE = 10 * MINUTE
"""An hour is summed up this long after its end: turns are written when they end, and most that
began within it have ended by then."""


def add(connection: Connection, made: Contributions, state: RollupState) -> None:
    """Add contributions at all levels that there are. ``state`` must be held."""
    _put_keys(connection, made)
    _run(connection, _upsert_cells(connection), _cell_rows(made, state))
    _run(connection, _upsert_times(connection), _time_rows(made, state))
    _run(connection, _upsert_sessions(connection), _session_rows(made, state))


def advance(connection: Connection, newest: int) -> RollupState:
    """Sum up the hours that are over at ``newest``; returns the state, which is then held."""
    until = start_of(HOUR, newest - GRACE)
    held = states.read(connection)
    if connection.dialect.name == "postgresql":
        held = states.hold(connection, change=until > held.coarse_until)
    if until > held.coarse_until:
        after = RollupState(until, held.missing, held.rows_from, held.rollups_from)
        for finer, level in pairwise(LEVELS):
            span = (held.whole_until(level), after.whole_until(level))
            if span[0] < span[1]:
                _sum_cells(connection, finer, level, span)
                _sum_times(connection, finer, level, span)
        for finer, level in pairwise(SESSION_LEVELS):
            span = (held.whole_until(level), after.whole_until(level))
            if span[0] < span[1]:
                _sum_sessions(connection, finer, level, span)
        states.put(connection, states.COARSE_UNTIL, until)
        lives.refresh(connection, lives.active(connection, held.coarse_until, until), after)
        return after
    return held


def tidy(connection: Connection, made: Contributions, state: RollupState) -> None:
    """After something was taken away: leave nothing empty behind, and no change that was undone."""
    _run(
        connection,
        text(
            connection,
            "DELETE FROM rollup_cells WHERE detail = ? AND level = ? AND start = ? AND key = ? "
            "AND turns = 0",
        ),
        [_place(row) for row in _cell_rows(made, state)],
    )
    _tidy_times(connection, [_place(row) for row in _time_rows(made, state)])
    _run(
        connection,
        text(
            connection,
            "DELETE FROM rollup_sessions WHERE level = ? AND start = ? AND session_key = ? "
            "AND key = ? AND turns = 0",
        ),
        [row[:4] for row in _session_rows(made, state)],
    )


# What is written


def _put_keys(connection: Connection, made: Contributions) -> None:
    found = {facts_of(key).id: key for _, key in (*made.cells(), *made.times())}
    for _, _, key in made.sessions:
        found[facts_of(key).id] = key
    # Nearly always they are all there, and looking is cheaper than trying.
    marks = ", ".join("?" * len(found))
    query = text(connection, f"SELECT id FROM rollup_keys WHERE id IN ({marks})")  # noqa: S608
    for number in connection.exec_driver_sql(query, tuple(found)).scalars():
        del found[number]
    columns = ("id", "shape", *Key._fields)
    marks = ", ".join("?" * len(columns))
    _run(
        connection,
        text(
            connection,
            f"INSERT INTO rollup_keys ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608
            "ON CONFLICT (id) DO NOTHING",
        ),
        [(number, facts_of(key).shape, *key) for number, key in sorted(found.items())],
    )


def _cell_rows(made: Contributions, state: RollupState) -> list[tuple[Any, ...]]:
    finest = made.cells()
    levels = {LEVELS[0]: finest}
    for level in LEVELS[1:]:
        until = state.whole_until(level)
        coarse = levels[level] = {}
        for (start, key), sums in finest.items():
            if start < until:
                at = (start_of(level, start), key)
                known = coarse.get(at)
                coarse[at] = sums if known is None else tuple(map(plus, known, sums))
    rows = [
        (*_at(level, start, key), *sums)
        for level, cells in levels.items()
        for (start, key), sums in cells.items()
    ]
    rows.sort(key=_place)
    return rows


def _time_rows(made: Contributions, state: RollupState) -> list[tuple[Any, ...]]:
    finest = made.times()
    levels = {LEVELS[0]: finest}
    for level in LEVELS[1:]:
        until = state.whole_until(level)
        coarse = levels[level] = {}
        for (start, key), counts in finest.items():
            if start < until:
                at = (start_of(level, start), key)
                if at not in coarse:
                    coarse[at] = ({}, {})
                add_counts(coarse[at], counts)
    rows = [
        (*_at(level, start, key), stored_counts(ttft), stored_counts(duration))
        for level, times in levels.items()
        for (start, key), (ttft, duration) in times.items()
    ]
    rows.sort(key=_place)
    return rows


def _session_rows(made: Contributions, state: RollupState) -> list[tuple[Any, ...]]:
    finest, *coarser = SESSION_LEVELS
    rows = [
        (finest, start, session, facts_of(key).id, *_ends(made, (start, session, key)), *sums)
        for (start, session, key), sums in made.sessions.items()
    ]
    for level in coarser:
        until = state.whole_until(level)
        coarse: dict[SessionAt, list[tuple[Any, ...]]] = defaultdict(list)
        for (start, session, key), sums in made.sessions.items():
            if start < until:
                ends = _ends(made, (start, session, key))
                coarse[start_of(level, start), session, key].append((*ends, *sums))
        for (start, session, key), parts in coarse.items():
            names, firsts, lasts, *figures = zip(*parts, strict=True)
            name = max((name for name in names if name is not None), default=None)
            ends = (name, min(firsts), max(lasts))
            rows.append((level, start, session, facts_of(key).id, *ends, *map(sum, figures)))
    rows.sort(key=lambda row: row[:4])
    return rows


_NEVER = 1 << 62
"""Beyond any instant: for parts of sessions that only lose rows."""


def _ends(made: Contributions, at: SessionAt) -> tuple[str | None, int, int]:
    first, last, name = made.session_ends.get(at, (_NEVER, -_NEVER, None))
    return name, first, last


def _at(level: int, start: int, key: Key) -> tuple[int, int, int, int]:
    facts = facts_of(key)
    return facts.detail, level, start, facts.id


def _place(row: tuple[Any, ...]) -> tuple[int, int, int, int]:
    return row[:4]


# SQL


def _upsert_cells(connection: Connection) -> str:
    adds = ", ".join(f"{name} = rollup_cells.{name} + excluded.{name}" for name in SUMS)
    columns = ("detail", "level", "start", "key", *SUMS)
    return text(
        connection,
        f"INSERT INTO rollup_cells ({', '.join(columns)}) "  # noqa: S608  (our names)
        f"VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT (detail, level, start, key) DO UPDATE SET {adds}",
    )


def _upsert_times(connection: Connection) -> str:
    adds = ", ".join(f"{name} = {_appended(connection, name)}" for name in ("ttft", "duration"))
    return text(
        connection,
        "INSERT INTO rollup_times (detail, level, start, key, ttft, duration) "  # noqa: S608
        "VALUES (?, ?, ?, ?, ?, ?) "
        f"ON CONFLICT (detail, level, start, key) DO UPDATE SET {adds}",
    )


def _appended(connection: Connection, name: str) -> str:
    both = f"rollup_times.{name} || excluded.{name}"
    # SQLite takes two blobs in a row for text.
    return both if connection.dialect.name == "postgresql" else f"CAST({both} AS BLOB)"


def _upsert_sessions(connection: Connection) -> str:
    columns = ("level", "start", "session_key", "key", "session", "first_at", "last_at")
    known = "rollup_sessions"
    least, most = (
        ("LEAST", "GREATEST") if connection.dialect.name == "postgresql" else ("MIN", "MAX")
    )
    # The greater of two names, of which each may be missing.
    session = (
        f"CASE WHEN {known}.session IS NULL "
        f"OR excluded.session > {known}.session "
        f"THEN excluded.session ELSE {known}.session END"
    )
    adds = ", ".join(f"{name} = {known}.{name} + excluded.{name}" for name in SESSION_SUMS)
    marks = ", ".join("?" * (len(columns) + len(SESSION_SUMS)))
    return text(
        connection,
        f"INSERT INTO {known} ({', '.join((*columns, *SESSION_SUMS))}) "  # noqa: S608
        f"VALUES ({marks}) ON CONFLICT (level, start, session_key, key) DO UPDATE SET "
        f"session = {session}, "
        f"first_at = {least}({known}.first_at, excluded.first_at), "
        f"last_at = {most}({known}.last_at, excluded.last_at), {adds}",
    )


def _sum_cells(connection: Connection, finer: int, level: int, span: tuple[int, int]) -> None:
    sums = ", ".join(f"SUM({name})" for name in SUMS)
    _run(
        connection,
        text(
            connection,
            f"INSERT INTO rollup_cells (detail, level, start, key, {', '.join(SUMS)}) "  # noqa: S608
            f"SELECT detail, {level}, start - start % {level}, key, {sums} FROM rollup_cells "
            "WHERE detail = ? AND level = ? AND start >= ? AND start < ? "
            f"GROUP BY detail, start - start % {level}, key",
        ),
        [(detail, finer, *span) for detail in DETAILS],
    )


def _sum_sessions(connection: Connection, finer: int, level: int, span: tuple[int, int]) -> None:
    sums = ", ".join(f"SUM({name})" for name in SESSION_SUMS)
    _run(
        connection,
        text(
            connection,
            "INSERT INTO rollup_sessions (level, start, session_key, key, session, "  # noqa: S608
            f"first_at, last_at, {', '.join(SESSION_SUMS)}) "
            f"SELECT {level}, start - start % {level}, session_key, key, MAX(session), "
            f"MIN(first_at), MAX(last_at), {sums} FROM rollup_sessions "
            "WHERE level = ? AND start >= ? AND start < ? "
            f"GROUP BY start - start % {level}, session_key, key",
        ),
        [(finer, *span)],
    )


def _sum_times(connection: Connection, finer: int, level: int, span: tuple[int, int]) -> None:
    """Also makes long ones shorter that were appended to."""
    found = connection.exec_driver_sql(
        text(
            connection,
            "SELECT detail, start, key, ttft, duration FROM rollup_times "
            "WHERE detail IN (0, 1) AND level = ? AND start >= ? AND start < ?",
        ),
        (finer, *span),
    ).all()
    parts: dict[tuple[int, int, int], list[tuple[bytes, bytes]]] = defaultdict(list)
    shorter = []
    for detail, start, key, *stored in found:
        ttft, duration = stored
        if finer == LEVELS[0] and max(len(ttft), len(duration)) > LONG:
            ttft, duration = (stored_counts(read_counts(times)) for times in stored)
            shorter.append((ttft, duration, detail, finer, start, key))
        parts[detail, start_of(level, start), key].append((ttft, duration))
    _run(connection, text(connection, _SHORTEN), shorter)
    _run(
        connection,
        _upsert_times(connection),
        [
            (
                detail,
                level,
                start,
                key,
                *(stored_counts(read_counts(b"".join(s))) for s in zip(*some, strict=True)),
            )
            for (detail, start, key), some in sorted(parts.items())
        ],
    )


_SHORTEN = (
    "UPDATE rollup_times SET ttft = ?, duration = ? "
    "WHERE detail = ? AND level = ? AND start = ? AND key = ?"
)


def _tidy_times(connection: Connection, places: Sequence[tuple[int, int, int, int]]) -> None:
    where = "WHERE detail = ? AND level = ? AND start = ? AND key = ?"
    query = text(connection, f"SELECT ttft, duration FROM rollup_times {where}")  # noqa: S608
    shorter: list[tuple[Any, ...]] = []
    empty: list[tuple[Any, ...]] = []
    for place in places:
        found = connection.exec_driver_sql(query, place).one_or_none()
        if found is not None:
            short = [stored_counts(read_counts(bytes(times))) for times in found]
            if any(short):
                shorter.append((*short, *place))
            else:
                empty.append(place)
    _run(connection, text(connection, _SHORTEN), shorter)
    _run(connection, text(connection, f"DELETE FROM rollup_times {where}"), empty)  # noqa: S608


def _run(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        connection.exec_driver_sql(statement, list(rows))
