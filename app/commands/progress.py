"""Where a command's work goes and how far it is: files that appear when complete, and bars."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import click


@contextlib.contextmanager
def destination(output: str) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears under its name only when it is complete.

    What is there and is no file, a pipe or a device, is written to as it is.
    """
    with _told("Standard output" if output == "-" else output):
        if output == "-":
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        target = Path(output)
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                yield stream
            return
        target = target.resolve()  # a link stays one
        draft = target.with_name(target.name + ".part")
        try:
            with draft.open("wb") as file:
                yield file
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # a reader that has seen enough: click ends quietly
    except OSError as error:
        raise click.ClickException(f"{name} cannot be written: {error.strerror}.") from None


@contextlib.contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar of work whose length is told with its progress; none where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda _done, _of: None
        return
    with click.progressbar(length=1, label=label, file=sys.stderr) as shown:

        def progress(done: int, of: int) -> None:
            shown.length = of
            if done == of or (done - shown.pos) * 500 >= of:
                shown.update(done - shown.pos)

        yield progress


@contextlib.contextmanager
def count(output: str, length: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, where somebody looks and the output goes elsewhere.

    It takes how much is done so far. ``length`` is asked for only where the bar is seen.
    """
    if output == "-" or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=length(), label="Writing", file=sys.stderr) as shown:
        yield lambda done: shown.update(done - shown.pos)
