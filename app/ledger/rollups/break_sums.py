"""Adding what breaks contribute to their sums, in the transaction that writes the rows, and
counting them anew.

Each break is added by group and by key, in hours and in days at once. The sums are those of the
rows that there are, to the last one: nothing is remembered of rows that are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    delete,
    func,
    select,
)

from app.ledger import break_groups
from app.ledger.models import turns
from app.ledger.rollups import break_sessions, break_tables
from app.ledger.rollups import state as states
from app.ledger.rollups.among import among_these, listed, run
from app.ledger.rollups.broken import LADDER, NEEDED, SUMS, UNKNOWN, Broken, Key, id_of, whole_of
from app.ledger.rollups.contribution import DAY, HOUR, start_of
from app.ledger.rows import TurnRow

LEVELS = (HOUR, DAY)
_COLUMNS = (*SUMS, "sessions", "firsts")
_TOLD_APART = Key._fields[1:]
_AT_ONCE = 5_000
c, s, k = turns.c, break_tables.sums.c, break_tables.keys.c
size: ColumnElement[int] = case(
    (c.input_tokens.is_(None), UNKNOWN),
    *((c.input_tokens <= step, place) for place, step in enumerate(LADDER)),
    else_=len(LADDER),
)
"""``broken.size_of`` as SQL."""
long: ColumnElement[bool] = func.coalesce(c.cache_write_long_tokens, 0) > 0
_NOBODY = (1 << 62, -(1 << 62))
"""The ends of stretches that only lose breaks: beyond any instant."""
Place = tuple[int, int, int]
"""Level, key and start."""


def put(connection: Connection, made: Broken, *, fresh: bool = False) -> None:
    """Add what breaks contribute; ``fresh`` where none of their sessions is known yet."""
    if not made.sums:
        return
    grown = break_sessions.put(connection, made.sessions, fresh=fresh)
    keys: set[Key] = set()
    amounts: dict[Place, list[int]] = {}
    ends: dict[Place, tuple[int, int]] = {}
    lost: list[tuple[Key, int]] = []
    for (start, key), sums in made.sums.items():
        instants = made.instants[start, key]
        if not any(sums) and not any(instants.values()):
            continue
        came = [at for at, number in instants.items() if number > 0]
        first, last = (min(came), max(came)) if came else _NOBODY
        is_less = any(number < 0 for number in instants.values())
        for one in (key, whole_of(key.break_group)):
            keys.add(one)
            if is_less:
                lost.append((one, start))
            for level in LEVELS:
                place = (level, id_of(one), start_of(level, start))
                known = amounts.setdefault(place, [0] * len(_COLUMNS))
                for number, amount in enumerate(sums):
                    known[number] += amount
                least, most = ends.get(place, _NOBODY)
                ends[place] = (min(least, first), max(most, last))
    for column, counts in enumerate(grown, start=len(SUMS)):
        # Also of hours beside those that breaks came to: what was a first one is none any more.
        for (group, start), number in counts.items():
            for level in LEVELS:
                place = (level, id_of(whole_of(group)), start_of(level, start))
                amounts.setdefault(place, [0] * len(_COLUMNS))[column] += number
    if keys:
        _put_keys(connection, keys)
    run(
        connection,
        _upsert(connection),
        [(*place, *amounts[place], *ends.get(place, _NOBODY)) for place in sorted(amounts)],
    )
    if lost:
        _correct(connection, lost)


def _put_keys(connection: Connection, keys: set[Key]) -> None:
    found = {id_of(key): key for key in keys}
    query = f"SELECT id FROM rollup_break_keys WHERE {among_these(connection, 'id')}"  # noqa: S608
    for number in connection.exec_driver_sql(query, (listed(connection, found),)).scalars():
        del found[number]
    columns = ("id", *Key._fields)
    run(
        connection,
        f"INSERT INTO rollup_break_keys ({', '.join(columns)}) "  # noqa: S608
        f"VALUES ({', '.join('?' * len(columns))}) ON CONFLICT (id) DO NOTHING",
        [(number, *key) for number, key in sorted(found.items())],
    )


def _upsert(connection: Connection) -> str:
    least, most = (
        ("LEAST", "GREATEST") if connection.dialect.name == "postgresql" else ("MIN", "MAX")
    )
    known = "rollup_breaks"
    adds = ", ".join(f"{name} = {known}.{name} + excluded.{name}" for name in _COLUMNS)
    columns = ("level", "key", "start", *_COLUMNS, "first_at", "last_at")
    return (
        f"INSERT INTO {known} ({', '.join(columns)}) "  # noqa: S608  (our own names)
        f"VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT (level, key, start) DO UPDATE SET {adds}, "
        f"first_at = {least}({known}.first_at, excluded.first_at), "
        f"last_at = {most}({known}.last_at, excluded.last_at)"
    )


# Where something was taken away


def _correct(connection: Connection, lost: Iterable[tuple[Key, int]]) -> None:
    """Leave nothing empty behind, and find again when the rest began and ended."""
    hours = dict.fromkeys((id_of(key), start) for key, start in lost)
    days = dict.fromkeys((key, start_of(DAY, start)) for key, start in hours)
    for level, places in ((HOUR, hours), (DAY, days)):
        run(
            connection,
            "DELETE FROM rollup_breaks WHERE level = ? AND key = ? AND start = ? AND turns = 0",
            [(level, *place) for place in sorted(places)],
        )
    ends = []
    for key, start in dict.fromkeys(lost):
        query = _ends_of_rows(break_groups.told_by(key.break_group), key.whole)
        asked = {"begin": start, "end": start + HOUR, **key._asdict()}
        ends.append(((HOUR, id_of(key), start), connection.execute(query, asked).one()))
    _put_ends(connection, ends)
    ends = []
    for number, start in days:
        asked = {"of_key": number, "begin": start, "end": start + DAY}
        ends.append(((DAY, number, start), connection.execute(_ENDS_OF_HOURS, asked).one()))
    _put_ends(connection, ends)


# Made once: to build them for each stretch takes longer than to run them.
@cache
def _ends_of_rows(told_by: ColumnElement[str], whole: bool) -> Select[Any]:
    """When the rows of a group that are of a key began; of a ``whole`` key all are."""
    told_apart = (
        ()
        if whole
        else (
            *(c[name].is_not_distinct_from(bindparam(name)) for name in _TOLD_APART[:-2]),
            size == bindparam("size"),
            long == bindparam("long"),
        )
    )
    return select(func.min(c.started_at), func.max(c.started_at)).where(
        break_groups.broken,
        told_by == bindparam("break_group"),
        c.started_at >= bindparam("begin"),
        c.started_at < bindparam("end"),
        *told_apart,
    )


_ENDS_OF_HOURS = select(func.min(s.first_at), func.max(s.last_at)).where(
    s.level == HOUR,
    s.key == bindparam("of_key"),
    s.start >= bindparam("begin"),
    s.start < bindparam("end"),
)


def _put_ends(connection: Connection, ends: Iterable[tuple[Place, Sequence[Any]]]) -> None:
    run(
        connection,
        "UPDATE rollup_breaks SET first_at = ?, last_at = ? "
        "WHERE level = ? AND key = ? AND start = ?",
        [(first, last, *place) for place, (first, last) in ends if first is not None],
    )


def unused_keys(connection: Connection) -> None:
    """Forget the names of what no sum is told apart by any more. Nobody else may add meanwhile."""
    connection.execute(delete(break_tables.keys).where(k.id.not_in(select(s.key).distinct())))


# Anew


def rebuild(connection: Connection) -> None:
    """Count all breaks anew. Nobody else may add meanwhile."""
    for table in (break_tables.sums, break_tables.sessions, break_tables.keys):
        connection.execute(delete(table))
    query = select(*(c[name] for name in NEEDED)).where(break_groups.broken)
    found: Any = connection.execute(
        query.order_by(c.session_key), execution_options={"yield_per": _AT_ONCE}
    )
    made, session, number = Broken(), None, 0
    for row in found:
        # Sessions are put whole. Of rows, not of sums: what is known of a few groups grows too.
        if row.session_key != session and number >= _AT_ONCE:
            put(connection, made, fresh=True)
            made, number = Broken(), 0
        session = row.session_key
        number += 1
        made.add([cast("TurnRow", row)])
    put(connection, made, fresh=True)
    states.remove(connection, states.BREAKS_MISSING)
