"""Steps, and gates that a test opens."""

from app.demo.provider.actions import Gate


def test_a_gate_wakes_each_waiter_once_and_later_ones_at_once():
    gate, woken = Gate(), []
    gate.on_open(lambda: woken.append("early"))
    assert (gate.opened, woken) == (False, [])
    gate.open()
    gate.open()
    gate.on_open(lambda: woken.append("late"))
    assert (gate.opened, woken) == (True, ["early", "late"])
