"""``warmline report``."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from app.commands.logs import judged
from app.commands.options import load_settings, read_view, with_filter, with_settings
from app.commands.progress import bar, destination
from app.pricing import sellers
from app.reporting import text
from app.reporting.figures import as_dict
from app.reporting.gather import gather

_STYLES: dict[str, dict[str, Any]] = {
    "title": {"bold": True},
    "label": {"fg": "bright_black"},
    "bad": {"fg": "yellow", "bold": True},
    "good": {"fg": "green"},
}


@click.command("report")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@with_settings("database", "key_file")
@with_filter
@click.option("--html", metavar="FILE", help="Also write a page that holds all it needs.")
@click.option("--json", "as_json", is_flag=True, help="The figures as JSON.")
def command(
    *,
    paths: tuple[Path, ...],
    html: str | None,
    as_json: bool,
    config: str | None,
    **flags: Any,
) -> None:
    """Tell why the cache is cold, from logs or from the ledger.

    PATHs are log files, or folders of them; they are read into a ledger that is thrown away again.
    Without one, the ledger of the settings is read.
    """
    view = read_view(flags)
    settings = load_settings(config, flags)
    with judged(settings, paths) as (engine, read):
        with bar("Adding up") as progress:
            figures = gather(engine, view, read, progress, sellers(settings))
        if html is not None:
            from app.reporting.page import page  # noqa: PLC0415  (templates take their time)

            with destination(html) as file:
                file.write(page(engine, view, figures, now=int(time.time() * 1_000)).encode())
    if as_json:
        # In ASCII: names come from clients, and a terminal obeys some characters beyond it.
        click.echo(json.dumps(as_dict(figures), indent=2))
        return
    style = _coloured if wants_colours(sys.stdout, os.environ) else text.plain
    for line in text.text(figures, view.zone, style):
        click.echo(line)


def wants_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """On a terminal, unless ``NO_COLOR`` is set (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR")


def _coloured(said: str, what: str) -> str:
    return click.style(said, **_STYLES[what])
