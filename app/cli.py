"""``warmline …``: which commands there are. Each is in its own file of ``app.commands``."""

from __future__ import annotations

import importlib
from typing import Any

import click

from app.errors import AppError
from app.version import VERSION

COMMANDS = {
    "serve": "serve",
    "demo": "demo",
    "import": "importing",
    "export": "export",
    "report": "report",
    "check": "check",
    "audit": "audit",
    "evidence": "evidence",
    "backtest": "backtest",
    "purge": "purge",
    "db": "db",
}
"""Names, and the modules that hold a command of that name."""


class Commands(click.Group):
    """Imports a command when it is wanted: none waits for what only others need.

    Turns our errors into one line on standard error and exit code 1.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"app.commands.{COMMANDS[cmd_name]}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AppError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=Commands)
@click.version_option(VERSION, prog_name="warmline")
def main() -> None:
    """See where an agent's prompt cache stays warm, why it goes cold, and keep it warm."""
