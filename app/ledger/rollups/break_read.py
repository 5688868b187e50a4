"""Figures of breaks from their sums, as far as these know what a filter asks for, else from the
rows. The figures are the same either way.

All functions read several times and want one snapshot: ``database.reading``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Connection, and_, case, cast, func, select

from app.errors import LedgerError
from app.ledger import break_groups
from app.ledger.cells import sum_of
from app.ledger.conditions import BREAK, dimensions_of, time_column, where
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rollups import break_sessions, break_tables
from app.ledger.rollups import plan as plans
from app.ledger.rollups import state as states
from app.ledger.rollups.among import among
from app.ledger.rollups.break_sums import LEVELS, long, size
from app.ledger.rollups.broken import SUMS, Key, Part, id_of, whole_of
from app.ledger.rollups.contribution import ANY, DAY, HOUR, start_of
from app.ledger.rollups.plan import Plan
from app.ledger.rollups.read import SESSIONS, Grid, by_level, serves
from app.ledger.rollups.state import RollupState

c, s, k = turns.c, break_tables.sums.c, break_tables.keys.c
NOT_BUILT = LedgerError(
    "rollups_missing",
    "The ledger has breaks that its sums do not count yet.",
    "Count them with: warmline db rollup",
)
_EVER = RollupState(coarse_until=1 << 62)
"""There are days of hours that are not over."""
_COLUMNS: dict[str, ColumnElement[Any]] = {
    "break_group": break_groups.group,
    "size": size,
    "long": long,
}
"""What a key tells apart that is not a column of its own."""


class Total(NamedTuple):
    """Breaks of a group in a bucket; there may be several of both."""

    group: str
    bucket: int
    turns: int
    counted: int
    missed: int
    last_at: int


@dataclass(frozen=True, slots=True)
class Whole:
    """The breaks of one group in the whole ledger, as far as its rows are kept."""

    turns: int
    first_at: int
    last_at: int


def totals(
    connection: Connection, view: Filter, edges: Sequence[int], group: str | None = None
) -> Iterator[Total]:
    """The groups of a view, or one of them; ``edges`` cut the view's window into buckets."""
    made = _plan(connection, view, edges)
    if made.rows:
        grid = Grid.of(time_column(view.by), made.edges)
        place = grid.value.label("break_bucket")
        name = break_groups.group.label("break_group")
        query = (
            select(
                name, place, func.count(), func.count(c.missed_tokens), sum_of(c.missed_tokens),
                func.max(c.started_at),
            )
            .where(break_groups.of(group), where(view, made.rows))
            .group_by("break_group", "break_bucket")
        )  # fmt: skip
        for key, at, *figures in connection.execute(query):
            yield Total(key, grid.bucket(at), *figures)
    if not made.stretches:
        return
    keys = _keys(connection, view, None if group is None else [group], whole=True)
    grid = Grid.of(s.start, made.edges)
    place = grid.value.label("break_bucket")
    added = (s.key, place, *map(_sum, SUMS[:3]), func.max(s.last_at))
    for within in _stretches(connection, made, keys):
        query = select(*added).where(within).group_by(s.key, "break_bucket")
        for number, at, *sums in connection.execute(query):
            yield Total(keys[number].break_group, grid.bucket(at), *sums)


def parts(
    connection: Connection,
    view: Filter,
    groups: Collection[str] | None,
    *,
    by: int | None = None,
    only: Collection[Key] | None = None,
) -> Iterator[Part]:
    """The breaks of a view, or of some groups, by all that is told apart; with ``by``, an hour or
    a day, none goes on beyond one of these. ``only``: of some keys alone. There may be several of
    a key.
    """
    levels = LEVELS if by is None else tuple(level for level in LEVELS if level <= by)
    made = _plan(connection, view, (), levels)
    if made.rows:
        yield from (
            part
            for part in _row_parts(connection, view, made, groups, by)
            if only is None or part.key in only
        )
    if not made.stretches:
        return
    if only is None:
        keys = _keys(connection, view, groups)
    else:
        keys = {id_of(key): key for key in only}
    by_start = () if by is None else (s.start,)
    added = (s.key, *map(_sum, SUMS), func.min(s.first_at), func.max(s.last_at))
    for within in _stretches(connection, made, keys):
        query = select(*added).where(within).group_by(s.key, *by_start)
        for number, *sums in connection.execute(query):
            yield Part(keys[number], *sums)


def _row_parts(
    connection: Connection, view: Filter, made: Plan, groups: Collection[str] | None, by: int | None
) -> Iterator[Part]:
    some = () if groups is None else (among(connection, break_groups.group, groups),)
    names = [
        (_COLUMNS[name] if name in _COLUMNS else c[name]).label(f"of_{name}")
        for name in Key._fields
    ]
    paid_long = _least(c.missed_tokens, func.coalesce(c.cache_write_long_tokens, 0))
    paid = _least(c.missed_tokens, func.coalesce(c.cache_write_tokens, 0)) - paid_long
    query = (
        select(
            *names, func.count(), func.count(c.missed_tokens), sum_of(c.missed_tokens),
            sum_of(paid), sum_of(paid_long), func.min(c.started_at), func.max(c.started_at),
        )
        .where(break_groups.broken, *some, where(view, made.rows))
        .group_by(*(name.name for name in names), *(() if by is None else (c.started_at // by,)))
    )  # fmt: skip
    width = len(Key._fields)
    for row in connection.execute(query):
        yield Part(Key(*row[:width]), *row[width:])


def sessions(connection: Connection, view: Filter, groups: Collection[str]) -> dict[str, int]:
    """How many sessions of a view have some groups."""
    made = _plan(connection, view, ())
    if not made.stretches or view.include or view.exclude:
        return {
            group: len(found) for group, found in _row_sessions(connection, view, groups).items()
        }
    spans = [span for some in made.stretches.values() for span in some]
    start, end = min(first for first, _ in spans), max(last for _, last in spans)
    keys = {id_of(whole_of(group)): group for group in groups}
    found = dict.fromkeys(groups, 0)
    for within in _stretches(connection, made, keys):
        firsts = select(s.key, _sum("firsts")).where(within).group_by(s.key)
        for key, number in connection.execute(firsts):
            found[keys[key]] += number
    for key, number in break_sessions.going_on(connection, keys, start, end).items():
        found[keys[key]] += number
    if made.rows:
        for group, some in _row_sessions(connection, view, groups, made).items():
            key = id_of(whole_of(group))
            found[group] += len(some - break_sessions.having(connection, key, some, start, end))
    return found


def _row_sessions(
    connection: Connection, view: Filter, groups: Collection[str], made: Plan | None = None
) -> dict[str, set[str]]:
    """By group, from the rows of a view, or those that a plan leaves to them."""
    name = break_groups.group.label("break_group")
    query = select(name, c.session_key).where(
        among(connection, break_groups.group, groups),
        break_groups.broken,
        where(view, None if made is None else made.rows),
    )
    found: defaultdict[str, set[str]] = defaultdict(set)
    for group, session in connection.execute(query.distinct()):
        found[group].add(session)
    return found


def whole(connection: Connection, group: str | None = None) -> dict[str, Whole]:
    """All groups of the ledger, or one of them."""
    _check(connection)
    query = (
        select(k.break_group, _sum("turns"), func.min(s.first_at), func.max(s.last_at))
        .join_from(break_tables.keys, break_tables.sums, k.id == s.key)
        .where(s.level == DAY, _is_whole(group))
        .group_by(k.break_group)
    )
    return {key: Whole(*rest) for key, *rest in connection.execute(query)}


def days(
    connection: Connection, now: int, number: int, group: str | None = None
) -> dict[str, list[int]]:
    """In how many hours of sessions each of the last days, of 24 hours and the newest first, has
    seen a group; groups that they all have not are left out. The last hour is the one of ``now``.
    """
    _check(connection)
    end = start_of(HOUR, now) + HOUR
    ago = ((end - HOUR - s.start) // DAY).label("break_day")
    query = (
        select(k.break_group, ago, _sum("sessions"))
        .join_from(break_tables.keys, break_tables.sums, k.id == s.key)
        .where(s.level == HOUR, s.start >= end - number * DAY, s.start < end, _is_whole(group))
        .group_by(k.break_group, "break_day")
    )
    found: dict[str, list[int]] = {}
    for key, day, sessions in connection.execute(query):
        found.setdefault(key, [0] * number)[day] += sessions
    return found


def _check(connection: Connection) -> RollupState:
    state = states.read(connection)
    if state.breaks_missing:
        raise NOT_BUILT.with_traceback(None)
    return state


def _plan(
    connection: Connection, view: Filter, edges: Sequence[int], levels: Sequence[int] = LEVELS
) -> Plan:
    if not serves(view, SESSIONS | {BREAK}):
        return plans.only_rows(view.start, view.end, edges)
    _check(connection)
    return plans.plan(view.start, view.end, edges, levels, _EVER)


def _keys(
    connection: Connection,
    view: Filter,
    groups: Collection[str] | None,
    *,
    whole: bool = False,
) -> dict[int, Key]:
    """The keys of the sums of a view; ``whole`` where those of groups as a whole will do."""
    whole = whole and {*view.include, *view.exclude} <= {BREAK}
    query = select(k.id, *(k[name] for name in Key._fields)).where(
        k.source == ANY if whole else k.source != ANY,
        *dimensions_of(view, lambda name: k.break_group if name == BREAK else k[name]),
    )
    if groups is not None:
        query = query.where(among(connection, k.break_group, groups))
    return {number: Key(*fields) for number, *fields in connection.execute(query)}


def _stretches(
    connection: Connection, made: Plan, keys: Collection[int]
) -> Iterator[ColumnElement[bool]]:
    """Conditions that select the stretches of a plan, each once."""
    mine = among(connection, s.key, keys)
    for level, alone, starts in by_level(made):
        for first, end in alone:
            yield and_(s.level == level, mine, s.start >= first, s.start < end)
        if starts:
            yield and_(s.level == level, mine, among(connection, s.start, starts))


def _is_whole(group: str | None) -> ColumnElement[bool]:
    of = k.source == ANY
    return of if group is None else and_(of, k.break_group == group)


def _sum(name: str) -> ColumnElement[int]:
    return cast(func.sum(s[name]), BigInteger)


def _least(one: ColumnElement[Any], other: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((one < other, one), else_=other)
