"""Deaths at chosen points: the process kills itself there, as SIGKILL from outside would by chance.

To be installed in the process that is to die. Each point lies in the code that must lose nothing:
lines and segments of the journal, the removal of what is settled, the commit of rows.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine.default import DefaultDialect

from app.ledger.journal import segments

PLACES = ("line", "segment", "removal", "commit")
_COMMIT_SECONDS = 0.003
"""Within this time of a commit's beginning it is somewhere amid."""


@dataclass(frozen=True, slots=True)
class Death:
    """At the ``nth`` passage of a place, from 1, when this share of what happens there is done."""

    place: str
    nth: int
    share: float


def install(death: Death) -> None:
    {"line": _line, "segment": _segment, "removal": _removal, "commit": _commit}[death.place](death)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # the signal may reach another thread first


class _Os:
    """``os`` for the journal's files, but for the calls that are given."""

    def __init__(self, **calls: Callable[..., Any]) -> None:
        self.__dict__.update(calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _line(death: Death) -> None:
    count = _counter(death.nth)

    def write(file: int, data: bytes) -> int:
        if count():
            _torn(file, data, death.share)
        return os.write(file, data)

    segments.os = _Os(write=write)


def _segment(death: Death) -> None:
    """Before it is made, when it is empty, or amid its header."""
    count, fatal = _counter(death.nth), False

    def open_(path: Any, flags: int, mode: int = 0o777) -> int:
        nonlocal fatal
        if not flags & os.O_EXCL or not count():
            return os.open(path, flags, mode)
        if death.share < 1 / 3:
            _die()
        file = os.open(path, flags, mode)
        if death.share < 2 / 3:
            _die()
        fatal = True
        return file

    def write(file: int, data: bytes) -> int:
        if fatal:
            _torn(file, data, 3 * death.share - 2)
        return os.write(file, data)

    segments.os = _Os(open=open_, write=write)


def _torn(file: int, data: bytes, share: float) -> None:
    os.write(file, data[: round(share * len(data))])
    _die()


def _removal(death: Death) -> None:
    count = _counter(death.nth)

    def rmtree(path: Path, **options: Any) -> None:
        if count():
            files = sorted(path.iterdir())
            for file in files[: round(death.share * len(files))]:
                file.unlink()
            _die()
        shutil.rmtree(path, **options)

    class _Shutil:
        pass

    segments.shutil = _Shutil()
    segments.shutil.rmtree = rmtree


def _commit(death: Death) -> None:
    """Before, amid or after a commit of the ledger's writer."""
    count, commit = _counter(death.nth), DefaultDialect.do_commit

    def do_commit(dialect: Any, connection: Any) -> None:
        if threading.current_thread().name != "ledger-writer" or not count():
            commit(dialect, connection)
            return
        if death.share < 1 / 4:
            _die()
        if death.share < 3 / 4:
            wait = (2 * death.share - 1 / 2) * _COMMIT_SECONDS
            threading.Timer(wait, _die).start()
        commit(dialect, connection)
        _die()

    DefaultDialect.do_commit = do_commit


def _counter(nth: int) -> Callable[[], bool]:
    """Tells at each call whether it is the one."""
    calls = 0

    def count() -> bool:
        nonlocal calls
        calls += 1
        return calls == nth

    return count
