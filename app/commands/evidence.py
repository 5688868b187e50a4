"""``warmline evidence``."""

from __future__ import annotations

import json
from typing import Any

import click

from app.analysis.verdicts import LOSSES
from app.analysis.witnesses import evidence, is_stable_but_cold, layer_of
from app.commands.options import load_settings, open_ledger, read_view, with_filter, with_settings
from app.commands.progress import destination
from app.ledger import verdict_sums
from app.ledger.queries import snapshot


@click.command("evidence", short_help="Collect turns for a support ticket: same prefix, not read.")
@with_settings("database", "key_file")
@with_filter
@click.option("-o", "--output", default="-", metavar="FILE", help="Write to a file.")
def command(*, config: str | None, output: str, **flags: Any) -> None:
    """Collect turns for a support ticket: the same prefix, and yet not read from the cache.

    Only turns whose prefix was proven to be the same, and that no pause accounts for. One JSON
    object per line, with ids, digests, times and counts: nothing that was said, and no names.
    """
    view = read_view(flags)
    found = missed = 0
    with (
        open_ledger(load_settings(config, flags)) as engine,
        destination(output) as file,
        snapshot(engine) as connection,
    ):
        for row in verdict_sums.judged(connection, view, LOSSES):
            if is_stable_but_cold(row):
                found, missed = found + 1, missed + (row.missed_tokens or 0)
                line = evidence(row) | {"layer": layer_of(row).value}
                file.write(json.dumps(line).encode() + b"\n")
    turns = "1 turn" if found == 1 else f"{found:,} turns"
    click.echo(f"{turns} with a proven prefix missed {missed:,} tokens.", err=True)
