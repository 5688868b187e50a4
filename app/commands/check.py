"""``warmline check``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from app.commands.logs import judged
from app.commands.options import load_settings, read_view, with_filter, with_settings
from app.commands.progress import destination
from app.errors import AppError
from app.importers.report import printable
from app.reporting import gate
from app.reporting.gather import sums

_RATE = click.FloatRange(0, 1)


@click.command("check", short_help="Tell by the exit code whether the cache is warm enough.")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@with_settings("database", "key_file")
@with_filter
@click.option(
    "--max-mismatch-rate",
    metavar="RATE",
    type=_RATE,
    default=0.05,
    help="Of turns that could have been continued. [0.05, where modes are recorded]",
)
@click.option(
    "--max-missed-rate",
    metavar="RATE",
    type=_RATE,
    default=0.10,
    help="Of tokens to be read again. [0.1]",
)
@click.option(
    "--min-requests",
    metavar="N",
    type=click.IntRange(1),
    default=50,
    help="Generation turns that there must be. [50]",
)
@click.option("--json", "as_json", is_flag=True, help="The outcome as JSON.")
@click.option("--junit", metavar="FILE", help="Also write the outcome as JUnit XML.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    paths: tuple[Path, ...],
    max_mismatch_rate: float,
    max_missed_rate: float,
    min_requests: int,
    as_json: bool,
    junit: str | None,
    config: str | None,
    **flags: Any,
) -> None:
    """Exit with 0 where the cache is as warm as it has to be, and with 1 where it is not.

    PATHs are log files, or folders of them; without one, the ledger of the settings is read. The
    exit code is 2 where there is not enough to tell, or the input is of no use.
    """
    asked = gate.Asked(
        max_mismatch_rate,
        max_missed_rate,
        min_requests,
        frozenset(
            name
            for name in (gate.MISMATCH, gate.MISSED)
            if ctx.get_parameter_source(name.replace("-", "_")) is not ParameterSource.DEFAULT
        ),
    )
    try:
        conditions = _judged(paths, asked, config, flags)
    except AppError as error:
        if junit is not None:
            _write(junit, gate.junit([], str(error)))
        if as_json:
            click.echo(json.dumps({"outcome": "undecided", "exit_code": 2, **error.as_dict()}))
        click.echo(f"Error: {printable(str(error), 500)}", err=True)
        sys.exit(2)
    if junit is not None:
        _write(junit, gate.junit(conditions))
    if as_json:
        click.echo(json.dumps(gate.as_dict(conditions), indent=2))
    else:
        for line in gate.text(conditions):
            click.echo(line)
    sys.exit(gate.EXIT[gate.outcome(conditions)])


def _judged(
    paths: tuple[Path, ...], asked: gate.Asked, config: str | None, flags: dict[str, Any]
) -> list[gate.Condition]:
    view = read_view(flags)
    settings = load_settings(config, flags)
    with judged(settings, paths) as (engine, read):
        if read.failures:
            name, why = read.failures[0]
            raise AppError("not_read", f"{printable(name)} was not read whole. {why}")
        return gate.judge(sums(engine, view, read), asked)


class _NotWritten(click.ClickException):
    exit_code = 2


def _write(name: str, document: bytes) -> None:
    try:
        with destination(name) as file:
            file.write(document)
    except click.ClickException as error:
        raise _NotWritten(error.message) from None
