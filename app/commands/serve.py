"""``warmline serve``."""

from __future__ import annotations

from typing import Any

import click

from app import server
from app.commands.options import load_settings, with_settings


@click.command("serve")
@with_settings()
def command(config: str | None, **flags: Any) -> None:
    """Run the gateway and the dashboard."""
    from app.main import create_app  # noqa: PLC0415  (the other commands start without the web)

    settings = load_settings(config, flags)
    server.configure_logging(settings.log_level)
    server.run(create_app(settings), settings)
