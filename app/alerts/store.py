"""The rules in the database: reading and changing them.

Every change of a rule raises its ``version`` in the same transaction as it changes states, so
that an evaluation that was begun before is discarded (``evaluator``). Alerts that end by a change
are told resolved from the outbox, written in that transaction too. Works from several processes
at once. Times are epoch milliseconds.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.alerts import endings, rules, state_store, tables
from app.alerts.rules import BadRuleError, Rule
from app.alerts.teller import Dispatch, Teller
from app.errors import AppError
from app.ledger.database import WRITES

logger = logging.getLogger(__name__)

_table = tables.rules
FILE = "file"
PAGE = "page"
MOST = 200
"""Rules made on the page: each is looked at every second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRule:
    id: str
    name: str
    origin: str
    """``file`` or ``page``."""
    definition: str
    """JSON."""
    version: int
    enabled: bool
    evaluated_until: int
    failure: str | None
    created_at: int
    updated_at: int

    def rule(self) -> Rule:
        """Raises ``BadRuleError`` or ``ValueError`` where this version cannot read it."""
        return _parsed(self.definition, self.id)


@lru_cache(maxsize=1_024)
def _parsed(definition: str, rule_id: str) -> Rule:
    """Kept, because every rule is looked at each second, and changes seldom."""
    return rules.parse(json.loads(definition), id=rule_id)


def all_rules(engine: Engine, *, enabled_only: bool = False) -> list[StoredRule]:
    """By name."""
    with engine.connect() as connection:
        return read_all(connection, enabled_only=enabled_only)


def read_all(connection: Connection, *, enabled_only: bool = False) -> list[StoredRule]:
    query = select(_table).order_by(_table.c.name)
    if enabled_only:
        query = query.where(_table.c.enabled)
    return [_stored(row) for row in connection.execute(query).mappings()]


def get_rule(engine: Engine, rule_id: str) -> StoredRule:
    """Raises ``AppError`` ``not_found`` (404)."""
    with engine.connect() as connection:
        stored = read(connection, rule_id)
    if stored is None:
        raise _not_found()
    return stored


def read(connection: Connection, rule_id: str, *, lock: bool = False) -> StoredRule | None:
    """``lock`` keeps others from changing it before the transaction ends."""
    query = select(_table).where(_table.c.id == rule_id)
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else _stored(row)


def create_rule(engine: Engine, rule: Rule, now: int) -> StoredRule:
    """Raises ``AppError`` ``name_taken``, ``too_many`` (409)."""
    pages = select(func.count()).select_from(_table).where(_table.c.origin == PAGE)
    try:
        with engine.execution_options(**WRITES).begin() as connection:
            if connection.execute(pages).scalar_one() >= MOST:
                raise AppError(
                    "too_many", f"There are {MOST} rules already.", "Delete one.", status=409
                )
            return insert_rule(connection, rule, PAGE, now)
    except IntegrityError:
        raise _name_taken(rule.name) from None


def update_rule(
    engine: Engine, rule: Rule, now: int, *, teller: Teller, version: int | None = None
) -> StoredRule:
    """Replace a rule's definition. An equal one changes nothing.

    Waiting begins anew; what fires goes on firing, but for the groups that the new grouping does
    not have: these alerts end. So do all where the rule is paused by it. With ``version``, only
    if that is still the present one. Raises ``AppError``: ``not_found`` (404), ``conflict``,
    ``name_taken``, ``read_only`` (409).
    """
    dispatch = teller.dispatch()
    try:
        with engine.execution_options(**WRITES).begin() as connection:
            stored = _read_for_change(connection, rule.id)
            if version is not None and version != stored.version:
                raise AppError(
                    "conflict",
                    "The rule was changed by someone else meanwhile.",
                    "Reload it and make your change again.",
                    409,
                )
            return change_rule(connection, stored, rule, now, dispatch)
    except IntegrityError:
        raise _name_taken(rule.name) from None


def set_enabled(
    engine: Engine, rule_id: str, enabled: bool, now: int, *, teller: Teller
) -> StoredRule:
    """Resume or pause a rule of the page. What happened meanwhile is not evaluated later.

    Raises ``AppError``: ``not_found`` (404), ``read_only`` (409), ``bad_rule`` (422).
    """
    dispatch = teller.dispatch()
    with engine.execution_options(**WRITES).begin() as connection:
        stored = _read_for_change(connection, rule_id)
        rule = replace(stored.rule(), enabled=enabled)
        return change_rule(connection, stored, rule, now, dispatch)


def delete_rule(engine: Engine, rule_id: str, now: int, *, teller: Teller) -> None:
    """Delete a rule of the page and its states. Its alerts end; its events stay.

    Raises ``AppError``: ``not_found`` (404), ``read_only`` (409).
    """
    dispatch = teller.dispatch()
    with engine.execution_options(**WRITES).begin() as connection:
        remove_rule(connection, _read_for_change(connection, rule_id), now, dispatch)


# Inside a transaction that writes, whatever the origin


def insert_rule(connection: Connection, rule: Rule, origin: str, now: int) -> StoredRule:
    """A new rule; its first evaluation is the first instant after ``now``."""
    stored = StoredRule(
        id=rule.id,
        name=rule.name,
        origin=origin,
        definition=definition_of(rule),
        version=1,
        enabled=rule.enabled,
        evaluated_until=now,
        failure=None,
        created_at=now,
        updated_at=now,
    )
    connection.execute(insert(_table), {name: getattr(stored, name) for name in _COLUMNS})
    return stored


def change_rule(
    connection: Connection,
    stored: StoredRule,
    rule: Rule,
    now: int,
    dispatch: Dispatch,
) -> StoredRule:
    """As ``update_rule`` says, of a rule that was read with ``lock``."""
    was = _read_rule(stored)
    if was == rule:  # as rules: a later version may write the same one with more words
        return stored
    changed = replace(
        stored,
        name=rule.name,
        definition=definition_of(rule),
        version=stored.version + 1,
        enabled=rule.enabled,
        evaluated_until=stored.evaluated_until if stored.enabled else now,
        failure=None,
        updated_at=now,
    )
    values = {name: getattr(changed, name) for name in _COLUMNS if name != "id"}
    connection.execute(update(_table).where(_table.c.id == rule.id).values(values))
    try:
        before = state_store.load(connection, rule.id)
    except ValueError:
        # They stay as they are, and its next evaluation says so; the edit itself is sound.
        logger.warning("the states of rule %s cannot be read", rule.id)
        return changed
    ended = endings.of_edit(rule, before, now, dispatch, was=was)
    state_store.save(connection, rule.id, before, ended.states)
    ended.write(connection)
    return changed


def remove_rule(connection: Connection, stored: StoredRule, now: int, dispatch: Dispatch) -> None:
    """As ``delete_rule`` says, of a rule that was read with ``lock``."""
    try:
        rule = stored.rule()
        before = state_store.load(connection, stored.id)
    except (ValueError, BadRuleError):
        # Nothing can be told of a rule that says nothing. It must still be possible to delete it.
        logger.warning("rule %s is deleted; it could not be read, nobody is told", stored.id)
    else:
        ended = endings.of_deletion(rule, before, now, dispatch)
        ended.write(connection)
    connection.execute(delete(tables.states).where(tables.states.c.rule_id == stored.id))
    connection.execute(delete(_table).where(_table.c.id == stored.id))


def definition_of(rule: Rule) -> str:
    """Canonical: equal rules have equal texts."""
    return json.dumps(
        rule.as_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _read_rule(stored: StoredRule) -> Rule | None:
    """None of a definition that this version cannot read."""
    try:
        return stored.rule()
    except (ValueError, BadRuleError):
        return None


def _read_for_change(connection: Connection, rule_id: str) -> StoredRule:
    stored = read(connection, rule_id, lock=True)
    if stored is None:
        raise _not_found()
    if stored.origin == FILE:
        raise AppError(
            "read_only",
            "This rule is written in the settings file.",
            "Change it there and restart.",
            409,
        )
    return stored


def _not_found() -> AppError:
    return AppError("not_found", "There is no such rule.", "It may have been deleted.", 404)


def _name_taken(name: str) -> AppError:
    return AppError(
        "name_taken", f"There is a rule named {name} already.", "Choose another name.", 409
    )


_COLUMNS = tuple(column.name for column in _table.columns)


def _stored(row: Mapping[Any, Any]) -> StoredRule:
    return StoredRule(**row)
