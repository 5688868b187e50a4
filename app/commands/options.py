"""What several commands take: settings as flags, the filter, and a ledger that is there."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
from sqlalchemy import Engine

from app.errors import LedgerError
from app.ledger import database
from app.ledger.filters import DIMENSIONS, Filter, parse
from app.setting_kinds import FLAG
from app.setting_table import SETTINGS
from app.settings import Settings, load

F = TypeVar("F", bound=Callable[..., Any])
_NAME_IT = "Name it with --database, or make it: warmline serve, or warmline import PATH."


def with_settings(*names: str) -> Callable[[F], F]:
    """Add ``--config`` and a flag per setting; all settings when none is named."""

    def decorate(command: F) -> F:
        for setting in reversed(SETTINGS):
            if names and setting.name not in names:
                continue
            flag = "--" + setting.name.replace("_", "-")
            help_text = setting.help.replace("`", "")
            if setting.kind is FLAG:
                option = click.option(f"{flag}/--no-{flag[2:]}", default=None, help=help_text)
            elif setting.secret and setting.name != "database":
                # A secret on the command line would be seen in the list of processes.
                option = click.option(f"{flag}-file", metavar="FILE", help=help_text)
            else:
                metavar = setting.kind.name.replace("`", "").replace(" or ", "|").upper()
                option = click.option(flag, metavar=metavar, help=help_text)
            command = option(command)
        config = click.option("--config", metavar="FILE", help="Settings file. [warmline.toml]")
        return config(command)

    return decorate


def with_filter(command: F) -> F:
    """Add the filter's parameters as options; ``read_view`` reads them."""
    names = f"Repeatable; NAME=!VALUE excludes. Names: {', '.join(DIMENSIONS)}, q."
    for option in (
        click.option("--where", "terms", multiple=True, metavar="NAME=VALUE", help=names),
        click.option("--by", metavar="started|recorded", help="Which time counts. [started]"),
        click.option("--tz", metavar="ZONE", help="Zone of times without an offset. [UTC]"),
        click.option("--to", metavar="TIME", help="ISO 8601 or now; not included. [now]"),
        click.option("--from", "from_", metavar="TIME", help="ISO 8601 or now-6h. [the beginning]"),
    ):
        command = option(command)
    return command


def read_view(flags: dict[str, Any]) -> Filter:
    """The filter that the options of ``with_filter`` ask for; takes them out of the flags."""
    terms = map(_term, flags.pop("terms"))
    given = [(name, flags.pop(name)) for name in ("from_", "to", "tz", "by")]
    return parse(
        [*((name.rstrip("_"), value) for name, value in given if value is not None), *terms],
        now=time.time(),
        default_from="1970-01-01T00:00Z",
    )


def load_settings(config: str | None, flags: dict[str, Any]) -> Settings:
    texts = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in flags.items()
    }
    return load(config=config, flags=texts)


def _term(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name in ("from", "to", "tz", "by"):
        raise click.BadParameter(f"--where takes NAME=VALUE, not {text!r}.")
    return name, value


def _existing(name: str, hint: str) -> str:
    """The database, if it is there: reading must not make an empty one."""
    url = database.read_url(name)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise LedgerError(
            "no_ledger",
            f"There is no ledger at {url.database}.",
            hint,
        )
    return name


@contextlib.contextmanager
def open_ledger(settings: Settings, hint: str = _NAME_IT) -> Iterator[Engine]:
    """The ledger that is there, for one command. ``hint``: what to do where it is not."""
    with database.closing(database.prepare(_existing(settings.database, hint))) as engine:
        yield engine
