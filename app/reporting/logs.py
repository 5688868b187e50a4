"""Files as a ledger that is thrown away again: what a report on logs is read from."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sqlalchemy import Engine

from app.charts.chart import count
from app.clock import SystemClock
from app.errors import AppError
from app.importers import run as importing
from app.importers.identity import Identity
from app.importers.report import printable
from app.ledger import database
from app.reporting.figures import Read

Progress = Callable[[int, int], None]


@contextlib.contextmanager
def imported(
    paths: Sequence[Path], identity: Identity, progress: Progress
) -> Iterator[tuple[Engine, Read]]:
    """A ledger of these files and folders, as long as it is needed, and what came of reading them.

    Raises ``AppError`` for a path that is not there, where none of the files is a log, and where
    the ledger fails.
    """
    with (
        tempfile.TemporaryDirectory(prefix="warmline-") as folder,
        database.closing(database.prepare(str(Path(folder) / "ledger.sqlite3"))) as engine,
    ):
        report = importing.run(engine, paths, SystemClock(), identity=identity, progress=progress)
        if report.import_id is None:
            raise _no_log(report)
        yield engine, told(report)


def told(report: importing.Report) -> Read:
    return Read(
        files=sum(file.format is not None for file in report.files),
        formats=tuple(sorted({file.format for file in report.files if file.format is not None})),
        ignored=report.ignored,
        skipped=dict(report.counts.skipped.most_common()),
        failures=tuple(
            (file.name, file.failure) for file in report.files if file.failure is not None
        ),
    )


def _no_log(report: importing.Report) -> AppError:
    named = [f"{printable(file.name)}: {file.failure}" for file in report.files]
    if named:
        return AppError("no_log", f"Nothing can be read. {' '.join(named[:3])}")
    passed = (
        f"{count(report.ignored, 'file')} {'was' if report.ignored == 1 else 'were'} passed over."
    )
    return AppError(
        "no_log",
        "There is no log in what was given.",
        f"{passed if report.ignored else 'It is empty.'} docs/formats.md lists what can be read.",
    )
