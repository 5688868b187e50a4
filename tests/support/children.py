"""Child processes of a test that end when it does, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


class Process:
    """A process with its log, that ends with this one."""

    def __init__(
        self,
        command: list[str],
        log: Path,
        *,
        env: dict[str, str] | None = None,
        end: signal.Signals = signal.SIGKILL,
        **more: object,
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self.popen = subprocess.Popen(
                [*_leash(end), *command],
                stderr=output,
                env={**os.environ, **(env or {})},
                **{"stdin": subprocess.DEVNULL, "stdout": output, **more},  # type: ignore[call-overload]
            )

    def wait_for(self, answers: Callable[[], bool], seconds: float) -> None:
        """Until it answers. Raises ``AssertionError`` with its log where it ends, or takes longer."""
        limit = time.monotonic() + seconds
        while not answers():
            if self.popen.poll() is not None or time.monotonic() > limit:
                raise AssertionError(f"{self.log.name}: it did not start\n{self.log.read_text()}")
            time.sleep(0.02)  # another process: nobody tells when it listens

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(how)
        try:
            self.popen.wait(40)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            raise
        finally:
            for pipe in (self.popen.stdin, self.popen.stdout):
                if pipe is not None:
                    pipe.close()


def _leash(how: signal.Signals) -> list[str]:
    """In front of a command: the signal that it gets when this process is gone."""
    found = shutil.which("setpriv")
    return [] if found is None else [found, "--pdeathsig", how.name.removeprefix("SIG"), "--"]
