"""``warmline db …``."""

from __future__ import annotations

from typing import Any

import click

from app.charts.chart import count
from app.commands.options import load_settings, open_ledger, with_settings
from app.commands.progress import bar
from app.ledger import database, retention
from app.ledger.rollups.rebuild import rebuild
from app.ledger.rows import iso
from app.ledger.store import ask_prices_again
from app.pricing import price_all, sellers
from app.settings import without_password


@click.group("db")
def command() -> None:
    """Look after the database."""


@command.command("upgrade")
@with_settings("database", "key_file")
def upgrade(config: str | None, **flags: Any) -> None:
    """Bring the database's schema to this version.

    SQLite does so by itself when the service starts; PostgreSQL needs this command.
    """
    settings = load_settings(config, flags)
    with bar("Counting rows") as progress:
        revision = database.upgrade(settings.database, progress=progress)
    click.echo(f"{without_password(settings.database)} is at schema {revision}.")


@command.command("price", short_help="Look again for prices of turns that have none.")
@with_settings("database", "key_file")
def price(config: str | None, **flags: Any) -> None:
    """Look again for prices of the turns that have none, after an update.

    A newer version may know more models. Turns that have a price keep it.
    """
    settings = load_settings(config, flags)
    with open_ledger(settings) as engine:
        with engine.execution_options(**database.WRITES).begin() as connection:
            asked = ask_prices_again(connection)
        price_all(engine, sellers(settings))
    rows = count(asked, "row")
    click.echo(f"Looked up: {rows} without a price; price_note says what came of it.")


@command.command("rollup")
@with_settings("database", "key_file")
def rollup(config: str | None, **flags: Any) -> None:
    """Count the rows anew from which pages and charts take their sums.

    Never needed in normal use. Time whose rows were deleted as too old keeps its sums. The
    service may run meanwhile.
    """
    with open_ledger(load_settings(config, flags)) as engine:
        kept = retention.kept_from(engine).rows_from
        with bar("Counting rows") as progress:
            rows = rebuild(engine, progress)
    before = "" if kept is None else f" Sums of time before {iso(kept)} are left as they are."
    click.echo(f"{count(rows, 'row')} counted.{before}")
