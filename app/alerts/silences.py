"""Silences: for a while nobody is told of some alerts. Their evaluation goes on.

A silence covers one rule or all, and of these the groups that have all the labels of its
``matchers``. When it ends and an alert still fires, its receivers are told once
(``states.notify``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, func, insert, select, update

from app.alerts import tables
from app.alerts.rules import GROUPINGS, is_one_line
from app.alerts.states import Labels
from app.errors import AppError
from app.ledger.database import WRITES

_table = tables.silences
LONGEST = 366 * 86_400_000
"""Milliseconds. Whoever wants to hear nothing for longer pauses the rule."""
ENDED_SHOWN = 100
MOST = 200
"""Silences that have not ended: every evaluation of every group looks at all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """In force from ``starts_at`` to just before ``ends_at``, epoch milliseconds."""

    id: str
    rule_id: str | None = None
    """None: every rule."""
    matchers: Mapping[str, str]
    starts_at: int
    ends_at: int
    comment: str = ""
    author: str = ""
    created_at: int

    def covers(self, rule_id: str, labels: Labels, at: int) -> bool:
        if not self.starts_at <= at < self.ends_at:
            return False
        if self.rule_id is not None and self.rule_id != rule_id:
            return False
        return all(labels.get(name) == value for name, value in self.matchers.items())


def silenced(silences: Iterable[Silence], rule_id: str, labels: Labels, at: int) -> bool:
    """Whether any of them covers this group of this rule at this instant."""
    return any(silence.covers(rule_id, labels, at) for silence in silences)


def since(connection: Connection, at: int) -> list[Silence]:
    """Those that are, or will be, in force at ``at`` or later."""
    query = select(_table).where(_table.c.ends_at > at).order_by(_table.c.ends_at, _table.c.id)
    return [_read(row) for row in connection.execute(query).mappings()]


def listing(engine: Engine, now: int) -> tuple[list[Silence], list[Silence]]:
    """Those that have not ended, the first to end first, and the last hundred that have."""
    ended = (
        select(_table)
        .where(_table.c.ends_at <= now)
        .order_by(_table.c.ends_at.desc(), _table.c.id.desc())
        .limit(ENDED_SHOWN)
    )
    with engine.connect() as connection:
        return since(connection, now), [_read(row) for row in connection.execute(ended).mappings()]


def create(
    engine: Engine,
    *,
    id: str,  # noqa: A002  (the column's name)
    rule_id: str | None,
    matchers: Mapping[str, Any],
    ends_at: int,
    now: int,
    starts_at: int | None = None,
    comment: str = "",
    author: str = "",
) -> Silence:
    """Begin a silence, now unless ``starts_at`` says when.

    Raises ``AppError``: ``bad_silence`` (422) for what makes no sense, ``not_found`` (404) where
    there is no such rule, ``too_many`` (409).
    """
    silence = Silence(
        id=id,
        rule_id=rule_id,
        matchers=_checked(matchers),
        starts_at=now if starts_at is None else starts_at,
        ends_at=ends_at,
        comment=_text("comment", comment, 500),
        author=_text("author", author, 100),
        created_at=now,
    )
    if silence.ends_at <= max(now, silence.starts_at):
        raise _bad("A silence must end after it begins, and after now.", "Give a later end.")
    if silence.ends_at - silence.starts_at > LONGEST or silence.starts_at - now > LONGEST:
        raise _bad("A silence lasts at most a year.", "To hear nothing for longer, pause the rule.")
    open_ = select(func.count()).select_from(_table).where(_table.c.ends_at > now)
    with engine.execution_options(**WRITES).begin() as connection:
        if connection.execute(open_).scalar_one() >= MOST:
            raise AppError(
                "too_many", f"There are {MOST} silences already.", "End one.", status=409
            )
        if rule_id is not None:
            _check_fits(connection, rule_id, silence.matchers)
        values = {name: getattr(silence, name) for name in _table.c.keys()}  # noqa: SIM118
        values["matchers"] = json.dumps(dict(silence.matchers), sort_keys=True)
        connection.execute(insert(_table), values)
    return silence


def end(engine: Engine, id: str, now: int) -> Silence:  # noqa: A002
    """End it now; one that has ended stays as it is, one to come never begins.

    Raises ``AppError`` ``not_found`` (404).
    """
    with engine.execution_options(**WRITES).begin() as connection:
        row = connection.execute(select(_table).where(_table.c.id == id)).mappings().one_or_none()
        if row is None:
            raise AppError("not_found", "There is no such silence.", status=404)
        ends_at = max(row["starts_at"], min(row["ends_at"], now))
        connection.execute(update(_table).where(_table.c.id == id).values(ends_at=ends_at))
    return _read({**row, "ends_at": ends_at})


def _check_fits(connection: Connection, rule_id: str, matchers: Mapping[str, str]) -> None:
    query = select(tables.rules.c.definition).where(tables.rules.c.id == rule_id)
    definition = connection.execute(query).scalar_one_or_none()
    if definition is None:
        raise AppError("not_found", "There is no such rule.", "It may have been deleted.", 404)
    grouped = json.loads(definition).get("group_by", [])
    for name in matchers:
        if name not in grouped:
            raise _bad(
                f"The rule is not grouped by {name}: this silence would cover nothing.",
                f"Its groups have the labels {', '.join(grouped)}." if grouped else "It has none.",
            )


def _checked(matchers: Mapping[str, Any]) -> dict[str, str]:
    for name, value in matchers.items():
        if name not in GROUPINGS:
            raise _bad(
                f"There is no label {str(name)[:64]}.", f"Labels are {', '.join(GROUPINGS)}."
            )
        if not isinstance(value, str) or not 1 <= len(value) <= 500 or "\0" in value:
            raise _bad(f"The label {name} must be a text of 1 to 500 characters.")
    return {name: str(matchers[name]) for name in sorted(matchers)}


def _text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value.strip()) > longest or not is_one_line(value):
        raise _bad(f"{name} must be a text of at most {longest} characters in one line.")
    return value.strip()


def _bad(message: str, hint: str | None = None) -> AppError:
    return AppError("bad_silence", message, hint, status=422)


def _read(row: Mapping[Any, Any]) -> Silence:
    return Silence(
        id=row["id"],
        rule_id=row["rule_id"],
        matchers=json.loads(row["matchers"]),
        starts_at=row["starts_at"],
        ends_at=row["ends_at"],
        comment=row["comment"],
        author=row["author"],
        created_at=row["created_at"],
    )
