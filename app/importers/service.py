"""Imports of files that were sent, and undoing any import: one at a time, in a thread of its own.

What has come to the ledger is in its record (``app.ledger.imports``); this keeps what the record
does not say, for as long as the process lives: what is being uploaded, how far it is, and which
lines were skipped. It can be stopped at any piece of a file: what was taken until then stays, and
can be taken back or completed.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sqlalchemy import Engine

from app.clock import Clock
from app.errors import AppError
from app.importers.identity import Identity
from app.importers.run import Report, run
from app.importers.uploads import Uploads
from app.ledger import imports
from app.ledger.rows import to_ms
from app.tasks import describe

logger = logging.getLogger(__name__)

UPLOADING, WAITING, EMPTY = "uploading", "waiting", "empty"
"""States beside those of the ledger's records; ``EMPTY``: there was nothing to import."""
IDLE_SECONDS = 30 * 60
"""After this without a byte an upload is taken for given up."""
INFLATION = 20
"""How many times the largest upload the files may be when they are decompressed."""
_UPLOADS = 8
_REMEMBERED = 50


class _StoppedError(Exception):
    pass


@dataclass(eq=False)
class Job:
    """What is known of an import beside its record in the ledger."""

    id: str
    state: str
    created: int
    """Epoch ms."""
    purged: bool = False
    """Take also what was purged from the ledger."""
    done: int = 0
    of: int = 0
    """Bytes while it is imported, rows while it is undone."""
    touched: float = 0.0
    report: Report | None = None
    failure: AppError | None = None
    """Why it did not come to its end."""
    kept: int | None = None
    """Of an undone import: rows of which only sums were left, which stay."""
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def ended(self) -> bool:
        """Whether ``report`` is complete; while it is not, another thread writes it."""
        return self.state not in (UPLOADING, WAITING, imports.RUNNING)

    @property
    def recorded(self) -> bool:
        """Whether the ledger has, or had, a record of it."""
        begun = self.report is not None and self.report.import_id is not None
        return begun or self.state in (imports.UNDOING, imports.UNDONE)


class Importing:
    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        identity: Identity,
        uploads: Uploads,
        *,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """``changed`` is called in the thread when rows came or went."""
        self.uploads = uploads
        self._engine = engine
        self._clock = clock
        self._identity = identity
        self._changed = changed
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="import")
        imports.interrupted(engine, uploads.take_over(), to_ms(clock.now()))

    def jobs(self) -> list[Job]:
        """All that is remembered, newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: (-job.created, job.id))

    def job(self, import_id: str) -> Job | None:
        with self._lock:
            return self._jobs.get(import_id)

    def begin(self, *, purged: bool = False) -> Job:
        """An import to which files can be sent. Raises ``AppError`` where there are too many."""
        self._give_up_idle()
        with self._lock:
            if sum(job.state == UPLOADING for job in self._jobs.values()) >= _UPLOADS:
                raise AppError("busy", "Too many uploads are open.", "Try again shortly.", 503)
            now = self._clock.now()
            job = Job(secrets.token_hex(4), UPLOADING, to_ms(now), purged, touched=now)
            self._jobs[job.id] = job
            self._forget_old()
        return job

    @contextlib.contextmanager
    def receiving(
        self, import_id: str, name: str, expected: int | None
    ) -> Iterator[Callable[[bytes], None]]:
        """Write a file of an import that takes files, piece by piece. Raises ``AppError``."""
        job = self._uploading(import_id)
        with self.uploads.receiving(job.id, name, expected) as draft:

            def write(piece: bytes) -> None:
                job.touched = self._clock.now()
                draft.write(piece)

            yield write
        job.touched = self._clock.now()

    def start(self, import_id: str) -> Job:
        """Import what was sent. Raises ``AppError``."""
        job = self._uploading(import_id)
        if not self.uploads.files(job.id):
            raise AppError("no_files", "No file was sent.", "Send one first.", 409)
        with self._lock:
            if job.state != UPLOADING:  # another request was quicker
                raise _taken()
            job.state = WAITING
        self._thread.submit(self._guarded, job, self._import)
        return job

    def undo(self, import_id: str) -> Job:
        """Take an import back: stop it if it runs, forget what was uploaded, remove its rows.

        Raises ``AppError`` where there is no such import.
        """
        job = self.job(import_id)
        if job is not None and job.state == UPLOADING:
            self._discard(job)
            return job
        if job is None:
            found = imports.one(self._engine, import_id)
            job = Job(found.id, found.state, found.started_at)
            with self._lock:
                job = self._jobs.setdefault(job.id, job)
        job.cancelled.set()
        self._thread.submit(self._guarded, job, self._undo)
        return job

    def settle(self) -> None:
        """Wait until all is done that the thread was given."""
        self._thread.submit(lambda: None).result()

    def close(self) -> None:
        """Stop at the piece or the transaction at hand, and remove all uploads."""
        self._stop.set()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self.uploads.close()

    def _uploading(self, import_id: str) -> Job:
        job = self.job(import_id)
        if job is None:
            raise AppError(
                "no_import", "There is no such upload.", "Begin one with POST /api/import.", 404
            )
        if job.state != UPLOADING:
            raise _taken()
        return job

    def _guarded(self, job: Job, work: Callable[[Job], None]) -> None:
        """Nobody waits for what is done here: what goes wrong is told in the job."""
        if self._stop.is_set():
            return
        try:
            work(job)
        except _StoppedError:
            pass
        except AppError as error:
            job.failure = error
        except Exception as error:  # of the database: its text may quote values
            logger.error("import %s failed: %s", job.id, describe(error))
            job.failure = AppError(
                "ledger_unavailable",
                "The ledger could not be read or written.",
                "What was taken until then is there. Check the database; undo it or repeat it.",
            )
        self._changed()

    def _import(self, job: Job) -> None:
        if job.cancelled.is_set():
            self._discard(job)
            return
        job.state = imports.RUNNING
        try:
            report = run(
                self._engine,
                self.uploads.tops(job.id),
                self._clock,
                identity=self._identity,
                again=job.purged,
                make_id=lambda: job.id,
                progress=self._progress(job),
                watch=self._watch(job),
                begun=lambda report: setattr(job, "report", report),
            )
        except BaseException:
            job.state = imports.INTERRUPTED
            raise
        else:
            job.report = report
            job.state = EMPTY if report.import_id is None else imports.DONE
        finally:
            self.uploads.remove(job.id)

    def _watch(self, job: Job) -> Callable[[int], None]:
        limit = INFLATION * self.uploads.limit
        read = 0

        def watch(size: int) -> None:
            nonlocal read
            read += size
            self._give_way(job)
            if read > limit:
                raise AppError(
                    "too_large",
                    f"The files hold more than {limit:,} bytes when they are decompressed.",
                    "What came before is in the ledger. Raise the setting import_bytes, or run "
                    "warmline import beside the files.",
                )

        return watch

    def _progress(self, job: Job) -> Callable[[int, int], None]:
        def progress(done: int, of: int) -> None:
            job.done, job.of = done, of
            self._give_way(job)

        return progress

    def _give_way(self, job: Job) -> None:
        """Let turns and pages go first, and end where nobody wants it to go on."""
        time.sleep(0)
        if self._stop.is_set() or (job.cancelled.is_set() and job.state == imports.RUNNING):
            raise _StoppedError

    def _undo(self, job: Job) -> None:
        if job.state in (EMPTY, UPLOADING) or self.job(job.id) is not job:
            self._discard(job)
            return
        job.state, job.failure, job.done, job.of = imports.UNDOING, None, 0, 0
        undone = imports.undo(self._engine, job.id, self._progress(job))
        job.kept = undone.kept
        job.state = imports.UNDONE

    def _discard(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.id, None)
        self.uploads.remove(job.id)

    def _give_up_idle(self) -> None:
        oldest = self._clock.now() - IDLE_SECONDS
        for job in self.jobs():
            if job.state == UPLOADING and job.touched < oldest:
                self._discard(job)

    def _forget_old(self) -> None:
        over = [
            job
            for job in self._jobs.values()
            if job.state in (imports.DONE, imports.INTERRUPTED, imports.UNDONE, EMPTY)
        ]
        for job in over[:-_REMEMBERED]:
            del self._jobs[job.id]


def _taken() -> AppError:
    return AppError("conflict", "This import takes no files any more.", "Begin anew.", 409)
