"""What ``report`` and ``check`` read: files and folders, or the ledger of the settings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import Engine

from app import keys as key_files
from app.clock import SystemClock
from app.commands.options import open_ledger
from app.commands.progress import bar
from app.importers.identity import Identity
from app.judging import judge_all
from app.keys import Keys
from app.pricing import sellers
from app.reporting.figures import Read
from app.reporting.logs import imported
from app.settings import Settings

_OR_LOGS = "Give files or folders of logs, or name a ledger with --database."


@contextlib.contextmanager
def judged(settings: Settings, paths: Sequence[Path]) -> Iterator[tuple[Engine, Read]]:
    """A ledger to read, with verdicts, and what came of reading the files."""
    if not paths:
        with open_ledger(settings, _OR_LOGS) as engine:
            _judge(engine, settings)
            yield engine, Read()
        return
    with (
        bar("Reading") as progress,
        imported(paths, _identity(settings), progress) as (engine, read),
    ):
        _judge(engine, settings)
        yield engine, read


def _judge(engine: Engine, settings: Settings) -> None:
    """Also in a ledger that a service keeps judged: it may not have run since the last import."""
    with bar("Judging") as progress:
        judge_all(engine, SystemClock(), progress, sellers(settings))


def _identity(settings: Settings) -> Identity:
    """Nobody keeps the hashes of a ledger that is thrown away, so they need no secret, unless they
    stand for names."""
    if settings.pseudonymize:
        return Identity(key_files.load_or_create(settings.key_file), pseudonymize=True)
    return Identity(Keys(bytes(32)))
