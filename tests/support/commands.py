"""The command line as a person uses it: in an empty directory, without settings from outside."""

from click.testing import CliRunner, Result

from app.cli import main

LEDGER = "ledger.sqlite3"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))
