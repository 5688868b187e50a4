"""``warmline audit``."""

from __future__ import annotations

import sys
from typing import Any

import click

from app.commands.options import load_settings, open_ledger, read_view, with_filter, with_settings
from app.commands.progress import bar
from app.ledger import audit, queries


@click.command("audit", short_help="Verify that continued turns hang on what the one before left.")
@with_settings("database", "key_file")
@with_filter
@click.option("--unknown", is_flag=True, help="Also list the turns that cannot be checked.")
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text")
def command(*, config: str | None, unknown: bool, form: str, **flags: Any) -> None:
    """Verify that every continued turn hangs on what the turn before it left.

    Lists each turn that does not, and exits with 1 if there is one. A turn whose predecessor is
    no longer in the ledger, or that has no digests, cannot be checked and is only counted.
    """
    view = read_view(flags)
    result = audit.Result()
    with open_ledger(load_settings(config, flags)) as engine, bar("Verifying") as progress:
        total = queries.count(engine, view) if sys.stderr.isatty() else 0
        found = audit.audit(engine, view, result, progress=lambda rows: progress(rows, total))
        for finding in found:
            if unknown or finding.verdict.wrong:
                click.echo(audit.line(finding, form))
    click.echo(audit.summary(result, form))
    if result.wrong:
        sys.exit(1)
