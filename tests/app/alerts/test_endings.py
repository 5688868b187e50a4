from dataclasses import replace

from sqlalchemy import Engine

from app.alerts import endings
from app.alerts.state_store import GroupState
from app.alerts.states import Cause, Memory, State, Told, Transition
from app.alerts.teller import Letter
from tests.support.alerts import Directory, make_rule, make_teller

NOW = 1_000_000
FIRES = GroupState(
    Memory(State.FIRING, since=5, started_at=5, told=Told.FIRING, told_at=5, told_times=1),
    None,
    ("id-of-ops",),
)
RULE = make_rule(group_by=["model"])
A, B = '{"model":"a"}', '{"model":"b"}'


def told(letters: list[Letter]) -> list[tuple[str, str, str]]:
    return [(letter.group_key, letter.told, letter.receiver.name) for letter in letters]


def test_an_edit_keeps_what_fires_and_begins_waiting_anew(engine: Engine) -> None:
    waits = GroupState(Memory(State.PENDING, since=5, pending_since=5))
    ended = endings.of_edit(RULE, {A: FIRES, B: waits}, NOW, make_teller(engine).dispatch())
    assert ended.states[A] == FIRES
    assert ended.states[B].memory.state is State.INACTIVE
    assert ended.transitions == [
        (B, Transition(NOW, State.PENDING, State.INACTIVE, Cause.EDITED), None)
    ]
    assert ended.letters == []


def test_a_group_of_another_grouping_ends_and_is_not_kept(engine: Engine) -> None:
    ended = endings.of_edit(RULE, {"{}": FIRES, A: FIRES}, NOW, make_teller(engine).dispatch())
    assert list(ended.states) == [A]
    assert told(ended.letters) == [("{}", "resolved", "ops")]


def test_a_pause_ends_every_alert_and_keeps_its_group(engine: Engine) -> None:
    paused = replace(RULE, enabled=False)
    ended = endings.of_edit(
        paused, {A: FIRES, B: GroupState()}, NOW, make_teller(engine).dispatch()
    )
    assert [state.memory.state for state in ended.states.values()] == [State.PAUSED] * 2
    assert (ended.states[A].memory.told, ended.states[A].told_receivers) == (None, ())
    assert told(ended.letters) == [(A, "resolved", "ops")]


def test_a_deletion_ends_every_alert(engine: Engine) -> None:
    ended = endings.of_deletion(RULE, {A: FIRES, B: FIRES}, NOW, make_teller(engine).dispatch())
    assert ended.states == {}
    assert told(ended.letters) == [(A, "resolved", "ops"), (B, "resolved", "ops")]


def test_an_alert_in_error_ends_too(engine: Engine) -> None:
    failed = replace(FIRES, memory=replace(FIRES.memory, state=State.ERROR, resume=State.FIRING))
    ended = endings.of_deletion(RULE, {A: failed}, NOW, make_teller(engine).dispatch())
    assert told(ended.letters) == [(A, "resolved", "ops")]


def test_whoever_was_never_told_hears_of_no_end(engine: Engine) -> None:
    silent = GroupState(Memory(State.FIRING, since=5, started_at=5))
    ended = endings.of_deletion(RULE, {A: silent}, NOW, make_teller(engine).dispatch())
    assert ended.letters == []


def test_a_receiver_that_is_gone_is_left_out(engine: Engine) -> None:
    dispatch = make_teller(engine, Directory("other")).dispatch()
    assert endings.of_deletion(RULE, {A: FIRES}, NOW, dispatch).letters == []
