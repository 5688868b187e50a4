"""``warmline export``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from app.commands.options import load_settings, open_ledger, read_view, with_filter, with_settings
from app.commands.progress import count, destination
from app.ledger import queries
from app.ledger.csv_export import read_columns, write_csv, write_jsonl


@click.command("export")
@with_settings("database", "key_file")
@with_filter
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), default="csv")
@click.option("--columns", metavar="A,B,…", help="Columns in the order wanted. [all]")
@click.option("--raw", is_flag=True, help="CSV: no ' in front of text that looks like a formula.")
@click.option("--bom", is_flag=True, help="CSV: begin with a byte order mark, for Excel.")
@click.option("-o", "--output", metavar="FILE", default="-", help="[standard output]")
def command(
    *,
    config: str | None,
    form: str,
    columns: str | None,
    raw: bool,
    bom: bool,
    output: str,
    **flags: Any,
) -> None:
    """Write the turns of a filter, oldest first, as CSV or JSON Lines."""
    view = read_view(flags)
    names = read_columns(columns)
    with (
        open_ledger(load_settings(config, flags)) as engine,
        destination(output) as file,
        count(output, queries.count(engine, view)) as done,
    ):
        chunks = _counted(queries.stream(engine, view, columns=names), done)
        if form == "jsonl":
            file.writelines(write_jsonl(chunks, columns=names))
        else:
            file.writelines(write_csv(chunks, columns=names, raw=raw, bom=bom))


def _counted(
    chunks: Iterator[list[tuple[Any, ...]]], done: Callable[[int], None]
) -> Iterator[list[tuple[Any, ...]]]:
    for chunk in chunks:
        yield chunk
        done(len(chunk))
