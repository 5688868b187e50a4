"""``warmline import``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from app.clock import SystemClock
from app.commands.options import closing, load_settings, open_ledger, with_settings
from app.commands.progress import bar
from app.importers import report as reports
from app.importers.run import run
from app.ledger import database, imports


@click.command("import")
@with_settings("database", "key_file")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@click.option("--purged", is_flag=True, help="Also take rows that were purged from this ledger.")
@click.option("--list", "listing", is_flag=True, help="List the newest imports.")
@click.option("--undo", metavar="ID", help="Take away what an import has added.")
def command(
    *,
    paths: tuple[Path, ...],
    purged: bool,
    listing: bool,
    undo: str | None,
    config: str | None,
    **flags: Any,
) -> None:
    """Take in files that were exported before, or folders of them.

    CSV and JSON Lines of Warmline, plain or compressed (gzip, zstd). The format is told by what is
    in a file. What is there already is left alone: importing twice adds nothing, and an import
    that was interrupted goes on when it is run again. docs/formats.md has the rest.
    """
    if (bool(paths), listing, undo is not None).count(True) != 1 or (purged and not paths):
        raise click.UsageError("Give files or folders, or --list, or --undo ID.")
    settings = load_settings(config, flags)
    if paths:
        _import(settings.database, paths, purged=purged)
        return
    with open_ledger(settings) as engine:
        if undo is not None:
            with bar("Undoing") as progress:
                undone = imports.undo(engine, undo, progress)
            click.echo(f"{undone.rows:,} rows are taken away again.")
            if undone.kept:
                click.echo(
                    f"{undone.kept:,} more had been deleted as too old: "
                    "what they had added to the sums of their time stays."
                )
        else:
            for line in reports.listing(imports.listed(engine)) or ["Nothing was imported yet."]:
                click.echo(line)


def _import(name: str, paths: tuple[Path, ...], *, purged: bool) -> None:
    with closing(database.prepare(name)) as engine, bar("Importing") as progress:
        report = run(engine, paths, SystemClock(), again=purged, progress=progress)
    for line in reports.text(report):
        click.echo(line)
    if report.failed or report.import_id is None:
        sys.exit(1)
