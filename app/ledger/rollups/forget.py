"""Taking away from the sums what rows had added that are no longer there to be counted.

Of a tenant all is known: sums are kept by tenant, and what is not told apart is their sum. Of a
session only its own sums are: nothing says which part of the others was its.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from operator import add
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    delete,
    func,
    select,
    update,
)

from app.ledger.rollups import break_sums, lives, tables
from app.ledger.rollups.among import parts
from app.ledger.rollups.contribution import DAY, SESSION_LEVELS, SUMS, Key, facts_of
from app.ledger.rollups.distribution import read_counts, stored_counts
from app.ledger.rollups.state import RollupState

_SPAN = 30 * DAY
"""Time whose sums are read at once."""
k, s = tables.keys.c, tables.sessions.c


def turns_of(connection: Connection, of: ColumnElement[bool], until: int) -> int:
    """How many turns before an instant the sums of sessions count; ``of`` says of which."""
    query = select(func.coalesce(func.sum(s.turns), 0)).where(
        of, s.level == SESSION_LEVELS[0], s.start < until
    )
    return int(connection.execute(query).scalar_one())


def sessions(
    connection: Connection, of: ColumnElement[bool], until: int, state: RollupState
) -> None:
    """Forget what sessions add up to before ``until``, a whole day. ``state`` must be held."""
    gone = and_(of, s.start < until)
    touched = connection.execute(select(s.session_key).where(gone).distinct()).scalars().all()
    for some in parts(touched):
        mine = s.session_key.in_(some)
        connection.execute(delete(tables.sessions).where(gone, mine))
        lives.refresh(connection, some, state)


def tenant(connection: Connection, name: str, until: int, state: RollupState) -> None:
    """Forget all that a tenant adds up to before ``until``, a whole day. ``state`` must be held."""
    query = select(k.id, *(k[part] for part in Key._fields)).where(k.tenant == name)
    keys = {found[0]: Key(*found[1:]) for found in connection.execute(query)}
    sessions(connection, of_tenant(name), until, state)
    for table, take in ((tables.cells, _take_sums), (tables.times, _take_times)):
        for level, start, end in _spans(connection, table, until):
            for some in parts(sorted(keys)):
                c = table.c
                mine = and_(c.detail == 1, c.level == level, c.start >= start, c.start < end)
                mine = and_(mine, c.key.in_(some))
                take(connection, connection.execute(select(table).where(mine)).all(), keys)
                connection.execute(delete(table).where(mine))


def of_tenant(name: str) -> ColumnElement[bool]:
    """The sums of sessions of a tenant."""
    return s.key.in_(select(k.id).where(k.tenant == name))


def unused_keys(connection: Connection) -> None:
    """Forget the names of what no sum is told apart by any more. Nobody else may add meanwhile."""
    # Distinct: for a long list PostgreSQL would go through all of it for each name.
    used = [
        select(table.c.key).distinct() for table in (tables.cells, tables.times, tables.sessions)
    ]
    connection.execute(delete(tables.keys).where(*(k.id.not_in(one) for one in used)))
    break_sums.unused_keys(connection)


def _spans(connection: Connection, table: Table, until: int) -> Iterator[tuple[int, int, int]]:
    """Level, start and end of the stretches before an instant, a month at a time."""
    c = table.c
    query = select(c.level, func.min(c.start)).where(c.start < until).group_by(c.level)
    for level, first in connection.execute(query).all():
        for start in range(first, until, _SPAN):
            yield level, start, min(start + _SPAN, until)


def _take_sums(connection: Connection, found: Sequence[Any], keys: dict[int, Key]) -> None:
    sums: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for row in found:
        at = (row.level, row.start, facts_of(facts_of(keys[row.key]).all).id)
        part = tuple(getattr(row, name) for name in SUMS)
        sums[at] = part if at not in sums else tuple(map(add, sums[at], part))
    if not sums:
        return
    c = tables.cells.c
    place = (
        c.detail == 0,
        c.level == bindparam("l"),
        c.start == bindparam("s"),
        c.key == bindparam("k"),
    )
    less = {name: c[name] - bindparam(f"less_{name}") for name in SUMS}
    connection.execute(
        update(tables.cells).where(*place).values(less),
        [
            dict(zip("lsk", at, strict=True))
            | {f"less_{name}": value for name, value in zip(SUMS, part, strict=True)}
            for at, part in sums.items()
        ],
    )
    connection.execute(
        delete(tables.cells).where(*place, c.turns == 0),
        [dict(zip("lsk", at, strict=True)) for at in sums],
    )


def _take_times(connection: Connection, found: Sequence[Any], keys: dict[int, Key]) -> None:
    less: defaultdict[tuple[int, int, int], tuple[Counter[int], Counter[int]]] = defaultdict(
        lambda: (Counter(), Counter())
    )
    for row in found:
        at = (row.level, row.start, facts_of(facts_of(keys[row.key]).all_times).id)
        for counts, times in zip(less[at], (row.ttft, row.duration), strict=True):
            counts.update(read_counts(bytes(times)))
    c = tables.times.c
    for (level, start, key), both in less.items():
        one = and_(c.detail == 0, c.level == level, c.start == start, c.key == key)
        whole = connection.execute(select(c.ttft, c.duration).where(one)).one_or_none()
        if whole is None:
            continue
        left = [
            stored_counts(read_counts(bytes(times)) - part)
            for times, part in zip(whole, both, strict=True)
        ]
        if any(left):
            connection.execute(
                update(tables.times).where(one).values(ttft=left[0], duration=left[1])
            )
        else:
            connection.execute(delete(tables.times).where(one))
