"""``warmline purge``."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from app import purging
from app.charts.chart import count
from app.clock import SystemClock
from app.commands.options import load_settings, open_ledger, with_settings
from app.commands.progress import bar
from app.ledger.filters import read_instant, read_zone
from app.ledger.purging import Found, Target, look
from app.ledger.rows import iso


@click.command("purge")
@with_settings("database", "key_file", "journal_dir")
@click.option("--session", metavar="NAME|KEY", help="A session, and the sub-agents that name it.")
@click.option("--tenant", metavar="KEY", help="All that belongs to a tenant.")
@click.option("--before", metavar="TIME", help="Only what started before: ISO 8601 or now-30d.")
@click.option("--tz", metavar="ZONE", help="Zone of a time without an offset. [UTC]")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(
    *,
    config: str | None,
    session: str | None,
    tenant: str | None,
    before: str | None,
    tz: str | None,
    yes: bool,
    **flags: Any,
) -> None:
    """Delete a session or a tenant as if it had never been.

    Shows what there is and asks. Nothing brings it back but an import that is told to. Turns that
    are under way are written when they end: stop the service first, or purge again.
    """
    if (session is None) == (tenant is None) or not (session or tenant):
        raise click.UsageError("Give either --session or --tenant.")
    target = Target(session, tenant, None if before is None else _instant(before, tz))
    settings = load_settings(config, flags)
    with open_ledger(settings) as engine:
        if not purging.settle(engine, settings.journal_dir, SystemClock()):
            click.echo("What ended processes left in the journal could not be written.", err=True)
            sys.exit(1)
        found = look(engine, target)
        for line in _found(found):
            click.echo(line)
        # Where nothing is left this still writes the file anew, if that could not be done before.
        if not found.nothing and not yes:
            click.confirm("Delete it?", abort=True)
        with bar("Deleting") as progress:
            done = purging.purge(engine, target, progress)
        click.echo(f"{count(done.rows, 'row')} deleted.{_alerts(done.alerts)}")
        if not done.scrubbed:
            click.echo(
                "Traces may be left in the database's file, which others keep in use. "
                "Stop the service and run this command again.",
                err=True,
            )
            sys.exit(1)


def _instant(text: str, tz: str | None) -> int:
    """Epoch milliseconds; ``AppError`` where it is no time."""
    return read_instant("--before", text, read_zone(tz or "UTC"), time.time())


def _found(found: Found) -> list[str]:
    if found.nothing:
        return ["There is nothing of it."]
    lines = []
    if found.first_at is not None and found.last_at is not None:
        lines.append(
            f"{count(found.rows, 'row')} in {count(found.sessions, 'session')} of "
            f"{count(found.tenants, 'tenant')}, {iso(found.first_at)} to {iso(found.last_at)}."
        )
    if found.summed:
        lines.append(f"{found.summed:,} older turns that only sums still count.")
    return lines


def _alerts(number: int) -> str:
    return f" {number:,} events and messages of alerts too." if number else ""
