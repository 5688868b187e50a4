"""Sessions as a whole, kept so that those of a long window need not be added up one by one.

Hours are cut into blocks of 1, 2, 4, 8 … hours, each beginning at a multiple of its length. A
session belongs to the smallest block that holds it whole. So the sessions that lie within a window
are those of the blocks within it, whose sums are kept, and of the few blocks that the window's
edges cut; no more sessions than were under way at some moment belong to each of these.

All that is here covers the hours that are over (``RollupState.coarse_until``), and follows from
the days and hours of sessions: what was touched is worked out anew from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    cast,
    delete,
    func,
    or_,
    select,
    tuple_,
)
from sqlalchemy.types import BigInteger

from app.ledger.rollups import tables
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.rollups.shares import stored_shares
from app.ledger.rollups.state import RollupState

li, b, s = tables.lives.c, tables.blocks.c, tables.sessions.c
SIZES = range(21)
"""A block of size ``n`` has ``2 ** n`` hours; the greatest has a hundred years."""
EVERYTHING = (21, 0)
"""The block of what none of them holds: where a client's clock was far off."""
_AT_ONCE = 500
_LOCK = "SELECT pg_advisory_xact_lock(8388065821513082735)"

Block = tuple[int, int]
"""Its size, and which one of that size since 1970."""


class Life(NamedTuple):
    session_key: str
    size: int
    block: int
    first: int
    last: int
    turns: int
    incremental: int
    known: int


def hold(connection: Connection) -> None:
    """Let nobody else refresh before this transaction ends.

    Needed where the state is not held for a change: by rows of hours that are over.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_LOCK)


def block_of(first: int, last: int) -> Block:
    """The smallest block that holds two hours."""
    size = (first ^ last).bit_length()
    return (size, first >> size) if size in SIZES and (first < 0) == (last < 0) else EVERYTHING


def active(connection: Connection, start: int, end: int | None) -> list[str]:
    """The sessions that have stretches in ``[start, end)``."""
    query = select(s.session_key).where(s.level == HOUR, s.start >= start).distinct()
    return list(connection.execute(query if end is None else query.where(s.start < end)).scalars())


def refresh(connection: Connection, sessions: Iterable[str], state: RollupState) -> None:
    """Work out anew the lives of these sessions, and the blocks that they leave or enter."""
    touched: set[Block] = set()
    for some in _parts(sorted(set(sessions))):
        is_one = li.session_key.in_(some)
        known = {life.session_key: life for life in _lives(connection, is_one)}
        wanted = {life.session_key: life for life in _worked_out(connection, some, state)}
        gone = [life for key, life in known.items() if wanted.get(key) != life]
        new = [life for key, life in wanted.items() if known.get(key) != life]
        if gone:
            keys = [life.session_key for life in gone]
            connection.execute(delete(tables.lives).where(li.session_key.in_(keys)))
        if new:
            connection.execute(tables.lives.insert(), [life._asdict() for life in new])
        touched |= {(life.size, life.block) for life in (*gone, *new)}
    for part in _parts(sorted(touched)):
        _count(connection, part)


def clear(connection: Connection) -> None:
    """Forget all."""
    for table in (tables.lives, tables.blocks):
        connection.execute(delete(table))


def _worked_out(
    connection: Connection, sessions: Sequence[str], state: RollupState
) -> Iterator[Life]:
    days = state.whole_until(DAY)
    sums = [cast(func.sum(s[name]), BigInteger) for name in ("turns", "incremental", "known")]
    query = (
        select(s.session_key, func.min(s.first_at), func.max(s.last_at), *sums)
        .where(
            s.session_key.in_(sessions),
            or_(
                and_(s.level == DAY, s.start < days),
                and_(s.level == HOUR, s.start >= days, s.start < state.coarse_until),
            ),
        )
        .group_by(s.session_key)
    )
    for key, first_at, last_at, *figures in connection.execute(query):
        first, last = first_at // HOUR, last_at // HOUR
        yield Life(key, *block_of(first, last), first, last, *figures)


def _count(connection: Connection, touched: Sequence[Block]) -> None:
    of: dict[Block, list[Life]] = {block: [] for block in touched}
    # SQLite looks up columns by a list, but not pairs of them.
    sizes, numbers = ({*part} for part in zip(*touched, strict=True))
    pairs = tuple_(li.size, li.block).in_(touched)
    for life in _lives(connection, and_(li.size.in_(sizes), li.block.in_(numbers), pairs)):
        of[life.size, life.block].append(life)
    one = and_(b.size == bindparam("of_size"), b.block == bindparam("of_block"))
    connection.execute(
        delete(tables.blocks).where(one),
        [{"of_size": size, "of_block": block} for size, block in touched],
    )
    rows = []
    for (size, block), some in of.items():
        if some:
            leader = min(some, key=lambda life: (-life.turns, life.session_key))
            rows.append(
                {
                    "size": size,
                    "block": block,
                    "sessions": len(some),
                    "most": leader.turns,
                    "leader": leader.session_key,
                    "shares": stored_shares((life.incremental, life.known) for life in some),
                }
            )
    if rows:
        connection.execute(tables.blocks.insert(), rows)


def _lives(connection: Connection, condition: ColumnElement[bool]) -> list[Life]:
    query = select(*(li[name] for name in Life._fields)).where(condition)
    return [Life(*row) for row in connection.execute(query)]


def _parts(found: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(found), _AT_ONCE):
        yield found[first : first + _AT_ONCE]
