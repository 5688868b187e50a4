"""What an evaluation tells, and whom (``app.alerts.evaluator``, ``app.alerts.teller``)."""

import pytest
from sqlalchemy import Engine, select

from app.alerts import evaluator, event_store, silences, state_store, store, tables
from app.ledger.rows import iso
from tests.support.alerts import (
    MINUTE,
    Directory,
    Known,
    begin,
    bodies,
    make_evaluator,
    make_rule,
    make_teller,
    messages,
    minute,
    moves,
    state_of,
    write,
)
from tests.support.rows import START_MS


@pytest.fixture(scope="module")
def backend() -> str:
    """What this asks of the database, test_evaluator asks of both kinds."""
    return "sqlite"


def test_after_a_stop_people_are_reminded_once_and_not_of_every_hour_that_passed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "CHUNK", 7)
    begin(engine, renotify_every="2m", no_data="keep_last")
    write(engine, START_MS, bad=1)
    make_evaluator(engine, minute(1)).tick()
    make_evaluator(engine, minute(30)).tick()
    assert [(0, iso(START_MS + MINUTE)), (1, iso(START_MS + 30 * MINUTE))] == [
        (body["repeat"], body["window"]["to"]) for body in bodies(engine)
    ]


def test_groups_fire_and_resolve_each_for_itself(engine: Engine) -> None:
    begin(engine, group_by=["model"])
    write(engine, START_MS, bad=1, model="a")
    write(engine, START_MS, good=5, model="b")
    write(engine, START_MS + MINUTE, bad=1, model="b")
    write(engine, START_MS + MINUTE, good=1, model="a")
    make_evaluator(engine, minute(1)).tick()
    make_evaluator(engine, minute(2)).tick()
    assert [(body["group"]["model"], body["state"]) for body in bodies(engine)] == [
        ("a", "firing"),
        ("a", "resolved"),
        ("b", "firing"),
    ]


def test_a_group_that_is_gone_is_forgotten(engine: Engine) -> None:
    rule = begin(engine, group_by=["model"])
    write(engine, START_MS, bad=1, model="a")
    make_evaluator(engine, minute(4)).tick()
    assert [told for told, _ in messages(engine)] == ["firing", "resolved"]
    with engine.connect() as connection:
        assert state_store.load(connection, rule.id) == {}


def test_a_silence_keeps_people_in_peace_and_what_holds_after_it_is_told_once(
    engine: Engine,
) -> None:
    rule = begin(engine)
    for number in range(6):
        write(engine, START_MS + number * MINUTE, bad=1)
    silences.create(
        engine,
        id="silence-1",
        rule_id=rule.id,
        matchers={},
        ends_at=START_MS + 3 * MINUTE,
        now=START_MS,
    )
    make_evaluator(engine, minute(2)).tick()
    assert messages(engine) == []
    assert moves(engine) == [(1, "inactive", "firing")]
    make_evaluator(engine, minute(5)).tick()
    assert messages(engine) == [("firing", "ops")]


def test_what_began_and_ended_under_a_silence_is_never_told_however_late(engine: Engine) -> None:
    """A silence that is over by now still counts for the instants that are caught up."""
    begin(engine)
    write(engine, START_MS, bad=1)
    write(engine, START_MS + MINUTE, good=1)
    silences.create(
        engine,
        id="silence-1",
        rule_id=None,
        matchers={},
        ends_at=START_MS + 3 * MINUTE,
        now=START_MS,
    )
    make_evaluator(engine, minute(8)).tick()
    assert moves(engine)[:2] == [(1, "inactive", "firing"), (2, "firing", "inactive")]
    assert messages(engine) == []


def test_a_group_that_went_during_a_silence_is_told_of_with_its_last_window(
    engine: Engine,
) -> None:
    rule = begin(engine, group_by=["model"])
    write(engine, START_MS, bad=1, model="a")
    make_evaluator(engine, minute(1)).tick()
    silences.create(
        engine,
        id="silence-1",
        rule_id=rule.id,
        matchers={"model": "a"},
        ends_at=START_MS + 10 * MINUTE,
        now=START_MS + MINUTE,
    )
    make_evaluator(engine, minute(8)).tick()
    last = state_of(engine, rule, model="a").observation
    assert last is not None
    assert START_MS + MINUTE < last.at < START_MS + 8 * MINUTE
    make_evaluator(engine, minute(10)).tick()
    firing, resolved = bodies(engine)
    assert ("firing", 1.0) == (firing["state"], firing["value"])
    assert ("resolved", None) == (resolved["state"], resolved["rows"])
    assert resolved["window"] == {"from": iso(last.window_start), "to": iso(last.window_end)}
    with engine.connect() as connection:
        assert state_store.load(connection, rule.id) == {}


def test_the_end_is_told_to_those_who_were_told_of_the_beginning(engine: Engine) -> None:
    rule = begin(engine, receivers=["ops", "night"])
    write(engine, START_MS, bad=1)
    write(engine, START_MS + MINUTE, good=1)
    receivers = Directory("ops", "night", "new")
    make_evaluator(engine, minute(1), receivers).tick()
    edited = make_rule(receivers=["new"])
    store.update_rule(engine, edited, START_MS + MINUTE, teller=make_teller(engine, receivers))
    receivers.known = receivers.known[1:]
    make_evaluator(engine, minute(2), receivers).tick()
    assert messages(engine) == [("firing", "ops"), ("firing", "night"), ("resolved", "night")]
    assert state_of(engine, rule).told_receivers == ()


def test_a_receiver_that_joins_while_it_fires_is_told_once_and_hears_of_the_end(
    engine: Engine,
) -> None:
    rule = begin(engine)
    for number in range(3):
        write(engine, START_MS + number * MINUTE, bad=1)
    write(engine, START_MS + 3 * MINUTE, good=1)
    receivers = Directory("ops", "new")
    make_evaluator(engine, minute(1), receivers).tick()
    edited = make_rule(receivers=["ops", "new"])
    store.update_rule(engine, edited, START_MS + MINUTE, teller=make_teller(engine, receivers))
    make_evaluator(engine, minute(2), receivers).tick()
    make_evaluator(engine, minute(3), receivers).tick()
    assert messages(engine) == [("firing", "ops"), ("firing", "new")]
    assert [body["repeat"] for body in bodies(engine)] == [0, 0]
    make_evaluator(engine, minute(4), receivers).tick()
    assert messages(engine)[2:] == [("resolved", "new"), ("resolved", "ops")]
    assert state_of(engine, rule).told_receivers == ()


def test_a_receiver_that_joins_during_a_silence_is_told_after_it(engine: Engine) -> None:
    rule = begin(engine)
    for number in range(4):
        write(engine, START_MS + number * MINUTE, bad=1)
    receivers = Directory("ops", "new")
    make_evaluator(engine, minute(1), receivers).tick()
    silences.create(
        engine,
        id="silence-1",
        rule_id=rule.id,
        matchers={},
        ends_at=START_MS + 3 * MINUTE,
        now=START_MS + MINUTE,
    )
    edited = make_rule(receivers=["ops", "new"])
    store.update_rule(engine, edited, START_MS + MINUTE, teller=make_teller(engine, receivers))
    make_evaluator(engine, minute(2), receivers).tick()
    assert messages(engine) == [("firing", "ops")]
    make_evaluator(engine, minute(4), receivers).tick()
    assert sorted(messages(engine)[1:]) == [("firing", "new"), ("firing", "ops")]


def test_a_message_to_a_disabled_receiver_is_kept_and_dead(engine: Engine) -> None:
    begin(engine)
    write(engine, START_MS, bad=1)
    receivers = Directory()
    receivers.known = [Known("ops", disabled="gone")]
    make_evaluator(engine, minute(1), receivers).tick()
    with engine.connect() as connection:
        query = select(tables.deliveries.c.state, tables.deliveries.c.outcome)
        assert connection.execute(query).all() == [("dead", "gone")]


def test_a_receiver_that_is_enabled_while_it_fires_is_told_then_and_of_the_end(
    engine: Engine,
) -> None:
    begin(engine)
    for number in range(4):
        write(engine, START_MS + number * MINUTE, bad=1)
    write(engine, START_MS + 4 * MINUTE, good=1)
    receivers = Directory()
    told = []
    for number in range(1, 6):
        receivers.known = [Known("ops", disabled="gone" if number < 3 else None)]
        make_evaluator(engine, minute(number), receivers).tick()
        told.append([what for what, _ in messages(engine)])
    dead = ["firing"]
    assert [dead, dead, [*dead, "firing"], [*dead, "firing"]] == told[:4]
    assert [*dead, "firing", "resolved"] == told[4]


def test_a_message_says_what_was_read(engine: Engine) -> None:
    begin(engine)
    write(engine, START_MS, good=1, bad=3)
    make_evaluator(engine, minute(1)).tick()
    (body,) = bodies(engine)
    assert (0.75, 3, 4) == (body["value"], body["numerator"], body["denominator"])
    assert ("inactive", "firing") == (body["previous_state"], body["state"])
    assert body["cause"] == "crossed"
    assert len(body["sample_request_ids"]) == 3


def test_those_who_send_are_told_that_something_waits(engine: Engine) -> None:
    begin(engine)
    write(engine, START_MS, bad=1)
    queued: list[int] = []
    live = make_evaluator(engine, minute(1), on_queued=lambda: queued.append(len(messages(engine))))
    live.tick()
    assert queued == [1]
    live.tick()
    assert queued == [1]


def test_states_and_messages_are_written_together_or_not_at_all(engine: Engine) -> None:
    """What cannot be written is a failed evaluation, which the next one makes good."""
    rule = begin(engine)
    write(engine, START_MS, bad=1)
    write(engine, START_MS + MINUTE, bad=1)

    def refuse(_prefix: str) -> str:
        raise RuntimeError

    make_evaluator(engine, minute(1), new_id=refuse).tick()
    assert (messages(engine), moves(engine)) == ([], [(1, "inactive", "error")])
    assert (store.get_rule(engine, rule.id).failure or "").startswith("RuntimeError")
    make_evaluator(engine, minute(2)).tick()
    assert messages(engine) == [("firing", "ops")]
    assert moves(engine)[1:] == [(2, "error", "inactive"), (2, "inactive", "firing")]


def test_events_hold_the_reading_and_its_window(engine: Engine) -> None:
    begin(engine)
    write(engine, START_MS, bad=1)
    make_evaluator(engine, minute(1)).tick()
    (found,) = event_store.page(engine).events
    assert found.observation is not None
    assert found.observation.reading.value == 1.0
    assert found.observation.window_end == found.at == START_MS + MINUTE
