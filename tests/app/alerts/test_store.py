import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.alerts import state_store, store, tables
from app.alerts.file_rules import sync_file_rules
from app.alerts.rules import BadRuleError, Rule
from app.alerts.states import State
from app.errors import AppError
from tests.support.alerts import (
    MINUTE,
    Directory,
    bodies,
    make_evaluator,
    make_rule,
    make_teller,
    messages,
    moves,
    state_of,
    write,
)
from tests.support.clock import START, ManualClock
from tests.support.rows import START_MS

LATER = START_MS + 90_000


def refused(code: str, change: Callable[[], Any]) -> AppError:
    with pytest.raises(AppError) as caught:
        change()
    assert caught.value.code == code
    return caught.value


def firing(engine: Engine, **overrides: Any) -> Rule:
    """A rule that fires since a minute after ``START_MS``, and ``ops`` was told."""
    rule = make_rule(**overrides)
    store.create_rule(engine, rule, START_MS)
    write(engine, START_MS, bad=1)
    make_evaluator(engine, ManualClock(START + 60)).tick()
    return rule


def states_of(engine: Engine, rule: Rule) -> dict[str, State]:
    with engine.connect() as connection:
        return {
            key: state.memory.state for key, state in state_store.load(connection, rule.id).items()
        }


def test_a_rule_is_read_as_it_was_made(engine: Engine) -> None:
    rule = make_rule(description="What for", labels={"team": "é"}, group_by=["client"])
    made = store.create_rule(engine, rule, START_MS)
    assert store.get_rule(engine, rule.id) == made
    assert made.rule() == rule
    assert (made.version, made.origin, made.failure) == (1, "page", None)


def test_a_new_rule_is_not_evaluated_for_the_time_before_it(engine: Engine) -> None:
    write(engine, START_MS - 2 * MINUTE, bad=1)
    made = store.create_rule(engine, make_rule(), START_MS)
    assert made.evaluated_until == START_MS
    assert make_evaluator(engine, ManualClock(START)).tick() == 0


def test_rules_are_listed_by_name(engine: Engine) -> None:
    for id_, name in (("1", "b"), ("2", "a")):
        store.create_rule(engine, make_rule(id=id_, name=name), START_MS)
    assert [stored.name for stored in store.all_rules(engine)] == ["a", "b"]


def test_no_two_rules_have_one_name(engine: Engine) -> None:
    store.create_rule(engine, make_rule(id="1", name="a"), START_MS)
    error = refused(
        "name_taken", lambda: store.create_rule(engine, make_rule(id="2", name="a"), START_MS)
    )
    assert error.status == 409
    store.create_rule(engine, make_rule(id="2", name="b"), START_MS)
    renamed = make_rule(id="2", name="a")
    teller = make_teller(engine)
    refused("name_taken", lambda: store.update_rule(engine, renamed, LATER, teller=teller))
    assert [stored.name for stored in store.all_rules(engine)] == ["a", "b"]


def test_there_are_no_more_than_200_of_the_page(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is looked at every second. Those of the settings file are its owner's business."""
    assert store.MOST == 200
    monkeypatch.setattr(store, "MOST", 1)
    sync_file_rules(engine, [make_rule(id="file-a", name="a")], 0, teller=make_teller(engine))
    store.create_rule(engine, make_rule(id="1", name="1"), START_MS)
    second = make_rule(id="2", name="2")
    refused("too_many", lambda: store.create_rule(engine, second, START_MS))
    assert ["1", "a"] == [rule.name for rule in store.all_rules(engine)]


def test_what_is_not_there_can_be_neither_read_nor_changed(engine: Engine) -> None:
    teller = make_teller(engine)
    for change in (
        lambda: store.get_rule(engine, "none"),
        lambda: store.update_rule(engine, make_rule(id="none"), LATER, teller=teller),
        lambda: store.set_enabled(engine, "none", True, LATER, teller=teller),
        lambda: store.delete_rule(engine, "none", LATER, teller=teller),
    ):
        assert refused("not_found", change).status == 404


def test_an_edit_of_what_someone_else_changed_is_refused(engine: Engine) -> None:
    store.create_rule(engine, make_rule(), START_MS)
    teller = make_teller(engine)
    first = store.update_rule(engine, make_rule(threshold=0.3), LATER, teller=teller, version=1)
    assert first.version == 2
    late = make_rule(threshold=0.4)
    refused("conflict", lambda: store.update_rule(engine, late, LATER, teller=teller, version=1))
    assert store.get_rule(engine, late.id).rule().threshold == 0.3


def test_an_edit_that_changes_nothing_changes_nothing(engine: Engine) -> None:
    made = store.create_rule(engine, make_rule(), START_MS)
    assert store.update_rule(engine, make_rule(), LATER, teller=make_teller(engine)) == made
    assert store.get_rule(engine, made.id) == made


def test_the_same_rule_in_other_words_is_no_change(engine: Engine) -> None:
    """Such as one written by a version that knew fewer fields."""
    store.create_rule(engine, make_rule(), START_MS)
    shorter = json.loads(store.definition_of(make_rule()))
    del shorter["owner"]
    with engine.begin() as connection:
        connection.execute(tables.rules.update().values(definition=json.dumps(shorter)))
    again = store.update_rule(engine, make_rule(), LATER, teller=make_teller(engine))
    assert again.version == 1


def test_an_edit_begins_the_waiting_anew(engine: Engine) -> None:
    rule = firing(engine, pending_for="5m")
    assert states_of(engine, rule) == {"{}": State.PENDING}
    edited = make_rule(pending_for="5m", threshold=0.1)
    store.update_rule(engine, edited, LATER, teller=make_teller(engine))
    assert states_of(engine, rule) == {"{}": State.INACTIVE}
    assert moves(engine) == [(1, "inactive", "pending"), (1, "pending", "inactive")]
    assert messages(engine) == []


def test_what_fires_goes_on_firing_through_an_edit(engine: Engine) -> None:
    rule = firing(engine)
    store.update_rule(engine, make_rule(threshold=0.1), LATER, teller=make_teller(engine))
    assert states_of(engine, rule) == {"{}": State.FIRING}
    write(engine, START_MS + MINUTE, bad=1)
    make_evaluator(engine, ManualClock(START + 120)).tick()
    assert messages(engine) == [("firing", "ops")]


def test_what_was_read_of_another_signal_is_forgotten(engine: Engine) -> None:
    rule = firing(engine)
    store.update_rule(engine, make_rule(threshold=0.1), LATER, teller=make_teller(engine))
    assert state_of(engine, rule).memory.peak == 1.0
    assert state_of(engine, rule).observation is not None
    proven = make_rule(confidence="wilson")
    store.update_rule(engine, proven, LATER, teller=make_teller(engine))
    assert state_of(engine, rule).memory.peak == 1.0
    assert state_of(engine, rule).observation is None
    slow = make_rule(signal="ttft_p95", threshold=9_000)
    store.update_rule(engine, slow, LATER, teller=make_teller(engine))
    assert state_of(engine, rule).memory.peak is None
    assert state_of(engine, rule).memory.state is State.FIRING


def test_alerts_of_groups_that_are_no_more_end_and_are_told_resolved(engine: Engine) -> None:
    rule = firing(engine)
    store.update_rule(engine, make_rule(group_by=["model"]), LATER, teller=make_teller(engine))
    assert states_of(engine, rule) == {}
    assert messages(engine) == [("firing", "ops"), ("resolved", "ops")]
    assert bodies(engine)[1]["cause"] == "edited"
    assert moves(engine)[1] == (1, "firing", "inactive")


def test_pausing_a_firing_rule_tells_that_it_ended_and_why(engine: Engine) -> None:
    rule = firing(engine)
    paused = store.set_enabled(engine, rule.id, False, LATER, teller=make_teller(engine))
    assert (paused.enabled, paused.rule().enabled) == (False, False)
    assert states_of(engine, rule) == {"{}": State.PAUSED}
    assert messages(engine) == [("firing", "ops"), ("resolved", "ops")]
    last = bodies(engine)[1]
    assert ("paused", None) == (last["cause"], last["value"])
    assert last["dedupe_key"] == bodies(engine)[0]["dedupe_key"]
    assert last["alert_id"] == bodies(engine)[0]["alert_id"]


def test_an_edit_can_pause_as_well(engine: Engine) -> None:
    rule = firing(engine)
    store.update_rule(engine, make_rule(enabled=False), LATER, teller=make_teller(engine))
    assert states_of(engine, rule) == {"{}": State.PAUSED}
    assert [told for told, _ in messages(engine)] == ["firing", "resolved"]


def test_what_happened_while_a_rule_was_paused_is_never_evaluated(engine: Engine) -> None:
    rule = firing(engine)
    teller = make_teller(engine)
    store.set_enabled(engine, rule.id, False, LATER, teller=teller)
    for number in range(1, 9):
        write(engine, START_MS + number * MINUTE, bad=1)
    resumed = store.set_enabled(engine, rule.id, True, START_MS + 10 * MINUTE, teller=teller)
    assert resumed.evaluated_until == START_MS + 10 * MINUTE
    assert make_evaluator(engine, ManualClock(START + 660)).tick() == 1
    assert [told for told, _ in messages(engine)] == ["firing", "resolved"]
    assert moves(engine)[-2:] == [(11, "paused", "inactive"), (11, "inactive", "no_data")]


def test_pausing_a_paused_rule_changes_nothing(engine: Engine) -> None:
    rule = firing(engine)
    teller = make_teller(engine)
    first = store.set_enabled(engine, rule.id, False, LATER, teller=teller)
    assert store.set_enabled(engine, rule.id, False, LATER + 1, teller=teller) == first


def test_deleting_a_firing_rule_tells_that_it_ended_and_keeps_its_events(engine: Engine) -> None:
    rule = firing(engine)
    store.delete_rule(engine, rule.id, LATER, teller=make_teller(engine))
    assert messages(engine) == [("firing", "ops"), ("resolved", "ops")]
    assert bodies(engine)[1]["cause"] == "deleted"
    assert moves(engine) == [(1, "inactive", "firing"), (1, "firing", "inactive")]
    assert store.all_rules(engine) == []
    assert states_of(engine, rule) == {}


def test_deleting_a_rule_that_does_not_fire_tells_nobody(engine: Engine) -> None:
    rule = make_rule()
    store.create_rule(engine, rule, START_MS)
    store.delete_rule(engine, rule.id, LATER, teller=make_teller(engine))
    assert messages(engine) == []


def test_deleting_is_told_through_a_silence(engine: Engine) -> None:
    """Nobody would be told later."""
    rule = firing(engine)
    with engine.begin() as connection:
        connection.execute(
            tables.silences.insert().values(
                id="s",
                rule_id=None,
                matchers="{}",
                starts_at=START_MS,
                ends_at=START_MS + 60 * MINUTE,
                comment="",
                author="",
                created_at=START_MS,
            )
        )
    store.delete_rule(engine, rule.id, LATER, teller=make_teller(engine))
    assert [told for told, _ in messages(engine)] == ["firing", "resolved"]


def test_a_rule_that_cannot_be_read_can_be_deleted(engine: Engine) -> None:
    rule = firing(engine)
    with engine.begin() as connection:
        connection.execute(tables.rules.update().values(definition="{}"))
    with pytest.raises(BadRuleError):
        store.get_rule(engine, rule.id).rule()
    store.delete_rule(engine, rule.id, LATER, teller=make_teller(engine))
    assert store.all_rules(engine) == []
    with engine.connect() as connection:
        assert connection.execute(select(tables.states)).all() == []


def test_a_rule_that_cannot_be_read_can_be_corrected(engine: Engine) -> None:
    rule = firing(engine)
    with engine.begin() as connection:
        connection.execute(tables.rules.update().values(definition="{}", failure="BadRuleError"))
    corrected = store.update_rule(engine, rule, LATER, teller=make_teller(engine))
    assert (corrected.rule(), corrected.failure) == (rule, None)
    assert states_of(engine, rule) == {"{}": State.FIRING}


def test_states_that_cannot_be_read_keep_nobody_from_editing_the_rule(engine: Engine) -> None:
    rule = firing(engine)
    with engine.begin() as connection:
        connection.execute(tables.states.update().values(memory="{}"))
    edited = make_rule(threshold=0.3)
    assert store.update_rule(engine, edited, LATER, teller=make_teller(engine)).rule() == edited
    store.delete_rule(engine, rule.id, LATER, teller=make_teller(engine))
    assert store.all_rules(engine) == []


def test_rules_of_the_file_are_read_only(engine: Engine) -> None:
    rule = make_rule(id="file-a")
    with engine.begin() as connection:
        store.insert_rule(connection, rule, store.FILE, START_MS)
    teller = make_teller(engine)
    for change in (
        lambda: store.update_rule(engine, make_rule(id="file-a", owner="me"), LATER, teller=teller),
        lambda: store.set_enabled(engine, rule.id, False, LATER, teller=teller),
        lambda: store.delete_rule(engine, rule.id, LATER, teller=teller),
    ):
        assert refused("read_only", change).status == 409


def test_nothing_is_told_where_the_change_fails(engine: Engine) -> None:
    """A message is in the outbox if, and only if, what it tells has happened."""
    rule = firing(engine)
    store.create_rule(engine, make_rule(id="2", name="b"), START_MS)
    clash = make_rule(name="b", group_by=["model"])
    teller = make_teller(engine, Directory("ops"))
    refused("name_taken", lambda: store.update_rule(engine, clash, LATER, teller=teller))
    assert messages(engine) == [("firing", "ops")]
    assert states_of(engine, rule) == {"{}": State.FIRING}
