"""``warmline import``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Engine

from app import keys as key_files
from app.charts.chart import count
from app.clock import SystemClock
from app.commands.ending import Ending
from app.commands.options import load_settings, open_ledger, with_settings
from app.commands.progress import bar
from app.importers import report as reports
from app.importers.identity import Identity
from app.importers.run import Report, run
from app.importers.unchanged import Unchanged
from app.importers.watch import Around, Watch
from app.judging import judge_all
from app.ledger import database, imports, retention
from app.ledger.rows import iso, to_ms
from app.pricing import sellers
from app.settings import Settings


@click.command("import", short_help="Take in logs of other tools, or files exported before.")
@with_settings("database", "key_file", "pseudonymize")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@click.option("--watch", is_flag=True, help="Go on with what is added to them, until Ctrl-C.")
@click.option("--unchanged", is_flag=True, help="Also read files again that have not changed.")
@click.option("--purged", is_flag=True, help="Also take rows that were purged from this ledger.")
@click.option("--list", "listing", is_flag=True, help="List the newest imports.")
@click.option("--undo", metavar="ID", help="Take away what an import has added.")
def command(
    *,
    paths: tuple[Path, ...],
    watch: bool,
    unchanged: bool,
    purged: bool,
    listing: bool,
    undo: str | None,
    config: str | None,
    **flags: Any,
) -> None:
    """Take in logs of other tools, files that were exported before, or folders of them.

    Sessions of Codex, Claude Code, pi and LingTai, spend logs of LiteLLM, logs of the Responses
    API, a neutral NDJSON or CSV that any log can be made into, and Warmline's own exports;
    plain or compressed (gzip, zstd). The format is told by what is in a file. Importing twice
    adds nothing, and reads only what has changed; an import that was interrupted goes on when
    it is run again. docs/formats.md has the rest.
    """
    taking = bool(paths)
    if (taking, listing, undo is not None).count(True) != 1 or (
        (purged or watch or unchanged) and not taking
    ):
        raise click.UsageError("Give files or folders, or --list, or --undo ID.")
    settings = load_settings(config, flags)
    if paths:
        _import(settings, paths, watch=watch, unchanged=unchanged, purged=purged)
        return
    with open_ledger(settings) as engine:
        if undo is not None:
            with bar("Undoing") as progress:
                undone = imports.undo(engine, undo, progress)
            judge_all(engine, SystemClock(), upstreams=sellers(settings))
            click.echo(f"Taken away again: {count(undone.rows, 'row')}.")
            if undone.parted:
                click.echo(
                    f"One row with a gateway's: {count(undone.parted, 'record')}; "
                    "those rows are as they were before."
                )
            if undone.kept:
                click.echo(
                    f"{undone.kept:,} more had been deleted as too old: "
                    "what they had added to the sums of their time stays."
                )
        else:
            for line in reports.listing(imports.listed(engine)) or ["Nothing was imported yet."]:
                click.echo(line)


def _import(
    settings: Settings, paths: tuple[Path, ...], *, watch: bool, unchanged: bool, purged: bool
) -> None:
    # Of several machines with one PostgreSQL none makes a key of its own.
    several = settings.database.startswith("postgresql")
    keys = (key_files.load if several else key_files.load_or_create)(settings.key_file)
    with database.closing(database.prepare(settings.database)) as engine:
        database.check_key(engine, keys)
        identity = Identity(keys, pseudonymize=settings.pseudonymize)
        remembered = Unchanged(engine, identity, passing=purged or unchanged)
        if watch:
            upstreams = sellers(settings)
            _watch(engine, paths, identity, remembered, purged=purged, upstreams=upstreams)
            return
        with bar("Importing") as progress:
            report = run(
                engine,
                paths,
                SystemClock(),
                identity=identity,
                again=purged,
                progress=progress,
                unchanged=remembered,
            )
        fleeting = None
        if report.import_id is not None:
            with bar("Judging") as judged:
                judge_all(engine, SystemClock(), judged, sellers(settings))
            fleeting = _fleeting(engine, report.import_id, settings.retain_rows_days)
    _say(reports.text(report))
    if fleeting:
        click.echo(fleeting)
    if report.failed or (report.import_id is None and not report.unchanged):
        sys.exit(1)


def _fleeting(engine: Engine, import_id: str, days: int) -> str | None:
    """Says so where old rows have come into a ledger that is not to keep them."""
    before = retention.cut(to_ms(SystemClock().now()), days)
    span = imports.span(engine, import_id)
    if before is None or span is None or span.first >= before:
        return None
    return (
        f"Rows from before {iso(before)[:10]} will be deleted when the service runs, which keeps "
        f"them for {days:,} days; their sums stay. To keep them set retain_rows_days = 0."
    )


def _watch(
    engine: Engine,
    paths: Sequence[Path],
    identity: Identity,
    remembered: Unchanged,
    *,
    purged: bool,
    upstreams: Mapping[str, str],
) -> None:
    clock = SystemClock()

    def brought(report: Report) -> None:
        _say(reports.news(report, to_ms(clock.now())))

    def settle() -> None:
        judge_all(engine, clock, upstreams=upstreams)

    with Ending() as ending:
        click.echo("Watching. End it with Ctrl-C.", err=True)
        watch = Watch(
            engine,
            paths,
            clock,
            identity,
            Around(
                rest=ending.rest,
                stopped=ending.asked,
                brought=brought,
                trouble=lambda sentence: click.echo(sentence, err=True),
                settle=settle,
            ),
            unchanged=remembered,
            again=purged,
        )
        report = watch.run()
    _say(reports.text(report))


def _say(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line)
