"""Rules and receivers of the settings file.

A rule of the file has the id ``file-NAME``; the page shows it and cannot change it. What cannot be
read is a ``SettingsError`` that names the table and the file, and never repeats an address or a
secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.alerts.endpoints import shown_name
from app.alerts.rules import BadRuleError, Rule, parse
from app.errors import SettingsError
from app.settings import AlertTables, Settings

FILE_ID = "file-"
"""What the ids of rules and receivers in the file begin with."""


@dataclass(frozen=True, slots=True)
class Config:
    rules: tuple[Rule, ...]
    receivers: AlertTables
    """Its ``receivers`` are as they are written; ``app.alerts.receivers`` reads them."""


def read(settings: Settings) -> Config:
    tables = settings.alerts
    rules = tuple(
        _rule(name, table, f"[alerts.rules.{name}] in {tables.place}")
        for name, table in tables.rules.items()
    )
    _refuse_twins(rules, tables.place)
    return Config(rules, tables)


def check_receivers(rules: Iterable[Rule], known: Collection[str], place: str) -> None:
    """Every receiver that a rule of the file names is there: nobody would be told otherwise."""
    for rule in rules:
        for name in rule.receivers:
            if name not in known:
                table = rule.id.removeprefix(FILE_ID)
                shown = shown_name(name)
                raise SettingsError(
                    f"receivers in [alerts.rules.{table}] in {place} names {shown}, which is no "
                    "receiver.",
                    f"Add [alerts.receivers.{shown}], or take it out. "
                    f"There are: {', '.join(sorted(known)) or 'none'}.",
                )


def _rule(name: str, table: Mapping[str, Any], place: str) -> Rule:
    try:
        return parse({"name": name, **table}, id=FILE_ID + name, place=place)
    except BadRuleError as error:
        raise SettingsError(error.message, error.hint) from None


def _refuse_twins(rules: tuple[Rule, ...], place: str) -> None:
    seen: dict[str, str] = {}
    for rule in rules:
        if rule.name in seen:
            first, second = (
                f"[alerts.rules.{known.removeprefix(FILE_ID)}]"
                for known in (seen[rule.name], rule.id)
            )
            raise SettingsError(
                f"{first} and {second} in {place} have the same name.",
                "Messages and metrics tell rules apart by it; change one.",
            )
        seen[rule.name] = rule.id
