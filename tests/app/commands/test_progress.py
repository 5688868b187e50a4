import errno
import io
import os
import sys
from pathlib import Path

import click
import pytest

from app.commands.progress import count, destination
from tests.support.commands import run


def test_a_file_that_cannot_be_written_is_told(ledger):
    result = run("export", "--database", "ledger.sqlite3", "--output", str(Path("none") / "t.csv"))
    assert (1, True) == (result.exit_code, "cannot be written" in result.output)


def seen(monkeypatch, output: str) -> tuple[list[int], str]:
    """How often the length was asked for, and what a person saw on the way to five of ten."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    asked = []
    with count(output, lambda: asked.append(10) or 10) as progress:
        progress(2)
        progress(5)
    return asked, terminal.getvalue()


def test_a_person_sees_how_much_is_written(monkeypatch):
    asked, told = seen(monkeypatch, "turns.csv")
    assert [10] == asked
    assert "Writing" in told
    assert " 50%" in told


def test_nothing_is_counted_where_nobody_looks(monkeypatch):
    assert ([], "") == seen(monkeypatch, "-")
    monkeypatch.undo()
    with count("turns.csv", lambda: pytest.fail("nobody looks")) as progress:
        progress(1)


def test_what_is_no_file_is_written_to_and_stays_what_it_is(tmp_path: Path):
    # A pipe that somebody reads, or a device: a file in its place would never reach the reader.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with destination(str(pipe)) as file:
        file.write(b"a,b\r\n")
    assert (b"a,b\r\n", True) == (os.read(reader, 100), pipe.is_fifo())
    os.close(reader)
    assert ["pipe"] == [path.name for path in tmp_path.iterdir()]


def test_a_link_leads_to_the_file_that_is_written(tmp_path: Path):
    link = tmp_path / "link.csv"
    link.symlink_to("turns.csv")
    with destination(str(link)) as file:
        file.write(b"a,b\r\n")
    assert (b"a,b\r\n", True) == ((tmp_path / "turns.csv").read_bytes(), link.is_symlink())


def test_a_full_disk_behind_standard_output_is_told_in_one_line(monkeypatch):
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, _data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    out = io.TextIOWrapper(io.BufferedWriter(Full(), 4))
    monkeypatch.setattr(sys, "stdout", out)
    said = "Standard output cannot be written: No space left on device"
    with pytest.raises(click.ClickException, match=said), destination("-") as file:
        file.write(b"much more than four")
    out.buffer.raw.close()
