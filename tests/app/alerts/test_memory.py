import dataclasses

import pytest

from app.alerts.states import Memory, State


def test_an_alert_fires_until_it_is_over_and_not_only_while_the_value_is_bad():
    firing = {state for state in State if Memory(state=state).fires}
    assert firing == {State.FIRING, State.RECOVERING}


def test_a_new_group_is_inactive_and_nobody_was_told_anything():
    assert Memory() == Memory(state=State.INACTIVE, told=None, absent=0)


def test_a_memory_cannot_be_changed_behind_its_back():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Memory().state = State.FIRING
