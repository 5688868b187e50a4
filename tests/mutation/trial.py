"""One mutant tried: a forked process imports the mutated module and runs tests until one fails.

Whatever the project's own is imported anew in each process; what it imports from elsewhere is there
already, so that a trial takes little more than its tests.
"""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.machinery
import io
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from types import CodeType, ModuleType

import hypothesis
import pytest

from tests.mutation.targets import ROOT, Target

PACKAGES = ("app", "engine", "tests")
MEMORY = 4 << 30
"""Bytes of address space: a mutant may be a loop that appends for ever."""


EXAMPLES = 60
"""So many random examples are drawn by a test at most."""
ASLEEP = 20
"""A trial may take so many times its processor time: it may wait for ever without using any."""


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: ``killed``, ``timeout`` or ``survived``; ``by`` is the test that failed.

    ``seconds`` are of processor time.
    """

    word: str
    by: str = ""
    seconds: float = 0.0


class _Mutated(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self._tree = tree

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._tree, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, target: Target, tree: ast.Module) -> None:
        self._target, self._tree = target, tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._target.module:
            return None
        loader = _Mutated(fullname, str(self._target.path), self._tree)
        return importlib.machinery.ModuleSpec(fullname, loader, origin=str(self._target.path))


class _Noticed:
    """Which test failed first; those with random examples, which take longer, come last."""

    test = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: hasattr(getattr(item, "obj", None), "hypothesis"))
        for item in items:
            test = getattr(item, "obj", None)
            # What the decorator sets wins over any profile, and there is no other way to bound it.
            own = getattr(test, "_hypothesis_internal_use_settings", None)
            if own is not None and own.max_examples > EXAMPLES:
                bounded = hypothesis.settings(own, max_examples=EXAMPLES)
                getattr(test, "__func__", test)._hypothesis_internal_use_settings = bounded

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid


def prepare() -> None:
    """Once, before the first trial: random tests draw the same examples in each."""
    hypothesis.settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutants")
    assert not any(name.partition(".")[0] in PACKAGES[:2] for name in sys.modules)


def unmutated(target: Target, tree: ast.Module) -> Outcome:
    """The tests as they are: they have to pass. Loads what they import from elsewhere."""
    for run in (0, 1):
        ((_, outcome, modules),) = trials(target, [(None, tree)], jobs=1, limit=600)
        if run == 0:
            for name in modules:
                with suppress(BaseException):
                    importlib.import_module(name)
            gc.collect()
            gc.freeze()
    return outcome


def trials(
    target: Target, given: Iterable[tuple[object, ast.Module]], *, jobs: int, limit: int
) -> Iterator[tuple[object, Outcome, list[str]]]:
    """Each mutant with its outcome, as they end; a few at a time.

    ``limit`` is in seconds of processor time, which are the same however busy the machine is.
    """
    waiting = iter(given)
    running: dict[int, tuple[object, int, float]] = {}
    poll = select.poll()
    try:
        while True:
            while len(running) < jobs and (one := next(waiting, None)) is not None:
                mutant, tree = one
                pid, pipe = _fork(target, tree, limit)
                running[pipe] = (mutant, pid, time.monotonic())
                poll.register(pipe, select.POLLIN | select.POLLHUP)
            if not running:
                return
            ready = {pipe for pipe, _ in poll.poll(500)}
            for pipe, (mutant, pid, began) in list(running.items()):
                if pipe in ready or time.monotonic() - began > limit * ASLEEP:
                    poll.unregister(pipe)
                    del running[pipe]
                    outcome, modules = _ended(pid, pipe, finished=pipe in ready)
                    yield mutant, outcome, modules
    finally:
        for _, pid, _ in running.values():
            _kill(pid)


def _ended(pid: int, pipe: int, *, finished: bool) -> tuple[Outcome, list[str]]:
    text = b""
    if finished:
        while chunk := os.read(pipe, 1 << 16):
            text += chunk
    os.close(pipe)
    status, seconds = _kill(pid)
    if not finished or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Outcome("timeout", "", seconds), []
    if not text:  # out of memory, a crash, an exit
        return Outcome("killed", "the process ended", seconds), []
    word, by, *modules = text.decode().split("\n")
    return Outcome(word, by, seconds), modules


def _kill(pid: int) -> tuple[int, float]:
    """How the process ended, if it had not before, and the processor time that it took."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    return status, round(used.ru_utime + used.ru_stime, 2)


def _fork(target: Target, tree: ast.Module, limit: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        with suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        os.close(writing)
        return pid, reading
    try:
        os.setpgid(0, 0)
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        answer = _run(target, tree)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)


def _run(target: Target, tree: ast.Module) -> str:
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES[:2]]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(target, tree))
    sys.dont_write_bytecode = True
    noticed = _Noticed()
    tests = [name for name in target.tests if (ROOT / name).exists()]
    plain = [
        "--assert=plain",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:cov",
    ]
    nothing = io.StringIO()
    with redirect_stdout(nothing), redirect_stderr(nothing):
        code = pytest.main(["-x", "-q", *plain, *tests], plugins=[noticed])
    word = "survived" if code == 0 else "killed"
    names = [
        name for name in sys.modules
        if name.partition(".")[0] not in PACKAGES and getattr(sys.modules[name], "__spec__", None)
    ]  # fmt: skip
    return "\n".join([word, noticed.test.replace("\n", " "), *names])
