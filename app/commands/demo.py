"""``warmline demo``."""

from __future__ import annotations

import contextlib

import click


@click.command("demo", short_help="Show everything at work, with sample agents and no account.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8787, show_default=True)
def command(port: int) -> None:
    """Show everything at work: sample agents, a provider, three days of sample history.

    Needs no account and no network; the database is thrown away at the end.
    """
    with contextlib.suppress(KeyboardInterrupt):  # also while it starts
        from app.demo.run import run  # noqa: PLC0415  (the other commands start without the web)
        from app.main import create_app  # noqa: PLC0415

        run(create_app, port=port)
