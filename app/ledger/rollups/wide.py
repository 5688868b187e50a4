"""Session figures of a window that spans hours, without adding up each session.

Most sessions lie within such a window whole: those of its blocks come as sums (``lives``). Only
the others are added up: those with turns beyond the first and last whole hour of the window, and
those that go on beyond it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import Connection

from app.ledger.filters import Filter
from app.ledger.rollups import state as states
from app.ledger.rollups.adding import SHARE, TURNS, Number, added, counted
from app.ledger.rollups.among import listed, sessions_among
from app.ledger.rollups.contribution import HOUR, SESSION_LEVELS, start_of
from app.ledger.rollups.lives import EVERYTHING, SIZES, TOGETHER, Block, in_blocks
from app.ledger.rollups.plan import Plan, plan
from app.ledger.rollups.reaching import reach
from app.ledger.rollups.shares import Share, count_shares, split
from app.ledger.rollups.state import RollupState
from app.ledger.rollups.unfiltered import parts

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
    """Of hours that are over, so that sessions with turns there are not within the core."""
    ahead: Plan | None = None
    """What lies after it, of hours that are not over."""


def core(connection: Connection, view: Filter) -> Core | None:
    """None where blocks know nothing of what is asked for."""
    if view.include or view.exclude or view.q is not None or view.by != "started":
        return None
    state = states.read(connection)
    if state.missing:
        return None
    return _core(view.start, reach(connection, view, SESSION_LEVELS[0]), state)


def _core(start: int, until: int, state: RollupState) -> Core | None:
    first = -(-start // HOUR)
    end = min(start_of(HOUR, until), state.whole_until(HOUR)) // HOUR
    if first >= end:
        return None
    is_open = end * HOUR == state.whole_until(HOUR)
    before, hours, after = (
        plan(*span, [], SESSION_LEVELS, state)
        for span in pairwise((start, first * HOUR, end * HOUR, until))
    )
    if is_open:
        return Core(first, end, hours, (before,), after)
    return Core(first, end, hours, (before, after))


def within(whole: Core) -> str:
    """The blocks that lie within the core."""
    return f"({' OR '.join(_within(whole)) or '1 = 0'})"


def _within(whole: Core, least: int = 0) -> list[str]:
    terms = []
    for size in SIZES[least:]:
        first, end = -(-whole.first >> size), whole.end >> size
        if first >= end:
            break
        terms.append(f"(size = {size} AND block >= {first} AND block < {end})")
    return terms


def cut(whole: Core) -> list[Block]:
    """The blocks that lie partly within the core."""
    found = {EVERYTHING}
    for size in SIZES:
        for edge in (whole.first, whole.end):
            if edge & ((1 << size) - 1):
                found.add((size, edge >> size))
    return sorted(found)


def held(whole: Core) -> str:
    """The lives within the core whose block is not."""
    return f"{in_blocks(cut(whole))} AND {_holds(whole)}"


def _holds(whole: Core) -> str:
    return f"first >= {whole.first} AND last < {whole.end}"


def crossing(connection: Connection, whole: Core) -> list[str]:
    """The sessions with hours in the core that are not within it."""
    found = connection.exec_driver_sql(
        f"SELECT session_key FROM rollup_lives WHERE {_crosses(whole)} LIMIT {MANY}"  # noqa: S608
    )
    return list(found.scalars().all())


def _crosses(whole: Core) -> str:
    return (
        f"{in_blocks(cut(whole))} AND first < {whole.end} AND last >= {whole.first} "
        f"AND NOT ({_holds(whole)})"
    )


def count(connection: Connection, whole: Core) -> int:
    """How many sessions lie within the core."""
    found = connection.exec_driver_sql(
        "SELECT CAST(COALESCE(SUM(sessions), 0) AS BIGINT) FROM rollup_blocks "  # noqa: S608
        f"WHERE {within(whole)} "
        f"UNION ALL SELECT COUNT(*) FROM rollup_lives WHERE {held(whole)}"
    )
    return sum(found.scalars().all())


def count_others(connection: Connection, whole: Core) -> int:
    """How many sessions with turns in the window do not lie within the core."""
    # Of those that begin before the core and end after it, not all have turns in it.
    hour = (
        "SELECT 1 FROM rollup_sessions AS hours WHERE hours.session_key = rollup_lives.session_key "  # noqa: S608
        f"AND level = {HOUR} AND start >= {whole.first * HOUR} AND start < {whole.end * HOUR}"
    )
    crossing = (
        f"SELECT session_key FROM rollup_lives WHERE {_crosses(whole)} "  # noqa: S608
        f"AND (first >= {whole.first} OR last < {whole.end} OR EXISTS ({hour}))"
    )
    sides = whole.beside if whole.ahead is None else (*whole.beside, whole.ahead)
    # In the database, as nothing but their number is handed over.
    met = " UNION ".join(
        [crossing, *(part for side in sides for part in parts(connection.dialect, side))]
    )
    # Not by NOT EXISTS, for which PostgreSQL would read the lives of all sessions.
    inside = (
        "SELECT 1 FROM rollup_lives "  # noqa: S608
        f"WHERE rollup_lives.session_key = met.session_key AND {_holds(whole)}"
    )
    found = connection.exec_driver_sql(
        f"SELECT COUNT(*) FROM ({met}) AS met WHERE ({inside}) IS NULL"  # noqa: S608
    )
    return int(found.scalar_one())


def cover(whole: Core) -> Iterator[Block]:
    """The blocks smaller than ``TOGETHER`` that make up the core, as few as there are, together
    with those of ``TOGETHER`` within them."""
    first, end = whole.first, whole.end
    for size in range(TOGETHER):
        if first >= end:
            return
        if first & 1:
            yield size, first
            first += 1
        if end & 1:
            end -= 1
            yield size, end
        first, end = first >> 1, end >> 1


def shares(connection: Connection, whole: Core) -> Counter[Share]:
    """Of the sessions whose blocks lie within the core."""
    terms = [f"(size = {size} AND block = {block})" for size, block in cover(whole)]
    terms += _within(whole, TOGETHER)
    found = connection.exec_driver_sql(
        f"SELECT shares FROM rollup_shares WHERE {' OR '.join(terms)}"  # noqa: S608  (numbers)
    )
    return count_shares(b"".join(found.scalars().all()))


def _beside(
    connection: Connection, whole: Core, number: Number
) -> tuple[dict[str, int], dict[str, int]]:
    """The sums of the sessions with turns of the window beside the core; and of those of them that
    lie within the core, what they add up to in there."""
    sums: Counter[str] = Counter()
    for side in whole.beside:
        sums.update(added(connection, side, number))
    if whole.ahead is None:
        return sums, {}
    ahead = added(connection, whole.ahead, number)
    sums.update(ahead)
    found = connection.exec_driver_sql(
        f"SELECT session_key, {number.value} FROM rollup_lives "  # noqa: S608
        f"WHERE {sessions_among(connection)} AND {_holds(whole)}",
        (listed(connection, ahead),),
    )
    return sums, dict(map(tuple, found))


def residency(connection: Connection, whole: Core, cross: Collection[str]) -> Counter[Share]:
    """How many sessions of the window have each share; ``cross`` are those of ``crossing``."""
    found = shares(connection, whole)
    of_cut = counted(connection, SHARE.value, f"FROM rollup_lives WHERE {held(whole)}")
    sums, inside = _beside(connection, whole, SHARE)
    # Those that are within the core and also beside it count once, with both.
    for key, share in inside.items():
        found[split(share)] -= 1
        sums[key] += share
    if cross:
        for key, share in added(connection, whole.hours, SHARE, cross).items():
            sums[key] = sums.get(key, 0) + share
    for share, number in (of_cut + Counter(sums.values())).items():
        found[split(share)] += number
    return found


def foremost(connection: Connection, whole: Core, limit: int) -> list[str]:
    """Sessions of the window among which are those that have the most turns in it.

    These are the first ones within the core, and all others that may have as many.
    """
    first = leaders(connection, whole, limit)
    least = -first[-1][0] if len(first) == limit else 0
    crossing = connection.exec_driver_sql(
        f"SELECT session_key, turns FROM rollup_lives WHERE {_crosses(whole)} LIMIT {MANY}"  # noqa: S608
    )
    most: dict[str, int] = dict(map(tuple, crossing))
    if len(most) >= MANY:
        return list(most)
    sums, inside = _beside(connection, whole, TURNS)
    for key, turns in (*sums.items(), *inside.items()):
        most[key] = most.get(key, 0) + turns
    others = (key for key, turns in most.items() if turns >= least)
    return list({*(key for _, key in first), *others})


def leaders(connection: Connection, whole: Core, limit: int) -> list[tuple[int, str]]:
    """The sessions within the core that have the most turns: minus their number, and the key."""
    # The first sessions are in the first blocks, if both are ordered alike.
    blocks = connection.exec_driver_sql(
        f"SELECT size, block, most FROM rollup_blocks WHERE {within(whole)} "  # noqa: S608
        f"ORDER BY most DESC, leader LIMIT {limit}"
    ).all()
    least = blocks[-1].most if len(blocks) == limit else 0
    conditions = [held(whole)]
    if blocks:
        of_blocks = in_blocks([(row.size, row.block) for row in blocks])
        conditions.append(f"{of_blocks} AND turns >= {least}")
    found: list[tuple[int, str]] = []
    for condition in conditions:
        some = connection.exec_driver_sql(
            f"SELECT -turns, session_key FROM rollup_lives WHERE {condition} "  # noqa: S608
            f"ORDER BY turns DESC, session_key LIMIT {limit}"
        )
        found += [(turns, key) for turns, key in some.all()]
    return sorted(found)[:limit]
