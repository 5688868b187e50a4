"""``warmline backtest``."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from app.alerts import backtest, lookup, report
from app.alerts import config as alert_config
from app.commands.options import load_settings, open_ledger, with_settings
from app.commands.progress import bar
from app.ledger.filters import parse


@click.command("backtest", short_help="Tell when a rule would have fired on the ledger's turns.")
@with_settings("database", "key_file")
@click.argument("rule")
@click.option("--from", "from_", metavar="TIME", help="ISO 8601 or now-6h. [now-24h]")
@click.option("--to", metavar="TIME", help="ISO 8601 or now. [now]")
@click.option("--tz", metavar="ZONE", help="Zone of times without an offset. [UTC]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(
    *,
    rule: str,
    config: str | None,
    from_: str | None,
    to: str | None,
    tz: str | None,
    form: str,
    **flags: Any,
) -> None:
    """Tell when RULE would have fired on the turns that are in the ledger.

    RULE is a rule of the settings file, one made on the page (its name or id), or a .toml file
    that holds one.
    """
    now = time.time()
    given = [("from", from_), ("to", to), ("tz", tz)]
    view = parse([(name, value) for name, value in given if value is not None], now=now)
    settings = load_settings(config, flags)
    with open_ledger(settings) as engine, bar("Evaluating") as progress:
        read = lookup.find(rule, alert_config.read(settings), engine)
        end = min(view.end, int(now * 1_000))
        found = backtest.run(engine, read, view.start, end, progress=progress)
    if form == "json":
        # In ASCII: names come from clients, and a terminal obeys some characters beyond it.
        click.echo(json.dumps(report.as_dict(read, found), indent=2))
        return
    for line in report.text(read, found):
        click.echo(line)
