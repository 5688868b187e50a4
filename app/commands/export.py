"""``warmline export``."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

import click

from app import keys as key_files
from app.commands.options import load_settings, open_ledger, read_view, with_filter, with_settings
from app.commands.progress import count, destination
from app.ledger import database, queries
from app.ledger.csv_export import read_columns
from app.ledger.exporting import Wanted, export, packed


@click.command("export")
@with_settings("database", "key_file")
@with_filter
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl"]),
    help="[what the name of FILE says, otherwise csv]",
)
@click.option("--columns", metavar="A,B,…", help="Columns in the order wanted. [all]")
@click.option("--raw", is_flag=True, help="CSV: no ' in front of text that looks like a formula.")
@click.option("--bom", is_flag=True, help="CSV: begin with a byte order mark, for Excel.")
@click.option("--pseudonymize", is_flag=True, help="Hash the names that clients chose.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="-",
    help="Appears when it is complete; packed if its name ends in .gz. [standard output]",
)
def command(
    *,
    config: str | None,
    form: Literal["csv", "jsonl"] | None,
    columns: str | None,
    raw: bool,
    bom: bool,
    pseudonymize: bool,
    output: str,
    **flags: Any,
) -> None:
    """Write the turns of a filter, oldest first, as CSV or JSON Lines.

    The file holds the ledger as it is at the beginning, whatever is written meanwhile.
    """
    view = read_view(flags)
    name = output.lower().removesuffix(".gz")
    wanted = Wanted(
        form=form or ("jsonl" if name.endswith(".jsonl") else "csv"),
        columns=read_columns(columns),
        raw=raw,
        bom=bom,
    )
    settings = load_settings(config, flags)
    with open_ledger(settings) as engine:
        if pseudonymize:
            keys = key_files.load(settings.key_file)
            database.check_key(engine, keys)
            wanted = wanted.with_names_as(keys.pseudonym)
        with (
            destination(output) as file,
            count(output, lambda: queries.count(engine, view)) as progress,
            contextlib.closing(export(engine, view, wanted, progress=progress)) as parts,
        ):
            file.writelines(packed(parts) if output.lower().endswith(".gz") else parts)
