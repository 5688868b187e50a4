"""Importing for as long as somebody wants it: what is new is taken in every couple of seconds.

What has changed is told by looking at the sizes and times of all files. A file that has grown is
read from its beginning, and what is known is passed over by its key (``app.ledger.imports``); the
longer that takes, the longer is the rest afterwards. All that one watch brings is one import.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.clock import Clock
from app.errors import AppError
from app.importers.changes import Changes
from app.importers.files import expand
from app.importers.identity import Identity
from app.importers.run import FileReport, Progress, Report, Taking, look
from app.importers.unchanged import Unchanged
from app.ledger import import_files, imports, merging
from app.ledger.imports import Counts
from app.ledger.rows import to_ms

EVERY = 2.0
"""Seconds from one look to the next, at least."""
RESTS = 9
"""Times that a look has taken: no more than a tenth of a core is used."""


@dataclass(frozen=True, slots=True)
class Around:
    """Whoever watches. ``rest`` waits, and says whether the watch is to end, as ``stopped`` does
    at any time. ``brought`` gets what a look has read; ``trouble`` a sentence on what cannot be
    done for now, once; ``settle`` is called after new rows."""

    rest: Callable[[float], bool]
    stopped: Callable[[], bool]
    brought: Callable[[Report], None]
    trouble: Callable[[str], None]
    settle: Callable[[], None] = lambda: None
    progress: Progress = lambda _done, _of: None


class _StoppedError(Exception):
    """In the middle of a file."""


class Watch:
    def __init__(
        self,
        engine: Engine,
        paths: Sequence[Path],
        clock: Clock,
        identity: Identity,
        around: Around,
        *,
        again: bool = False,
        unchanged: Unchanged | None = None,
        make_id: Callable[[], str] = lambda: secrets.token_hex(4),
    ) -> None:
        self._engine = engine
        self._paths = paths
        self._clock = clock
        self._identity = identity
        self._around = around
        self._again = again
        self._unchanged = unchanged or Unchanged(engine, identity, passing=again)
        self._make_id = make_id
        self._changes = Changes(paths, around.trouble)
        self._age: str | None = None
        self._away = False
        self._unsettled = False
        self._whole = Report(None, [])
        self._files: dict[Path | None, FileReport] = {}

    def run(self) -> Report:
        """Until it is to end; all that it has brought.

        Raises ``AppError`` for a path that is not there at the beginning, and where what it has
        brought is undone.
        """
        expand(self._paths)
        state = imports.INTERRUPTED
        try:
            while True:
                began = self._clock.monotonic()
                self._try()
                if self._around.rest(max(EVERY, RESTS * (self._clock.monotonic() - began))):
                    break
            state = imports.DONE
        except _StoppedError:
            pass
        finally:
            with contextlib.suppress(Exception):  # the database may be what has failed
                self._note(state, to_ms(self._clock.now()))
                self._count_merged()
        return self._whole

    def _try(self) -> None:
        driver: Any = self._engine.dialect.loaded_dbapi
        try:
            self.look()
        except (SQLAlchemyError, driver.Error) as error:
            if not self._away:
                cause = type(getattr(error, "orig", None) or error).__name__
                self._around.trouble(f"The ledger cannot be used ({cause}). Trying again.")
            self._away = True
        else:
            if self._away:
                self._around.trouble("The ledger can be used again.")
            self._away = False

    def look(self) -> None:
        """Take in what is new by now."""
        self._follow()
        found = self._changes.find()
        if found:
            report, readable = look(found, self._unchanged)
            if readable:
                self._begin()
                report.import_id = self._whole.import_id
                self._unsettled = True
                taking = Taking(
                    self._engine,
                    report,
                    self._clock,
                    self._identity,
                    again=self._again,
                    progress=self._around.progress,
                    watch=self._stop,
                    unchanged=self._unchanged,
                    before=self._whole.counts,
                    others=self._changes.rollouts(),
                )
                try:
                    taking.take(readable)
                finally:
                    self._add(report)
                self._note(imports.RUNNING)
            self._changes.keep(report)
            if report.files:
                self._around.brought(report)
        if self._unsettled:
            merging.merge_waiting(self._engine)
            self._around.settle()
            self._unsettled = False

    def _stop(self, _read: int) -> None:
        if self._around.stopped():
            raise _StoppedError

    def _follow(self) -> None:
        """What was given back meanwhile is read again, unless it was this watch's."""
        age = import_files.age(self._engine)
        if age == self._age:
            return
        self._age = age
        self._changes.forget()
        if self._whole.import_id is not None:
            state = imports.one(self._engine, self._whole.import_id).state
            if state in (imports.UNDOING, imports.UNDONE):
                raise AppError("undone", "What this watch has brought was undone: it ends here.")

    def _begin(self) -> None:
        if self._whole.import_id is None:
            name = self._make_id()
            # Not those of files, which are often called after sessions, and may be purged.
            watched = [f"{path.resolve().name} (watched)" for path in self._paths]
            imports.begin(self._engine, name, to_ms(self._clock.now()), watched)
            self._whole.import_id = name

    def _add(self, report: Report) -> None:
        for file in report.files:
            if file.path is not None and not file.path.exists():
                file.failure = None  # moved, or removed: nobody misses it
            before = self._files.get(file.path, FileReport(file.name)).counts
            counts = Counts(
                before.new + file.counts.new,
                max(0, file.counts.known - before.new),
                file.counts.skipped,
            )
            self._files[file.path] = replace(file, counts=counts)
        self._whole.files = list(self._files.values())
        self._whole.strangers = max(self._whole.strangers, report.strangers)

    def _count_merged(self) -> None:
        if self._whole.import_id is not None:
            found = merging.counted(self._engine, self._whole.import_id)
            self._whole.merged, self._whole.differing = found

    def _note(self, state: str, ended_at: int | None = None) -> None:
        if self._whole.import_id is not None:
            imports.finish(
                self._engine,
                self._whole.import_id,
                state,
                now=ended_at,
                counts=self._whole.counts,
                formats=sorted({file.format for file in self._whole.files if file.format}),
            )
