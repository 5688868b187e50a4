import pytest
from sqlalchemy import Engine, select, update

from app.alerts import state_store, store, tables
from app.alerts.records import Observation
from app.alerts.signals import Lack, Measure, Reading
from app.alerts.state_store import GroupState
from app.alerts.states import Memory, State, Told
from tests.support.alerts import make_rule
from tests.support.rows import START_MS

QUIET = GroupState()
FIRES = GroupState(
    Memory(State.FIRING, since=5, started_at=5, peak=0.5, told=Told.FIRING, told_at=5),
    Observation(Reading(Measure(rows=1), None, None, Lack.NOTHING_COUNTS), 5, 1, 4),
    ("receiver-1", "receiver-2"),
)


@pytest.fixture
def rule_id(engine: Engine) -> str:
    return store.create_rule(engine, make_rule(), START_MS).id


def save(
    engine: Engine, rule_id: str, before: dict[str, GroupState], after: dict[str, GroupState]
) -> None:
    with engine.begin() as connection:
        state_store.save(connection, rule_id, before, after)


def load(engine: Engine, rule_id: str) -> dict[str, GroupState]:
    with engine.connect() as connection:
        return state_store.load(connection, rule_id)


def test_states_are_read_as_they_were_written(engine: Engine, rule_id: str) -> None:
    save(engine, rule_id, {}, {"{}": FIRES, "a": QUIET})
    assert load(engine, rule_id) == {"a": QUIET, "{}": FIRES}


def test_what_was_before_becomes_what_is_after(engine: Engine, rule_id: str) -> None:
    before = {"changed": QUIET, "gone": FIRES, "kept": FIRES}
    after = {"changed": FIRES, "kept": FIRES, "new": QUIET}
    save(engine, rule_id, {}, before)
    save(engine, rule_id, before, after)
    assert load(engine, rule_id) == after


def test_the_states_of_other_rules_are_left_alone(engine: Engine, rule_id: str) -> None:
    other = store.create_rule(engine, make_rule(id="rule-2", name="b"), START_MS).id
    for one in (rule_id, other):
        save(engine, one, {}, {"{}": FIRES, "a": QUIET})
    save(engine, rule_id, {"{}": FIRES, "a": QUIET}, {"{}": QUIET})
    with engine.connect() as connection:
        assert state_store.load_all(connection) == {
            rule_id: {"{}": QUIET},
            other: {"a": QUIET, "{}": FIRES},
        }


def test_the_state_can_be_searched_for(engine: Engine, rule_id: str) -> None:
    save(engine, rule_id, {}, {"{}": FIRES})
    with engine.connect() as connection:
        query = select(tables.states.c.state, tables.states.c.since)
        assert connection.execute(query).one() == ("firing", 5)


@pytest.mark.parametrize("memory", ["", "{}", "[]", '{"state": "firing"}'])
def test_what_cannot_be_read_is_an_error_and_no_fresh_state(
    engine: Engine, rule_id: str, memory: str
) -> None:
    save(engine, rule_id, {}, {"{}": FIRES})
    with engine.begin() as connection:
        connection.execute(update(tables.states).values(memory=memory))
    with pytest.raises(ValueError):
        load(engine, rule_id)


def test_one_state_that_cannot_be_read_hides_no_other(engine: Engine, rule_id: str) -> None:
    save(engine, rule_id, {}, {"{}": FIRES, "a": QUIET})
    with engine.begin() as connection:
        broken = tables.states.c.group_key == "a"
        connection.execute(update(tables.states).where(broken).values(memory="{}"))
        assert state_store.load_all(connection) == {rule_id: {"{}": FIRES}}
