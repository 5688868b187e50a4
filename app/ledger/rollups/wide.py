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
    """The whole hours of a window, in hours since 1970, and what of it lies beside them."""

    first: int
    end: int
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
        first, end, tuple(plan(*side, [], SESSION_LEVELS, state) for side in sides if _any(side))
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


@dataclass(frozen=True, slots=True)
class Others:
    """Sessions that the sums of the blocks do not tell all about."""

    held: list[Life]
    """Within the core, but of a block that its edges cut."""
    twice: list[Life]
    """Within the core, and also in what lies beside it."""
    beside: list[str]
    """All that have turns beside the core."""
    beyond: list[str]
    """Those that have none there, but hours on both sides of the core's edges."""

    @property
    def keys(self) -> list[str]:
        """What is to be added up."""
        return [*self.beside, *self.beyond]


def others(connection: Connection, whole: Core, beside: Sequence[str]) -> Others | None:
    """``beside`` have turns in the window beyond its core. None where there are too many."""
    fields = [li[name] for name in Life._fields]
    partly = (
        select(*fields)
        .where(tuple_(li.size, li.block).in_(cut(whole)))
        .where(li.first < whole.end, li.last >= whole.first)
        .limit(MANY)
    )
    lives = [Life(*row) for row in connection.execute(partly)]
    beyond = {life.session_key for life in lives if not whole.holds(life)} - set(beside)
    if len(lives) == MANY or len(beside) + len(beyond) >= MANY:
        return None
    known = select(*fields).where(li.session_key.in_(beside))
    return Others(
        held=[life for life in lives if whole.holds(life)],
        twice=[
            life for life in (Life(*row) for row in connection.execute(known)) if whole.holds(life)
        ],
        beside=sorted(beside),
        beyond=sorted(beyond),
    )


def count(connection: Connection, whole: Core, some: Others) -> int:
    """The sessions within the core that have no turns beside it."""
    query = select(func.coalesce(func.sum(b.sessions), 0)).where(within(whole))
    return int(connection.execute(query).scalar_one()) + len(some.held) - len(some.twice)


def shares(connection: Connection, whole: Core, some: Others) -> Counter[Share]:
    """What of each of them was continued."""
    query = select(b.shares).where(within(whole))
    found = count_shares(b"".join(connection.execute(query).scalars()))
    found.update((life.incremental, life.known) for life in some.held)
    found.subtract((life.incremental, life.known) for life in some.twice)
    return found


def leaders(connection: Connection, whole: Core, some: Others, limit: int) -> list[tuple[int, str]]:
    """Of these sessions those with the most turns: minus their number, and the key."""
    # The first sessions are in the first blocks, if both are ordered alike.
    best = (
        select(b.size, b.block, b.most)
        .where(within(whole))
        .order_by(b.most.desc(), b.leader)
        .limit(limit)
    )
    places = connection.execute(best).all()
    found = list(some.held)
    if places:
        least = places[-1].most if len(places) == limit else 0
        query = (
            select(*(li[name] for name in Life._fields))
            .where(tuple_(li.size, li.block).in_([(row.size, row.block) for row in places]))
            .where(li.turns >= least)
            .order_by(li.turns.desc(), li.session_key)
            .limit(limit)
        )
        found += [Life(*row) for row in connection.execute(query)]
    beside = set(some.keys)
    return sorted(
        (-life.turns, life.session_key) for life in found if life.session_key not in beside
    )[:limit]
