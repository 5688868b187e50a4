"""Finding the rule that a person names: in a file, in the settings, or among the stored ones."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from app.alerts import rules, store
from app.alerts.config import FILE_ID, Config
from app.alerts.rules import Rule
from app.errors import AppError


def find(named: str, config: Config, engine: Engine) -> Rule:
    """``named`` is a path ``….toml``, the name of a rule or of its table, or an id.

    The settings file comes before the database: what is written there now is what is asked for.
    Raises ``AppError``.
    """
    if named.endswith(".toml"):
        return from_file(Path(named))
    for rule in config.rules:
        if named in (rule.name, rule.id, rule.id.removeprefix(FILE_ID)):
            return rule
    stored = store.all_rules(engine)
    for each in stored:
        if named in (each.id, each.name):
            return each.rule()
    known = sorted({rule.name for rule in config.rules} | {each.name for each in stored})
    raise AppError(
        "not_found",
        f"There is no rule {named}.",
        f"There are: {', '.join(known)}." if known else "Name a .toml file that holds one.",
        404,
    )


def from_file(path: Path) -> Rule:
    """A file that holds one rule: its fields, or one table ``[alerts.rules.NAME]``."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise AppError(
            "unreadable", f"{path} cannot be read ({type(error).__name__}).", "Check its path."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AppError("unreadable", f"{path} is not valid TOML: {error}.") from None
    name, table = _only_table(document, path)
    return rules.parse({"name": name, **table}, id="draft", place=str(path))


def _only_table(document: dict[str, Any], path: Path) -> tuple[str, dict[str, Any]]:
    if "alerts" not in document:
        return path.stem, document
    alerts = document["alerts"]
    tables = alerts.get("rules") if isinstance(alerts, dict) else None
    if not isinstance(tables, dict) or len(tables) != 1:
        raise AppError(
            "several_rules",
            f"{path} does not hold exactly one rule.",
            "With several use it as --config and name the rule.",
        )
    ((name, table),) = tables.items()
    if not isinstance(table, dict):
        raise AppError("unreadable", f"alerts.rules.{name} in {path} must be a table.")
    return name, table
