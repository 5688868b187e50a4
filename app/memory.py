"""Memory for large bodies, where what the system gives by itself costs more than receiving them."""

from __future__ import annotations

import contextlib
import ctypes

_MEBIBYTE = 1024 * 1024
# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8

_make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)(
    ("PyBytes_FromStringAndSize", ctypes.pythonapi)
)


def unwritten(size: int) -> bytes:
    """Bytes of which nobody knows what is in them, for who writes all of them.

    ``bytes(size)`` would write zeros, which is a tenth of what receiving a body costs.
    """
    made: bytes = _make(None, size)
    return made


def reuse_freed() -> None:
    """Let memory of large bodies be used again, instead of being had anew from the system.

    A transcript grows with each turn, so that glibc would map each one anew, for as long as nothing
    larger was ever freed: 2,500 page faults for 10 MB. These bounds are those that it comes to by
    itself once 32 MB were freed. Threads share two arenas, since what one of them has freed is of
    no use to the others. Other C libraries have no such bounds; Windows has no library without a
    name.
    """
    with contextlib.suppress(AttributeError, TypeError):
        set_bound = ctypes.CDLL(None).mallopt
        set_bound(_M_MMAP_THRESHOLD, 32 * _MEBIBYTE)
        set_bound(_M_TRIM_THRESHOLD, 64 * _MEBIBYTE)
        set_bound(_M_ARENA_MAX, 2)
