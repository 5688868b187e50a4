import multiprocessing

import pytest
from sqlalchemy import Engine

from app.alerts import store
from app.alerts.file_rules import sync_file_rules
from app.alerts.rules import Rule
from app.errors import SettingsError
from app.ledger.database import open_engine
from tests.support.alerts import (
    MINUTE,
    make_evaluator,
    make_rule,
    make_teller,
    messages,
    moves,
    write,
)
from tests.support.clock import START, ManualClock
from tests.support.rows import START_MS

A = make_rule(id="file-a", name="a")
B = make_rule(id="file-b", name="b")
LATER = START_MS + 5 * MINUTE


def sync(engine: Engine, *rules: Rule, now: int = START_MS) -> None:
    sync_file_rules(engine, rules, now, teller=make_teller(engine))


def test_the_database_is_what_the_file_says(engine: Engine) -> None:
    sync(engine, A, B)
    assert [stored.rule() for stored in store.all_rules(engine)] == [A, B]
    changed = make_rule(id="file-b", name="b", threshold=0.5)
    sync(engine, changed, now=LATER)
    (found,) = store.all_rules(engine)
    assert (found.rule(), found.version, found.origin) == (changed, 2, "file")


def test_a_restart_with_the_same_file_changes_nothing(engine: Engine) -> None:
    """CASES 115."""
    sync(engine, A)
    write(engine, START_MS, bad=1)
    make_evaluator(engine, ManualClock(START + 60)).tick()
    before = store.all_rules(engine)
    sync(engine, A, now=LATER)
    assert store.all_rules(engine) == before
    write(engine, START_MS + MINUTE, bad=1)
    make_evaluator(engine, ManualClock(START + 120)).tick()
    assert messages(engine) == [("firing", "ops")]


def test_a_rule_that_left_the_file_ends_its_alert(engine: Engine) -> None:
    sync(engine, A)
    write(engine, START_MS, bad=1)
    make_evaluator(engine, ManualClock(START + 60)).tick()
    sync(engine, now=LATER)
    assert [told for told, _ in messages(engine)] == ["firing", "resolved"]
    assert moves(engine)[-1] == (5, "firing", "inactive")
    assert store.all_rules(engine) == []


def test_rules_of_the_page_are_left_alone(engine: Engine) -> None:
    made = store.create_rule(engine, make_rule(id="1", name="mine"), START_MS)
    sync(engine, A)
    sync(engine, now=LATER)
    assert store.all_rules(engine) == [made]


def test_a_name_of_the_page_is_refused_with_what_to_rename(engine: Engine) -> None:
    store.create_rule(engine, make_rule(id="1", name="a"), START_MS)
    with pytest.raises(SettingsError, match=r"alerts\.rules\.a.* a, which") as caught:
        sync(engine, B, A)
    assert caught.value.hint is not None
    assert [stored.name for stored in store.all_rules(engine)] == ["a"]


def test_a_name_given_twice_is_refused(engine: Engine) -> None:
    with pytest.raises(SettingsError, match="2 rules are named a"):
        sync(engine, A, make_rule(id="file-b", name="a"))


def test_two_rules_can_exchange_their_names(engine: Engine) -> None:
    sync(engine, A, B)
    sync(engine, make_rule(id="file-a", name="b"), make_rule(id="file-b", name="a"), now=LATER)
    assert [(one.name, one.id) for one in store.all_rules(engine)] == [
        ("a", "file-b"),
        ("b", "file-a"),
    ]


def test_a_renamed_rule_keeps_its_alert(engine: Engine) -> None:
    sync(engine, A)
    write(engine, START_MS, bad=1)
    make_evaluator(engine, ManualClock(START + 60)).tick()
    sync(engine, make_rule(id="file-a", name="better"), now=START_MS + 90_000)
    write(engine, START_MS + MINUTE, bad=1)
    make_evaluator(engine, ManualClock(START + 120)).tick()
    assert messages(engine) == [("firing", "ops")]


def test_several_processes_may_start_at_once(engine: Engine, database: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(3) as pool:
        pool.map(_start, [database] * 3)
    assert [(one.rule(), one.version) for one in store.all_rules(engine)] == [(A, 1), (B, 1)]


def _start(database: str) -> None:
    engine = open_engine(database)
    sync(engine, A, B)
    engine.dispose()
