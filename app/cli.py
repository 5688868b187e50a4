"""``warmline …``: the commands, their options and their words. What they do is elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from app import server
from app.errors import AppError, LedgerError
from app.ledger import database, queries, retention
from app.ledger.csv_export import read_columns, write_csv, write_jsonl
from app.ledger.filters import DIMENSIONS, Filter, parse
from app.ledger.rollups.rebuild import rebuild
from app.ledger.rows import iso
from app.setting_kinds import FLAG
from app.setting_table import SETTINGS
from app.settings import Settings, load, without_password
from app.version import VERSION

F = TypeVar("F", bound=Callable[..., Any])


class Group(click.Group):
    """Turns our errors into one line on standard error and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AppError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=Group)
@click.version_option(VERSION, prog_name="warmline")
def main() -> None:
    """See where an agent's prompt cache stays warm, why it goes cold, and keep it warm."""


def _with_settings(*names: str) -> Callable[[F], F]:
    """Add ``--config`` and a flag per setting; all settings when none is named."""

    def decorate(command: F) -> F:
        for setting in reversed(SETTINGS):
            if names and setting.name not in names:
                continue
            flag = "--" + setting.name.replace("_", "-")
            help_text = setting.help.replace("`", "")
            if setting.kind is FLAG:
                option = click.option(f"{flag}/--no-{flag[2:]}", default=None, help=help_text)
            elif setting.secret and setting.name != "database":
                # A secret on the command line would be seen in the list of processes.
                option = click.option(f"{flag}-file", metavar="FILE", help=help_text)
            else:
                metavar = setting.kind.name.replace("`", "").replace(" or ", "|").upper()
                option = click.option(flag, metavar=metavar, help=help_text)
            command = option(command)
        config = click.option("--config", metavar="FILE", help="Settings file. [warmline.toml]")
        return config(command)

    return decorate


def _with_filter(command: F) -> F:
    """Add the filter's parameters as options; ``_view`` reads them."""
    names = f"Repeatable; NAME=!VALUE excludes. Names: {', '.join(DIMENSIONS)}, q."
    for option in (
        click.option("--where", "terms", multiple=True, metavar="NAME=VALUE", help=names),
        click.option("--by", metavar="started|recorded", help="Which time counts. [started]"),
        click.option("--tz", metavar="ZONE", help="Zone of times without an offset. [UTC]"),
        click.option("--to", metavar="TIME", help="ISO 8601 or now; not included. [now]"),
        click.option("--from", "from_", metavar="TIME", help="ISO 8601 or now-6h. [the beginning]"),
    ):
        command = option(command)
    return command


def _view(flags: dict[str, Any]) -> Filter:
    """The filter that the options of ``_with_filter`` ask for; takes them out of the flags."""
    terms = map(_term, flags.pop("terms"))
    given = [(name, flags.pop(name)) for name in ("from_", "to", "tz", "by")]
    return parse(
        [*((name.rstrip("_"), value) for name, value in given if value is not None), *terms],
        now=time.time(),
        default_from="1970-01-01",
    )


def _load(config: str | None, flags: dict[str, Any]) -> Settings:
    texts = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in flags.items()
    }
    return load(config=config, flags=texts)


@main.command()
@_with_settings()
def serve(config: str | None, **flags: Any) -> None:
    """Run the gateway and the dashboard."""
    from app.main import create_app  # noqa: PLC0415  (the other commands start without the web)

    settings = _load(config, flags)
    server.configure_logging(settings.log_level)
    server.run(create_app(settings), settings)


@main.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=8787, show_default=True)
def demo(port: int) -> None:
    """Show everything at work: sample agents, a provider, three days of sample history.

    Needs no account and no network; the database is thrown away at the end.
    """
    with contextlib.suppress(KeyboardInterrupt):  # also while it starts
        from app.demo.run import run  # noqa: PLC0415  (the other commands start without the web)
        from app.main import create_app  # noqa: PLC0415

        run(create_app, port=port)


@main.group()
def db() -> None:
    """Look after the database."""


@db.command("upgrade")
@_with_settings("database", "key_file")
def db_upgrade(config: str | None, **flags: Any) -> None:
    """Bring the database's schema to this version.

    SQLite does so by itself when the service starts; PostgreSQL needs this command.
    """
    settings = _load(config, flags)
    with _bar("Counting rows", shown=sys.stderr.isatty()) as progress:
        revision = database.upgrade(settings.database, progress=progress)
    click.echo(f"{without_password(settings.database)} is at schema {revision}.")


@db.command("rollup")
@_with_settings("database", "key_file")
def db_rollup(config: str | None, **flags: Any) -> None:
    """Count the rows anew from which pages and charts take their sums.

    Never needed in normal use. Time whose rows were deleted as too old keeps its sums. The
    service may run meanwhile.
    """
    settings = _load(config, flags)
    engine = database.prepare(_existing(settings.database))
    try:
        kept = retention.kept_from(engine).rows_from
        with _bar("Counting rows", shown=sys.stderr.isatty()) as progress:
            rows = rebuild(engine, progress)
    finally:
        engine.dispose()
    before = "" if kept is None else f" Sums of time before {iso(kept)} are left as they are."
    click.echo(f"{rows:,} rows counted.{before}")


@main.command()
@_with_settings("database", "key_file")
@_with_filter
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), default="csv")
@click.option("--columns", metavar="A,B,…", help="Columns in the order wanted. [all]")
@click.option("--raw", is_flag=True, help="CSV: no ' in front of text that looks like a formula.")
@click.option("--bom", is_flag=True, help="CSV: begin with a byte order mark, for Excel.")
@click.option("-o", "--output", metavar="FILE", default="-", help="[standard output]")
def export(
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
    view = _view(flags)
    names = read_columns(columns)
    engine = database.prepare(_existing(_load(config, flags).database))
    try:
        with _destination(output) as file, _progress(output, queries.count(engine, view)) as done:
            chunks = _counted(queries.stream(engine, view, columns=names), done)
            if form == "jsonl":
                file.writelines(write_jsonl(chunks, columns=names))
            else:
                file.writelines(write_csv(chunks, columns=names, raw=raw, bom=bom))
    finally:
        engine.dispose()


@main.command()
@_with_settings("database", "key_file")
@_with_filter
@click.option("--unknown", is_flag=True, help="Also list the turns that cannot be checked.")
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text")
def audit(*, config: str | None, unknown: bool, form: str, **flags: Any) -> None:
    """Verify that every continued turn hangs on what the turn before it left.

    Lists each turn that does not, and exits with 1 if there is one. A turn whose predecessor is
    no longer in the ledger, or that has no digests, cannot be checked and is only counted.
    """
    from app.ledger import audit as audit_ledger  # noqa: PLC0415  (the other commands start without it)

    view = _view(flags)
    engine = database.prepare(_existing(_load(config, flags).database))
    result = audit_ledger.Result()
    try:
        total = queries.count(engine, view) if sys.stderr.isatty() else 0
        with _bar("Verifying", shown=sys.stderr.isatty()) as progress:
            found = audit_ledger.audit(
                engine, view, result, progress=lambda rows: progress(rows, total)
            )
            for finding in found:
                if unknown or finding.verdict.wrong:
                    click.echo(audit_ledger.line(finding, form))
    finally:
        engine.dispose()
    click.echo(audit_ledger.summary(result, form))
    if result.wrong:
        sys.exit(1)


@main.command()
@_with_settings("database", "key_file")
@click.argument("rule")
@click.option("--from", "from_", metavar="TIME", help="ISO 8601 or now-6h. [now-24h]")
@click.option("--to", metavar="TIME", help="ISO 8601 or now. [now]")
@click.option("--tz", metavar="ZONE", help="Zone of times without an offset. [UTC]")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def backtest(
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
    from app.alerts import backtest as backtests  # noqa: PLC0415  (other commands start without)
    from app.alerts import config as alert_config  # noqa: PLC0415
    from app.alerts import lookup, report  # noqa: PLC0415

    now = time.time()
    given = [("from", from_), ("to", to), ("tz", tz)]
    view = parse([(name, value) for name, value in given if value is not None], now=now)
    settings = _load(config, flags)
    engine = database.prepare(_existing(settings.database))
    try:
        read = lookup.find(rule, alert_config.read(settings), engine)
        with _bar("Evaluating", shown=sys.stderr.isatty()) as progress:
            end = min(view.end, int(now * 1_000))
            found = backtests.run(engine, read, view.start, end, progress=progress)
    finally:
        engine.dispose()
    if form == "json":
        # In ASCII: names come from clients, and a terminal obeys some characters beyond it.
        click.echo(json.dumps(report.as_dict(read, found), indent=2))
        return
    for line in report.text(read, found):
        click.echo(line)


def _term(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name in ("from", "to", "tz", "by"):
        raise click.BadParameter(f"--where takes NAME=VALUE, not {text!r}.")
    return name, value


def _existing(name: str) -> str:
    """The database, if it is there: reading must not make an empty one."""
    url = database.read_url(name)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise LedgerError(
            "no_ledger",
            f"There is no ledger at {url.database}.",
            "Name it with --database, or start the service once.",
        )
    return name


@contextlib.contextmanager
def _destination(output: str) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears under its name only when it is complete."""
    if output == "-":
        stream = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    draft = Path(output + ".part")
    try:
        with draft.open("wb") as file:
            yield file
        os.replace(draft, output)  # noqa: PTH105  (it replaces on every platform)
    except OSError as error:
        raise click.ClickException(
            f"{output} cannot be written ({type(error).__name__})."
        ) from None
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _bar(label: str, *, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error of work whose length is told with its progress."""
    if not shown:
        yield lambda _done, _of: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def progress(done: int, of: int) -> None:
            bar.length = of
            if done % 500 == 0 or done == of:
                bar.update(done - bar.pos)

        yield progress


@contextlib.contextmanager
def _progress(output: str, length: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, where somebody looks and the output goes elsewhere."""
    if output == "-" or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=length, label="Writing", file=sys.stderr) as bar:
        yield bar.update


def _counted(
    chunks: Iterator[list[tuple[Any, ...]]], done: Callable[[int], None]
) -> Iterator[list[tuple[Any, ...]]]:
    for chunk in chunks:
        yield chunk
        done(len(chunk))
