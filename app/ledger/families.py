"""The sessions of a view as a list shows them: sub-agents rolled up under their roots, in order.

A session is in a view when its life overlaps the window: mostly with turns in it, which its
figures are of; else it is idle there, and comes with figures of nothing. Functions read several
times and want one snapshot: ``database.reading``.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from sqlalchemy import Connection, and_, select

from app.ledger.conditions import time_column
from app.ledger.filters import Filter
from app.ledger.idle import Idle, spanning
from app.ledger.models import turns
from app.ledger.rollups import sessions
from app.ledger.rollups.among import parts, text
from app.ledger.rollups.sessions import Ranked
from app.ledger.sessions import is_sub_agent, missed

c = turns.c
_AT_ONCE = 100
_HEAD = (
    "(SELECT session_key FROM turns WHERE tenant = ? AND session = ? "
    "ORDER BY started_at DESC LIMIT 1)"
)
_BILLION = 10**9

Root = tuple[str, str]
"""The tenant and the name of a session that has sub-agents."""
Place = tuple[int, str]
"""Where a family stands in a list: minus what it is ordered by, and its key."""


@dataclass(frozen=True, slots=True)
class Family:
    """A session and its sub-agents; mostly there are none."""

    place: Place
    root: Root | None
    members: list[Ranked]
    """Those in the view; the idle ones have no turns."""

    @property
    def key(self) -> str:
        """Of the session itself, else the least of its sub-agents': where it has no row."""
        return self.place[1]

    @property
    def sub_agents(self) -> int:
        return sum(member.session_key != self.key for member in self.members)


@dataclass(frozen=True, slots=True)
class Families:
    page: list[Family]
    count: int
    """Of the whole view."""
    sessions: int
    """With turns in the view, sub-agents one by one."""
    idle: dict[str, Idle]
    """The others, by their keys."""
    next: Place | None
    """Where the next page begins after; None where this is the last one."""


def _rate(one: Ranked) -> int:
    """As a whole number that orders like the rate; an unknown one comes last."""
    return 1 + one.mismatches * _BILLION // one.eligible if one.eligible else 0


SORTS: dict[str, Callable[[Ranked], int]] = {
    "recent": attrgetter("last_at"),
    "turns": attrgetter("turns"),
    "cost": attrgetter("cost"),
    "mismatches": _rate,
    "missed": lambda _one: 0,  # from another table: ``families``
}
"""What a list can be ordered by; the greatest comes first."""


def families(
    connection: Connection, view: Filter, sort: str, *, limit: int, after: Place | None = None
) -> Families:
    """A page of a view. With a filter by root nothing is rolled up."""
    ranked = {one.session_key: one for one in sessions.ranked(connection, view)}
    count = len(ranked)
    idle = {one.session_key: one for one in spanning(connection, view, ranked)}
    ranked |= {key: Ranked(key, one.before, 0, 0, 0, 0) for key, one in idle.items()}
    subs: dict[str, Root] = {}
    if "root" not in view.include:
        subs = sub_agents(connection, view) | _roots_of(connection, idle)
    heads = _heads(connection, set(subs.values()))
    roots = {key: root for root, key in heads.items()}
    misses = missed(connection, view) if sort == "missed" else {}
    value = SORTS[sort]

    places: list[Place] = []
    several: dict[str | Root, list[Ranked]] = defaultdict(list)
    for key, one in ranked.items():
        if key in roots:
            several[key].append(one)
        elif key in subs:
            several[heads.get(subs[key], subs[key])].append(one)
        else:
            places.append((-value(one) - misses.get(key, 0), key))
    found: dict[str, tuple[Root, list[Ranked]]] = {}
    for name, some in several.items():
        if isinstance(name, str):
            key, root = name, roots[name]
        else:
            key, root = min(member.session_key for member in some), name
        found[key] = (root, some)
        missing = sum(misses.get(member.session_key, 0) for member in some)
        places.append((-value(_together(some)) - missing, key))

    rest = places if after is None else [place for place in places if place > after]
    page = heapq.nsmallest(limit + 1, rest)
    shown = [
        Family(place, *found[place[1]])
        if place[1] in found
        else Family(place, None, [ranked[place[1]]])
        for place in page[:limit]
    ]
    more = shown[-1].place if len(page) > limit else None
    return Families(shown, len(places), count, idle, more)


def _together(some: Sequence[Ranked]) -> Ranked:
    _keys, last, *sums = zip(*some, strict=True)
    return Ranked(some[0].session_key, max(last), *map(sum, sums))


def sub_agents(connection: Connection, view: Filter) -> dict[str, Root]:
    """Keys of the sub-agents of a window, with their roots."""
    time = time_column(view.by)
    query = (
        select(c.session_key, c.tenant, c.root_session)
        .where(and_(is_sub_agent), time >= view.start, time < view.end)
        .distinct()
    )
    return {key: (tenant, root) for key, tenant, root in connection.execute(query)}


def _roots_of(connection: Connection, keys: Iterable[str]) -> dict[str, Root]:
    """Those of these sessions that are sub-agents, with their roots."""
    found: dict[str, Root] = {}
    for key in keys:  # few: one look-up each, however long they are
        latest = select(c.tenant, c.root_session, c.session).where(c.session_key == key)
        row = connection.execute(latest.order_by(c.started_at.desc()).limit(1)).one_or_none()
        if row is not None and row.root_session not in (None, row.session):
            found[key] = (row.tenant, row.root_session)
    return found


def _heads(connection: Connection, roots: Iterable[Root]) -> dict[Root, str]:
    """The keys of root sessions, as far as they have rows at all."""
    found: dict[Root, str] = {}
    # In the driver's own SQL: to write so many queries anew takes longer than to answer them.
    for some in parts(sorted(roots), _AT_ONCE):
        query = text(connection, f"SELECT {', '.join([_HEAD] * len(some))}")
        values = connection.exec_driver_sql(query, tuple(chain.from_iterable(some))).one()
        found |= {root: key for root, key in zip(some, values, strict=True) if key is not None}
    return found


def head_of(connection: Connection, root: Root) -> str | None:
    """The key of a root session."""
    return _heads(connection, [root]).get(root)
