"""What a filter selects, twice: as SQL for rows in the database, and in Python for live rows.

The two stand side by side because they must agree; a property test compares them row by row.
Here too is what ``hit``, ``partial`` and ``miss`` mean.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, String, and_, case, false, func, or_, select, text, union
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.ledger import break_groups
from app.ledger.filters import UNKNOWN, Filter, none_of
from app.ledger.models import SUB_AGENT, turns
from app.ledger.rows import TurnRow
from engine.model import Kind, Status, UsageState

c = turns.c

COLUMN_OF = {
    "model": "model",
    "upstream": "upstream",
    "tenant": "tenant",
    "client": "client",
    "root": "root_session",
    "chain": "chain",
    "mode": "mode",
    "reason": "reason",
    "status": "status",
    "kind": "kind",
    "source": "source",
    "fingerprint": "fingerprint",
    "changed_fields": "changed_fields",
    "fallback_reason": "fallback_reason",
    "verdict": "cache_verdict",
    "grade": "cache_grade",
    "turn_id": "turn_id",
}
"""Dimensions that are a column; ``session``, ``eligible``, ``cache`` and ``break`` are worked out
below."""
BREAK = "break"
"""The dimension of groups of breaks."""
SEARCHED = (
    "turn_id",
    "session",
    "session_key",
    "root_session",
    "turn_group",
    "chain",
    "connection",
    "response_id",
    "previous_response_id",
    "prompt_cache_key",
    "model",
    "error_code",
)
"""The columns that ``q`` looks into."""

HIT_SHARE = (4, 5)
"""At least this share (4/5) of the input was cached: a hit. None of it: a miss."""
SUCCEEDED = (Status.COMPLETED.value, Status.INCOMPLETE.value)

generation: ColumnElement[bool] = and_(c.kind == Kind.GENERATION.value, c.status.in_(SUCCEEDED))
cache_class: ColumnElement[str] = case(
    (
        or_(
            c.input_tokens.is_(None),
            c.cached_tokens.is_(None),
            c.input_tokens == 0,
            c.usage_state == UsageState.INCONSISTENT.value,
        ),
        UNKNOWN,
    ),
    (c.cached_tokens == 0, "miss"),
    (c.cached_tokens * HIT_SHARE[1] >= c.input_tokens * HIT_SHARE[0], "hit"),
    else_="partial",
)


def cache_class_of(row: TurnRow) -> str:
    """``hit``, ``partial``, ``miss`` or ``unknown``: how much of a turn's input was cached."""
    given, cached = row.input_tokens, row.cached_tokens
    if not given or cached is None or row.usage_state == UsageState.INCONSISTENT:
        return UNKNOWN
    if cached == 0:
        return "miss"
    return "hit" if cached * HIT_SHARE[1] >= given * HIT_SHARE[0] else "partial"


def time_column(by: str) -> ColumnElement[int]:
    """The column that decides which window a row belongs to."""
    return c.recorded_at if by == "recorded" else c.started_at


def where(view: Filter, within: Sequence[tuple[int, int]] | None = None) -> ColumnElement[bool]:
    """The rows of a filter: within its window, or within these half-open spans of time."""
    time = time_column(view.by)
    spans = [(view.start, view.end)] if within is None else within
    times = [and_(time >= start, time < end) for start, end in spans]
    whole = times[0] if len(times) == 1 else or_(false(), *times)
    terms = dimensions_of(view, _column)
    if only_breaks(view):
        terms.append(break_groups.broken)  # by itself, else their index is not used
    roots = view.include.get("root", ())
    if roots and none_of("root") not in roots:
        terms.append(_in_sessions_of(roots, whole))
    if view.q is not None:
        terms.append(_contains(view.q))
    return and_(whole, *terms)


def _in_sessions_of(roots: Sequence[str], whole: ColumnElement[bool]) -> ColumnElement[bool]:
    """What follows from having one of these roots, and is found by an index: being of a session
    that is itself one, of one of their sub-agents, or of one without a name."""
    of_roots = c.root_session.in_(roots)
    ways = (
        (c.session.in_(roots),),
        (text(SUB_AGENT), of_roots, whole),
        (c.session.is_(None), of_roots, whole),
    )
    return c.session_key.in_(
        union(*(select(c.session_key).where(*terms).correlate(None) for terms in ways))
    )


def only_breaks(view: Filter) -> bool:
    """Whether all rows of a filter are breaks."""
    kept, left_out = view.include.get(BREAK), view.exclude.get(BREAK, ())
    return UNKNOWN in left_out or (kept is not None and UNKNOWN not in kept)


def dimensions_of(view: Filter, column: Column) -> list[ColumnElement[bool]]:
    """The terms of a filter but for its window and its text, over the columns given."""
    terms = [
        or_(false(), *(_equals(column, name, value) for value in values))
        for name, values in view.include.items()
    ]
    for name, values in view.exclude.items():
        # A comparison with NULL is NULL, and so is its negation: coalesce decides.
        terms += [~func.coalesce(_equals(column, name, value), false()) for value in values]
    return terms


Column = Callable[[str], ColumnElement[Any]]
"""The column of a dimension."""


def _column(name: str) -> ColumnElement[Any]:
    if name == "cache":
        return cache_class
    if name == BREAK:
        return case((break_groups.broken, break_groups.group))
    return c[COLUMN_OF.get(name, name)]


def _equals(of: Column, name: str, value: str) -> ColumnElement[bool]:
    if name == "session":
        return or_(c.session == value, c.session_key == value)
    if name == BREAK and value != UNKNOWN and of is _column:
        return break_groups.of(value)  # which may use an index
    column = of(name)
    if name == "eligible":
        return column if value == "true" else ~column
    if name == "cache":
        return column == value
    if value == none_of(name):
        return or_(column.is_(None), column == value)
    return column == value


def _contains(text: str) -> ColumnElement[bool]:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    pattern = f"%{_fold(escaped)}%"  # here, because a database may know more than ASCII letters
    return or_(*(_folded(c[name]).like(pattern, escape="\\") for name in SEARCHED))


class _folded(FunctionElement[str]):  # noqa: N801  (a function of SQL)
    """Text as a ``LIKE`` in lower case finds it: SQLite folds by itself, in half the time."""

    type = String()
    inherit_cache = True


@compiles(_folded)
def _lower(element: _folded, compiler: SQLCompiler, **more: Any) -> str:
    return f"lower({compiler.process(element.clauses, **more)})"


@compiles(_folded, "sqlite")
def _as_it_is(element: _folded, compiler: SQLCompiler, **more: Any) -> str:
    return compiler.process(element.clauses, **more)


def matcher(view: Filter) -> Callable[[TurnRow], bool]:
    """Whether a row belongs to a filter, its window aside: for rows that have just been written."""
    tests: list[Callable[[TurnRow], bool]] = []
    for name, values in view.include.items():
        tests.append(_is_one_of(name, frozenset(values)))
    for name, values in view.exclude.items():
        is_one = _is_one_of(name, frozenset(values))
        tests.append(lambda row, is_one=is_one: not is_one(row))  # type: ignore[misc]
    if view.q is not None:
        wanted = _fold(view.q)
        tests.append(
            lambda row: any(
                wanted in _fold(value)
                for value in (getattr(row, name) for name in SEARCHED)
                if value is not None
            )
        )
    return lambda row: all(test(row) for test in tests)


def _is_one_of(name: str, wanted: frozenset[str]) -> Callable[[TurnRow], bool]:
    if name == "session":
        return lambda row: row.session in wanted or row.session_key in wanted
    if name == "eligible":
        return lambda row: ("true" if row.eligible else "false") in wanted
    if name == "cache":
        return lambda row: cache_class_of(row) in wanted
    none = none_of(name)
    if name == BREAK:
        return lambda row: (break_groups.group_of(row) or none) in wanted
    value_of = attrgetter(COLUMN_OF[name])
    return lambda row: _or(value_of(row), none) in wanted


def _or(value: Any, none: str) -> Any:
    return none if value is None else value


_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def _fold(text: str) -> str:
    """Lower case as databases do it to text that is sorted by its bytes: ASCII letters only."""
    return text.translate(_ASCII_LOWER)
