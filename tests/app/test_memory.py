import ctypes
import io
import platform
import resource
import subprocess
import sys

import pytest

from app.memory import reuse_freed, unwritten


def test_unwritten_bytes_are_of_their_size_and_belong_to_who_writes_them():
    memory = io.BytesIO(unwritten(100_000))
    with memory.getbuffer() as room:
        room[:] = b"x" * 100_000
    assert b"x" * 100_000 == memory.getvalue()
    assert b"" == unwritten(0)


_GROW = """
import resource
from app.memory import reuse_freed
reuse_freed()
kept = b""
for n in range(12):
    if n == 6:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = b"x" * (10_000_000 + 1_000 * n)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the bounds are glibc's")
def test_what_grows_by_a_little_each_time_is_not_had_from_the_system_each_time():
    command = [sys.executable, "-c", _GROW]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pages = 6 * 10_000_000 // resource.getpagesize()
    assert int(said) < pages / 10


def test_another_c_library_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    reuse_freed()


def test_a_system_whose_programs_are_no_libraries_is_left_as_it_is(monkeypatch):
    def of_windows(name):
        raise TypeError(f"{name} is no path")

    monkeypatch.setattr(ctypes, "CDLL", of_windows)
    reuse_freed()
