"""The rules of the settings file, brought into the database at start.

Afterwards the database holds just these rules of origin ``file``. What did not change keeps its
states and goes on where it was, so that a restart repeats nothing and forgets nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Engine, text, update

from app.alerts import store, tables
from app.alerts.rules import Rule
from app.alerts.teller import Teller
from app.errors import SettingsError
from app.ledger.database import WRITES


def sync_file_rules(engine: Engine, rules: Sequence[Rule], now: int, *, teller: Teller) -> None:
    """Insert, change and delete; ``now`` in epoch milliseconds. Several processes may at once.

    Raises ``SettingsError`` where a name is taken by a rule of the page, or given twice.
    """
    for name, times in Counter(rule.name for rule in rules).items():
        if times > 1:
            raise SettingsError(f"{times} rules are named {name}.", "Give each its own name.")
    dispatch = teller.dispatch()
    with engine.execution_options(**WRITES).begin() as connection:
        if connection.dialect.name == "postgresql":  # on SQLite the transaction itself is the lock
            connection.execute(text("LOCK TABLE alert_rules IN SHARE ROW EXCLUSIVE MODE"))
        known = store.read_all(connection)
        taken = {stored.name for stored in known if stored.origin == store.PAGE}
        for rule in rules:
            if rule.name in taken:
                raise SettingsError(
                    f"The rule [alerts.rules.{rule.id.removeprefix('file-')}] has the name "
                    f"{rule.name}, which a rule made on the page has too.",
                    "Rename it in the settings file, or rename or delete the other one.",
                )
        wanted = {rule.id for rule in rules}
        present = {stored.id: stored for stored in known if stored.origin == store.FILE}
        for stored in present.values():
            if stored.id not in wanted:
                store.remove_rule(connection, stored, now, dispatch)
        renamed = [rule for rule in rules if rule.id in present]
        renamed = [rule for rule in renamed if rule.name != present[rule.id].name]
        for rule in renamed:  # out of the way, so that two rules can exchange their names
            connection.execute(
                update(tables.rules)
                .where(tables.rules.c.id == rule.id)
                .values(name=f"\n{rule.id}")  # no name has a line break
            )
        for rule in rules:
            if rule.id in present:
                store.change_rule(connection, present[rule.id], rule, now, dispatch)
            else:
                store.insert_rule(connection, rule, store.FILE, now)
