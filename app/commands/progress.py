"""Where a command's work goes and how far it is: files that appear when complete, and bars."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import click


@contextlib.contextmanager
def destination(output: str) -> Iterator[IO[bytes]]:
    """Standard output, or a file that appears under its name only when it is complete."""
    if output == "-":
        stream = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    draft = Path(output + ".part")
    try:
        with draft.open("wb") as file:
            yield file
        os.replace(draft, output)  # noqa: PTH105  (it replaces on every platform)
    except OSError as error:
        raise click.ClickException(
            f"{output} cannot be written ({type(error).__name__})."
        ) from None
    finally:
        draft.unlink(missing_ok=True)


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
