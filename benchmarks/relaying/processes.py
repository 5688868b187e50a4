"""Processes on a core of their own, and what they used: time of all their threads, memory."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

_PROC = Path("/proc")


_THERE = sorted(os.sched_getaffinity(0))
"""Read before this process keeps to one of them: from then on it sees no other."""


def cores() -> tuple[set[int], set[int]]:
    """The core of the gateways, and that of the load generator and the upstream."""
    return {_THERE[0]}, {_THERE[-1]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process:
    """A process with its children."""

    def __init__(
        self,
        command: Sequence[str],
        core: set[int],
        log: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        def pin() -> None:
            os.sched_setaffinity(0, core)

        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
                preexec_fn=pin,  # noqa: PLW1509 - this process has one thread
            )

    def wait_for(self, port: int, within: float = 60.0) -> None:
        """Until it listens. Raises ``TimeoutError``."""
        end = time.monotonic() + within
        while time.monotonic() < end and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        tail = self.log.read_text(errors="replace")[-2000:]
        raise TimeoutError(f"nothing listens on {port}:\n{tail}")

    def cpu_seconds(self) -> float:
        """Of all threads that live, its children's included."""
        return sum(_thread_seconds(pid) for pid in self._pids())

    def resident(self) -> float:
        """Megabytes, what is shared with others counted in part."""
        return sum(_resident(pid) for pid in self._pids())

    def _pids(self) -> Iterator[int]:
        waiting = [self._process.pid]
        while waiting:
            pid = waiting.pop()
            yield pid
            for children in _PROC.glob(f"{pid}/task/*/children"):
                waiting += map(int, _read(children).split())

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has just ended
        return ""


def _thread_seconds(pid: int) -> float:
    ran = [_read(path).split() for path in _PROC.glob(f"{pid}/task/*/schedstat")]
    if ran:
        return sum(int(fields[0]) for fields in ran if fields) / 1e9
    fields = _read(_PROC / f"{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _resident(pid: int) -> float:
    for line in _read(_PROC / f"{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def during(process: Process | None, work: Callable[[], None]) -> float:
    """Seconds of the process's time that ``work`` took."""
    if process is None:
        work()
        return 0.0
    before = process.cpu_seconds()
    work()
    return process.cpu_seconds() - before
