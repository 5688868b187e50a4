"""Sessions as a whole, kept so that those of a long window need not be added up one by one.

Hours are cut into blocks of 1, 2, 4, 8 … hours, each beginning at a multiple of its length. A
session belongs to the smallest block that holds it whole. So the sessions that lie within a window
are those of the blocks within it, whose sums are kept, and of the few blocks that the window's
edges cut; no more sessions than were under way at some moment belong to each of these. How much of
sessions was continued is also kept for blocks together with the smaller ones within them: so a
window reads a few dozen of them, however many sessions it has.

All that is here covers the hours that are over (``RollupState.coarse_until``), and follows from
the days and hours of sessions: what was touched is worked out anew from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete

from app.ledger.rollups import tables
from app.ledger.rollups.among import listed, parts, run, sessions_among, text
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.rollups.shares import Share, stored_shares, summed_shares
from app.ledger.rollups.state import RollupState

SIZES = range(21)
"""A block of size ``n`` has ``2 ** n`` hours; the greatest has a hundred years."""
TOGETHER = 9
"""Up to this size, three weeks, the shares of a block are those of all sessions within it. Those
of greater ones are of their own alone: what is touched changes no more than a few."""
EVERYTHING = (21, 0)
"""The block of what none of them holds: where a client's clock was far off."""
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
    until = "" if end is None else f" AND start < {end}"
    found = connection.exec_driver_sql(
        "SELECT DISTINCT session_key FROM rollup_sessions "  # noqa: S608  (numbers)
        f"WHERE level = {HOUR} AND start >= {start}{until}"
    )
    return list(found.scalars().all())


def in_blocks(blocks: Sequence[Block]) -> str:
    """The lives of some blocks. SQLite looks up columns by a list, but not pairs of them."""
    sizes, numbers = ({*part} for part in zip(*blocks, strict=True))
    pairs = ", ".join(f"({size}, {block})" for size, block in blocks)
    return (
        f"size IN ({', '.join(map(str, sizes))}) AND block IN ({', '.join(map(str, numbers))}) "
        f"AND (size, block) IN (VALUES {pairs})"
    )


def refresh(connection: Connection, sessions: Iterable[str], state: RollupState) -> None:
    """Work out anew the lives of these sessions, and the blocks that they leave or enter."""
    touched: set[Block] = set()
    for some in parts(sorted(set(sessions))):
        whose, given = sessions_among(connection), (listed(connection, some),)
        known = {life.session_key: life for life in _lives(connection, whose, given)}
        wanted = {life.session_key: life for life in _worked_out(connection, some, state)}
        gone = [life for key, life in known.items() if wanted.get(key) != life]
        new = [life for key, life in wanted.items() if known.get(key) != life]
        if gone:
            keys = listed(connection, [life.session_key for life in gone])
            connection.exec_driver_sql(f"DELETE FROM rollup_lives WHERE {whose}", (keys,))  # noqa: S608
        if new:
            _insert(connection, "rollup_lives", Life._fields, [tuple(life) for life in new])
        touched |= {(life.size, life.block) for life in (*gone, *new)}
    for part in parts(sorted(touched)):
        _count(connection, part)
    _sum_shares(connection, touched)


def clear(connection: Connection) -> None:
    """Forget all."""
    for table in (tables.lives, tables.blocks, tables.shares):
        connection.execute(delete(table))


def _worked_out(
    connection: Connection, sessions: Sequence[str], state: RollupState
) -> Iterator[Life]:
    days = state.whole_until(DAY)
    sums = ", ".join(f"CAST(SUM({name}) AS BIGINT)" for name in ("turns", "incremental", "known"))
    # By an expression, so that SQLite looks up the sessions and not the stretches.
    found = connection.exec_driver_sql(
        f"SELECT session_key, MIN(first_at), MAX(last_at), {sums} FROM rollup_sessions "  # noqa: S608
        f"WHERE {sessions_among(connection)} AND ((level + 0 = {DAY} AND start < {days}) "
        f"OR (level + 0 = {HOUR} AND start >= {days} AND start < {state.coarse_until})) "
        "GROUP BY session_key",
        (listed(connection, sessions),),
    )
    for key, first_at, last_at, *figures in found.all():
        first, last = first_at // HOUR, last_at // HOUR
        yield Life(key, *block_of(first, last), first, last, *figures)


def _count(connection: Connection, touched: Sequence[Block]) -> None:
    of: dict[Block, list[Life]] = {block: [] for block in touched}
    for life in _lives(connection, in_blocks(touched)):
        of[life.size, life.block].append(life)
    connection.exec_driver_sql(f"DELETE FROM rollup_blocks WHERE {_places(touched)}")  # noqa: S608
    rows = []
    for (size, block), some in of.items():
        if some:
            leader = min(some, key=lambda life: (-life.turns, life.session_key))
            rows.append((size, block, len(some), leader.turns, leader.session_key))
    if rows:
        columns = ("size", "block", "sessions", "most", "leader")
        _insert(connection, "rollup_blocks", columns, rows)


def _sum_shares(connection: Connection, touched: Iterable[Block]) -> None:
    """Sum up the shares of these blocks, and of those around them that have theirs too."""
    of: dict[Block, list[bytes]] = {
        (greater, block >> (greater - size)): []
        for size, block in touched
        for greater in range(size, max(size, TOGETHER) + 1)
    }
    for part in parts(sorted(of)):
        found = connection.exec_driver_sql(
            "SELECT size, block, incremental, known, COUNT(*) FROM rollup_lives "  # noqa: S608
            f"WHERE {in_blocks(part)} GROUP BY size, block, incremental, known"
        )
        own: defaultdict[Block, dict[Share, int]] = defaultdict(dict)
        for size, block, incremental, known, sessions in found.all():
            own[size, block][incremental, known] = sessions
        for place, shares in own.items():
            of[place].append(stored_shares(shares))
    halves = {(size - 1, 2 * block + half) for size, block in of if 0 < size <= TOGETHER
              for half in (0, 1)}  # fmt: skip
    for part in parts(sorted(halves - of.keys())):
        found = connection.exec_driver_sql(
            f"SELECT size, block, shares FROM rollup_shares WHERE {_places(part)}"  # noqa: S608
        )
        for size, block, stored in found.all():
            of[size + 1, block >> 1].append(stored)
    rows = []
    for size, block in sorted(of):
        if whole := summed_shares(of[size, block]):
            rows.append((size, block, whole))
            if size < TOGETHER:
                of[size + 1, block >> 1].append(whole)
    for part in parts(sorted(of)):
        connection.exec_driver_sql(f"DELETE FROM rollup_shares WHERE {_places(part)}")  # noqa: S608
    run(
        connection,
        "INSERT INTO rollup_shares (size, block, shares) VALUES (?, ?, ?)",
        rows,
    )


def _places(blocks: Sequence[Block]) -> str:
    return f"(size, block) IN (VALUES {', '.join(map(str, blocks))})"


def _lives(connection: Connection, condition: str, given: tuple[Any, ...] = ()) -> list[Life]:
    columns = ", ".join(Life._fields)
    query = f"SELECT {columns} FROM rollup_lives WHERE {condition}"  # noqa: S608
    return [Life(*row) for row in connection.exec_driver_sql(query, given).all()]


def _insert(
    connection: Connection, table: str, columns: Sequence[str], rows: list[tuple[Any, ...]]
) -> None:
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
    connection.exec_driver_sql(text(connection, statement), rows)
