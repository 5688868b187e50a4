"""From files to the ledger: batch by batch, with a record of what became of each."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sqlalchemy import Engine

from app.clock import Clock
from app.importers import opening
from app.importers.codex import CODEX
from app.importers.codex_parents import Rollouts
from app.importers.files import Named, expand
from app.importers.formats import HEAD, detect
from app.importers.identity import UNPLACED, Identity
from app.importers.importer import (
    Around,
    Beside,
    Importer,
    Item,
    NotReadable,
    Parents,
    Remark,
    Skipped,
    Vector,
)
from app.importers.lines import Line, split
from app.importers.unchanged import Unchanged
from app.judging import verdicts_on
from app.ledger import imports, merging, taking
from app.ledger.imports import Counts
from app.ledger.rows import TurnRow, to_ms
from app.pricing import price_of

BATCH = 1_000
"""Rows of one transaction: of one file or of several, whole ones as far as can be."""
_FILES = 100
"""Files that are read until it is noted that they were, if they bring few rows."""
FUTURE = "lies in the future"
_TOLERATED = 24 * 3_600_000
"""Milliseconds that another machine's clock may be ahead."""
_EXAMPLES = 3
"""Lines that are named for each reason."""
_TENANTS = 1_000

CONCLUDING: taking.Concluding | None = taking.Concluding(price_of, verdicts_on)
"""Of rows of other tools' logs, before they are taken."""

Progress = Callable[[int, int], None]
"""Bytes read, and bytes there are."""


@dataclass(slots=True)
class FileReport:
    name: str
    format: str | None = None
    counts: Counts = field(default_factory=Counts)
    examples: dict[str, list[int]] = field(default_factory=dict)
    """The first lines that were skipped, by reason."""
    remarks: list[str] = field(default_factory=list)
    failure: str | None = None
    """Why it was not read, or not to its end."""
    path: Path | None = None
    lacks: set[str] = field(default_factory=set)
    """Sessions that it has copied from, and whose files are not to be found."""

    def skip(self, skipped: Skipped) -> None:
        self.counts.skipped[skipped.why] += 1
        lines = self.examples.setdefault(skipped.why, [])
        if len(lines) < _EXAMPLES:
            lines.append(skipped.line)

    @property
    def settled(self) -> bool:
        """Read again as it is, it would bring nothing."""
        return not (self.failure or self.lacks or FUTURE in self.counts.skipped)


@dataclass(slots=True)
class Report:
    import_id: str | None
    """None where there was nothing to import."""
    files: list[FileReport]
    ignored: int = 0
    """Files of folders that are of no known format."""
    unchanged: int = 0
    """Files that were passed over, since they are as they were when they were read."""
    formats: dict[Path, str] = field(default_factory=dict)
    """Of all files whose format is known."""
    strangers: int = 0
    """Tenants of new rows that the ledger did not know, although it knew others."""
    merged: int = 0
    """New records of calls that a gateway had seen: they are one row with its own."""
    differing: int = 0
    """Of these, the ones that tell other figures."""

    @property
    def counts(self) -> Counts:
        whole = Counts()
        for file in self.files:
            whole.add(file.counts)
        return whole

    @property
    def failed(self) -> bool:
        """Whether something of what was asked for could not be read."""
        return any(file.failure for file in self.files)


def run(
    engine: Engine,
    paths: Iterable[Path],
    clock: Clock,
    *,
    identity: Identity,
    again: bool = False,
    make_id: Callable[[], str] = lambda: secrets.token_hex(4),
    progress: Progress = lambda _done, _of: None,
    watch: opening.Watch | None = None,
    begun: Callable[[Report], None] = lambda _report: None,
    unchanged: Unchanged | None = None,
) -> Report:
    """Import files and folders. ``again`` also takes rows that were purged; ``identity`` says whose
    the rows of other tools' logs are. ``watch`` follows the reading, and may end it; ``begun`` gets
    the report as soon as there is one, to have it also of an import that does not end well. Files
    that are ``unchanged`` are passed over.

    Raises ``AppError`` for a path that is not there. Whatever else ends it: what was told as taken
    is taken, and running it again takes the rest.
    """
    report, readable = look(expand(paths), unchanged)
    if not readable:
        return report
    report.import_id = make_id()
    begun(report)
    # Files are often called after their session.
    names = [] if identity.pseudonymize else [file.told.name for file in readable]
    imports.begin(engine, report.import_id, to_ms(clock.now()), names)

    def finish(state: str) -> None:
        assert report.import_id is not None
        imports.finish(
            engine,
            report.import_id,
            state,
            now=to_ms(clock.now()),
            counts=report.counts,
            formats=sorted({file.importer.name for file in readable}),
        )

    try:
        Taking(
            engine,
            report,
            clock,
            identity,
            again=again,
            progress=progress,
            watch=watch,
            unchanged=unchanged,
        ).take(readable)
        merging.merge_waiting(engine)
        report.merged, report.differing = merging.counted(engine, report.import_id)
    except BaseException:
        with contextlib.suppress(Exception):  # the database may be what has failed
            finish(imports.INTERRUPTED)
        raise
    finish(imports.DONE)
    return report


class Readable(NamedTuple):
    """A file whose format is known."""

    told: FileReport
    importer: Importer
    path: Path
    size: int
    """Bytes of it as it lay there when it was looked at."""


def look(files: Sequence[Named], unchanged: Unchanged | None) -> tuple[Report, list[Readable]]:
    """A report that tells what cannot be read, and what is to be read."""
    report = Report(None, [])
    readable: list[Readable] = []
    strange: list[Path] = []
    for file in files:
        told = FileReport(file.path.name, path=file.path)
        try:
            with opening.opened(file.path) as opened:
                importer = detect(_head(opened.file))
        except (NotReadable, OSError) as error:
            if file.found and isinstance(error, NotReadable):
                strange.append(file.path)
                continue
            told.failure = _sentence(error)
        else:
            told.format = report.formats[file.path] = importer.name
            readable.append(Readable(told, importer, file.path, opened.size))
        report.files.append(told)
    beside = {file.path.parent / name for file in readable for name in file.importer.beside}
    report.ignored = sum(path not in beside for path in strange)
    if unchanged is not None:
        new = unchanged.new(readable)
        report.unchanged = len(readable) - len(new)
        readable = [file for file in readable if file.path in new]
        report.files = [told for told in report.files if told.format is None or told.path in new]
    return report, readable


def _head(file: BinaryIO) -> bytes:
    """Enough of a file to tell its format, or all that can be read of it."""
    head = b""
    with contextlib.suppress(opening.Damaged):
        while len(head) < HEAD and (more := file.read(1_024)):
            head += more
    return head


class Taking:
    """Takes files in, as an import that has begun. ``before`` is what it has brought already, and
    ``others`` are rollouts that these may have copied from."""

    def __init__(
        self,
        engine: Engine,
        report: Report,
        clock: Clock,
        identity: Identity,
        *,
        again: bool,
        progress: Progress,
        watch: opening.Watch | None = None,
        unchanged: Unchanged | None = None,
        before: Counts | None = None,
        others: Iterable[Path] = (),
    ) -> None:
        self._engine = engine
        self._report = report
        self._clock = clock
        self._identity = identity
        self._again = again
        self._progress = progress
        self._watch = watch
        self._unchanged = unchanged
        self._counts = Counts()
        """What has become of all records so far."""
        self._counts.add(before or Counts())
        self._waiting: list[tuple[FileReport, list[TurnRow]]] = []
        """Rows that were read and are not taken yet, file by file."""
        self._rows = 0
        """How many these are."""
        self._ended: list[FileReport] = []
        """Files that were read meanwhile, to the end."""
        own = {path for path, name in report.formats.items() if name == CODEX.name}
        self._parents = Rollouts(own.union(others), watch)
        self._tenants: dict[str, bool] = {}
        """Whether the ledger knew it before."""

    def take(self, readable: Sequence[Readable]) -> None:
        done, total = 0, sum(file.size for file in readable)
        self._progress(0, total)
        for file in readable:
            try:
                for position in self._read(file):
                    self._progress(min(done + position, total), total)
            except (NotReadable, OSError) as error:
                file.told.failure = _sentence(error)
            self._ended.append(file.told)
            if self._rows >= max(1, BATCH // 2) or len(self._ended) >= _FILES:
                self._flush()
            done += file.size
            self._progress(min(done, total), total)
        self._flush()
        self._progress(total, total)
        self._report.strangers = self._strangers()

    def _read(self, file: Readable) -> Iterator[int]:
        """Yields how far it is, each time that rows were taken."""
        told, importer, path, _ = file
        rows: list[TurnRow] = []
        self._waiting.append((told, rows))
        with opening.opened(path, self._watch) as opened:
            for item in _items(importer, opened, path, self._asking(told), self._watch):
                if isinstance(item, TurnRow):
                    rows.append(item)
                    self._rows += 1
                    if self._rows >= BATCH:
                        self._flush()
                        rows = []
                        self._waiting.append((told, rows))
                        yield opened.position()
                elif isinstance(item, Skipped):
                    told.skip(item)
                    self._counts.skipped[item.why] += 1
                else:
                    assert isinstance(item, Remark)
                    told.remarks.append(item.text)

    def _flush(self) -> None:
        """Take the rows that wait; the files that have ended by now need not be read again."""
        latest = to_ms(self._clock.now()) + _TOLERATED
        good = [(told, self._of_now(rows, told, latest)) for told, rows in self._waiting if rows]
        self._waiting, self._rows = [], 0
        for logged, some in groupby(good, _logged):
            self._put(list(some), logged=logged)
        if self._unchanged is not None:
            self._unchanged.read([told.path for told in self._ended if told.settled and told.path])
        self._ended = []

    def _asking(self, told: FileReport) -> Parents:
        def history(session: str) -> Sequence[Vector] | None:
            found = self._parents(session)
            if found is None:
                told.lacks.add(session)
            return found

        return history

    def _of_now(self, rows: list[TurnRow], told: FileReport, latest: int) -> list[TurnRow]:
        """Without rows from a time that has not come: stretches would be summed up too early."""
        good = [row for row in rows if max(row.started_at, row.recorded_at) <= latest]
        if len(good) < len(rows):
            for counts in (told.counts, self._counts):
                counts.skipped[FUTURE] += len(rows) - len(good)
        return good

    def _put(self, files: Sequence[tuple[FileReport, list[TurnRow]]], *, logged: bool) -> None:
        assert self._report.import_id is not None
        placed = [[self._identity.place(row) for row in rows] for _, rows in files]
        known = self._tenants.keys() | {self._identity.tenant}
        self._meet({row.tenant for rows in placed for row in rows} - known)
        counts = taking.take(
            self._engine,
            self._report.import_id,
            placed,
            self._counts,
            again=self._again,
            logged=logged,
            concluding=CONCLUDING,
        )
        for (told, _), one in zip(files, counts, strict=True):
            told.counts.add(one)
            self._counts.add(one)

    def _meet(self, tenants: set[str]) -> None:
        if tenants and len(self._tenants) < _TENANTS:
            known = imports.tenants_known(self._engine, sorted(tenants))
            self._tenants |= {tenant: tenant in known for tenant in tenants}

    def _strangers(self) -> int:
        """Tenants that came anew, where the ledger had other ones."""
        new = [tenant for tenant, known in self._tenants.items() if not known]
        return len(new) if imports.has_other_tenants(self._engine, new) else 0


def _items(
    importer: Importer,
    opened: opening.Opened,
    path: Path,
    parents: Parents,
    watch: opening.Watch | None,
) -> Iterator[Item]:
    lines = importer.split(opened.file)
    if importer.read_around is None:
        return importer.read(lines)
    return importer.read_around(lines, Around(path.name, parents, _beside(path.parent, watch)))


def _beside(folder: Path, watch: opening.Watch | None) -> Beside:
    def lines(name: str) -> Iterator[Line]:
        with (
            contextlib.suppress(NotReadable, OSError),
            opening.opened(folder / name, watch) as opened,
        ):
            yield from split(opened.file)

    return lines


def _logged(file: tuple[FileReport, list[TurnRow]]) -> bool:
    """Whether its rows are of another tool's log."""
    return any(row.tenant == UNPLACED for row in file[1])


def _sentence(error: NotReadable | OSError) -> str:
    if isinstance(error, NotReadable):
        return str(error)
    text = f"it cannot be read ({error.strerror or type(error).__name__})"
    if isinstance(error, opening.Damaged):
        text = str(error)
    return text[0].upper() + text[1:] + "."
