"""In which hours sessions had a group of breaks: how many sessions had it in a window is told
without counting them one by one.

Each hour of a session knows the one before it that has the group. The sessions of a window are its
first hours, which are summed up, and the hours whose hour before lies before the window. These
are found by blocks, as lives of sessions are (``lives``): no more of them are looked at than are
under way somewhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, or_, select

from app.ledger.rollups.among import among, among_these, listed, run
from app.ledger.rollups.break_tables import sessions as table
from app.ledger.rollups.broken import SessionAt, id_of, whole_of
from app.ledger.rollups.contribution import HOUR, digest
from app.ledger.rollups.lives import EVERYTHING, SIZES, block_of

s = table.c
_LOCKS = 256
_LOCK = 8_388_065_821_513_000_000


class Stored(NamedTuple):
    """An hour of a session, and how it is kept."""

    turns: int
    previous: int | None
    size: int | None
    block: int | None


Pair = tuple[int, str]
"""The key of a group, and a session."""
Hours = dict[int, Stored]


class Grown(NamedTuple):
    """By group and hour, how many more sessions have it, and have it for the first time."""

    sessions: Counter[tuple[str, int]]
    firsts: Counter[tuple[str, int]]


def put(connection: Connection, made: Mapping[SessionAt, int], *, fresh: bool = False) -> Grown:
    """Add breaks of sessions; ``fresh`` where none of these sessions is known yet."""
    grown = Grown(Counter(), Counter())
    more: defaultdict[Pair, Counter[int]] = defaultdict(Counter)
    names: dict[int, str] = {}
    for (group, session, start), turns in made.items():
        if turns:
            key = id_of(whole_of(group))
            names[key] = group
            more[key, session][start] += turns
    if not more:
        return grown
    known: Mapping[Pair, Hours] = {}
    if not fresh:
        _lock(connection, {session for _, session in more})
        known = _known(connection, more)
    gone: list[tuple[Any, ...]] = []
    new: list[tuple[Any, ...]] = []
    for pair in sorted(more):
        before = known.get(pair, {})
        after = linked(before, more[pair])
        group = names[pair[0]]
        for start in sorted(before.keys() | after.keys()):
            was, now = before.get(start), after.get(start)
            if was == now:
                continue
            at = (group, start)
            grown.sessions[at] += (now is not None) - (was is not None)
            grown.firsts[at] += _is_first(now) - _is_first(was)
            if now is None:
                gone.append((*pair, start))
            else:
                new.append((*pair, start, *now))
    run(
        connection,
        "DELETE FROM rollup_break_sessions WHERE key = ? AND session_key = ? AND start = ?",
        gone,
    )
    run(connection, _UPSERT, new)
    return grown


_UPSERT = (
    "INSERT INTO rollup_break_sessions "
    "(key, session_key, start, turns, previous, size, block) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (key, session_key, start) DO UPDATE SET turns = excluded.turns, "
    "previous = excluded.previous, size = excluded.size, block = excluded.block"
)


def linked(before: Hours, more: Mapping[int, int]) -> Hours:
    """The hours of a session after ``more`` breaks came to some of them, each with the one before
    it. Those that none is left of are gone."""
    turns = Counter({start: stored.turns for start, stored in before.items()})
    for start, number in more.items():
        turns[start] += number
    starts = sorted(start for start, number in turns.items() if number)
    after = {start: Stored(turns[start], None, None, None) for start in starts[:1]}
    for previous, start in pairwise(starts):
        block = block_of(previous // HOUR, start // HOUR)
        after[start] = Stored(turns[start], previous, *block)
    return after


def _is_first(stored: Stored | None) -> bool:
    return stored is not None and stored.previous is None


def _known(connection: Connection, pairs: Collection[Pair]) -> Mapping[Pair, Hours]:
    found: defaultdict[Pair, Hours] = defaultdict(dict)
    query = (
        "SELECT key, session_key, start, turns, previous, size, block "  # noqa: S608  (our own)
        f"FROM rollup_break_sessions WHERE {among_these(connection, 'key')} "
        f"AND {among_these(connection, 'session_key')}"
    )
    given = tuple(listed(connection, set(some)) for some in zip(*pairs, strict=True))
    for key, session, start, *stored in connection.exec_driver_sql(query, given):
        if (key, session) in pairs:
            found[key, session][start] = Stored(*stored)
    return found


def _lock(connection: Connection, sessions: set[str]) -> None:
    """Let nobody else change what is read before this transaction ends."""
    if connection.dialect.name == "postgresql":
        for number in sorted({digest((session,)) % _LOCKS for session in sessions}):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK + number})")


def going_on(connection: Connection, keys: Collection[int], start: int, end: int) -> dict[int, int]:
    """Of some groups, by their keys, how many sessions have them within whole hours, and had them
    before."""
    hour = start // HOUR
    blocks = [(size, hour >> size) for size in SIZES]
    held = or_(*((s.size == size) & (s.block == block) for size, block in (*blocks, EVERYTHING)))
    query = (
        select(s.key, func.count())
        .where(among(connection, s.key, keys), held)
        .where(s.previous < start, s.start >= start, s.start < end)
        .group_by(s.key)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def having(
    connection: Connection, key: int, sessions: Collection[str], start: int, end: int
) -> set[str]:
    """Which of some sessions have a group within whole hours."""
    query = (
        select(s.session_key)
        .where(s.key == key, among(connection, s.session_key, sessions))
        .where(s.start >= start, s.start < end)
    )
    return set(connection.execute(query).scalars())
