import os
import signal

import pytest

from app.commands.ending import Ending


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_rest_whenever_it_comes(number: signal.Signals):
    before = signal.getsignal(number)
    with Ending() as ending:
        assert (False, False) == (ending.rest(0), ending.asked())
        os.kill(os.getpid(), number)
        assert (True, True) == (ending.asked(), ending.rest(3_600))
        assert before == signal.getsignal(number), "a second one ends the process as ever"
    assert before == signal.getsignal(number)
