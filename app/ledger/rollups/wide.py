"""Session figures of a window that spans hours, without adding up each session.

Most sessions lie within such a window whole: those of its blocks come as sums (``lives``). Only
the others are added up: those with turns beyond the first and last whole hour of the window, and
those that go on beyond it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, false, func, or_, select, tuple_

from app.ledger.filters import Filter
from app.ledger.rollups import state as states
from app.ledger.rollups import tables
from app.ledger.rollups.contribution import HOUR, SESSION_LEVELS, start_of
from app.ledger.rollups.lives import EVERYTHING, SIZES, Block, Life
from app.ledger.rollups.plan import Plan, plan
from app.ledger.rollups.shares import Share, count_shares
from app.ledger.rollups.state import RollupState

li, b = tables.lives.c, tables.blocks.c
MANY = 5_000
"""From so many sessions that have to be added up on, adding up all is as quick."""


@dataclass(frozen=True, slots=True)
class Core:
    """The whole hours of a window, in hours since 1970; where they come from, and what lies beside
    them."""

    first: int
    end: int
    hours: Plan
    beside: tuple[Plan, ...]

    def holds(self, life: Life) -> bool:
        return self.first <= life.first and life.last < self.end


def core(connection: Connection, view: Filter) -> Core | None:
    """None where blocks know nothing of what is asked for."""
    if view.include or view.exclude or view.q is not None or view.by != "started":
        return None
    state = states.read(connection)
    return None if state.missing else _core(view, state)


def _core(view: Filter, state: RollupState) -> Core | None:
    first = -(-view.start // HOUR)
    end = min(start_of(HOUR, view.end), state.whole_until(HOUR)) // HOUR
    if first >= end:
        return None
    sides = ((view.start, first * HOUR), (end * HOUR, view.end))
    return Core(
        first,
        end,
        plan(first * HOUR, end * HOUR, [], SESSION_LEVELS, state),
        tuple(plan(*side, [], SESSION_LEVELS, state) for side in sides if _any(side)),
    )


def _any(side: tuple[int, int]) -> bool:
    return side[0] < side[1]


def within(whole: Core) -> ColumnElement[bool]:
    """The blocks that lie within the core."""
    terms = []
    for size in SIZES:
        first, end = -(-whole.first >> size), whole.end >> size
        if first >= end:
            break
        terms.append(and_(b.size == size, b.block >= first, b.block < end))
    return or_(false(), *terms)


def cut(whole: Core) -> list[Block]:
    """The blocks that lie partly within the core."""
    found = {EVERYTHING}
    for size in SIZES:
        for edge in (whole.first, whole.end):
            if edge & ((1 << size) - 1):
                found.add((size, edge >> size))
    return sorted(found)


def held(whole: Core) -> ColumnElement[bool]:
    """The lives within the core whose block is not."""
    return and_(_in_cut(whole), li.first >= whole.first, li.last < whole.end)


def crossing(connection: Connection, whole: Core) -> list[str]:
    """The sessions with hours in the core that are not within it."""
    query = select(li.session_key).where(
        _in_cut(whole),
        li.first < whole.end,
        li.last >= whole.first,
        or_(li.first < whole.first, li.last >= whole.end),
    )
    return list(connection.execute(query.limit(MANY)).scalars())


def lives(connection: Connection, whole: Core, sessions: Sequence[str]) -> list[Life]:
    """Of these sessions, the lives within the core."""
    query = select(*(li[name] for name in Life._fields)).where(li.session_key.in_(sessions))
    return [life for life in (Life(*row) for row in connection.execute(query)) if whole.holds(life)]


def in_blocks(blocks: Sequence[Block]) -> ColumnElement[bool]:
    """The lives of some blocks. SQLite looks up columns by a list, but not pairs of them."""
    return and_(
        li.size.in_({size for size, _ in blocks}),
        li.block.in_({block for _, block in blocks}),
        tuple_(li.size, li.block).in_(blocks),
    )


def _in_cut(whole: Core) -> ColumnElement[bool]:
    return in_blocks(cut(whole))


def count(connection: Connection, whole: Core) -> int:
    """How many sessions lie within the core."""
    blocks = select(func.coalesce(func.sum(b.sessions), 0)).where(within(whole))
    others = select(func.count()).select_from(tables.lives).where(held(whole))
    return int(connection.execute(blocks).scalar_one() + connection.execute(others).scalar_one())


def shares(connection: Connection, whole: Core) -> Counter[Share]:
    """What of each session within the core was continued."""
    stored = connection.execute(select(b.shares).where(within(whole))).scalars()
    found = count_shares(b"".join(stored))
    others = select(li.incremental, li.known).where(held(whole))
    found.update((part, known) for part, known in connection.execute(others))
    return found


def leaders(connection: Connection, whole: Core, limit: int) -> list[tuple[int, str]]:
    """The sessions within the core that have the most turns: minus their number, and the key."""
    # The first sessions are in the first blocks, if both are ordered alike.
    best = (
        select(b.size, b.block, b.most)
        .where(within(whole))
        .order_by(b.most.desc(), b.leader)
        .limit(limit)
    )
    blocks = connection.execute(best).all()
    least = blocks[-1].most if len(blocks) == limit else 0
    of_blocks = and_(in_blocks([(row.size, row.block) for row in blocks]), li.turns >= least)
    found: list[tuple[int, str]] = []
    for condition in (of_blocks, held(whole)):
        query = (
            select(-li.turns, li.session_key)
            .where(condition)
            .order_by(li.turns.desc(), li.session_key)
            .limit(limit)
        )
        found += [(turns, key) for turns, key in connection.execute(query)]
    return sorted(found)[:limit]
