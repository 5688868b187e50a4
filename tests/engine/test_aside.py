"""Large bodies are worked through in a thread, small ones at once."""

import threading

import pytest

from engine.aside import LARGE, aside


@pytest.mark.parametrize(("size", "away"), [(0, False), (LARGE - 1, False), (LARGE, True)])
async def test_only_large_work_leaves_the_loop(size, away):
    here = threading.get_ident()
    assert away is (await aside(size, threading.get_ident) != here)


@pytest.mark.parametrize("size", [0, LARGE])
async def test_an_error_is_raised_where_it_is_waited_for(size):
    with pytest.raises(ZeroDivisionError):
        await aside(size, lambda: 1 // 0)
