import pytest
from sqlalchemy import Engine

from app.alerts import event_store
from app.alerts.event_store import Event
from app.alerts.records import Observation
from app.alerts.signals import Measure, Reading
from app.alerts.states import Cause, State, Transition
from app.errors import AppError
from tests.support.alerts import make_rule

FIRES = Transition(10, State.INACTIVE, State.FIRING, Cause.CROSSED)
SEEN = Observation(Reading(Measure(rows=4, part=1, whole=4, turns=4), 0.25, 0.2, None), 10, 0, 9)


def add(
    engine: Engine, at: int, *, rule_id: str = "rule-1", observation: Observation | None = None
) -> None:
    transition = Transition(at, State.INACTIVE, State.FIRING, Cause.CROSSED)
    with engine.begin() as connection:
        event_store.add(connection, rule_id, "Mismatches", [("{}", transition, observation)])


def test_an_event_is_read_as_it_was_written(engine: Engine) -> None:
    with engine.begin() as connection:
        event_store.add(connection, "rule-1", "Mismatches", [('{"model":"é"}', FIRES, SEEN)])
    assert event_store.page(engine).events == [
        Event(
            id=1,
            at=10,
            rule_id="rule-1",
            rule_name="Mismatches",
            group_key='{"model":"é"}',
            before=State.INACTIVE,
            after=State.FIRING,
            cause=Cause.CROSSED,
            observation=SEEN,
        )
    ]


def test_what_was_read_is_said_by_the_rule_that_judged_it(engine: Engine) -> None:
    with engine.begin() as connection:
        event_store.add(connection, "rule-1", "Mismatches", [("{}", FIRES, SEEN)], make_rule())
        event_store.add(connection, "rule-1", "Mismatches", [("{}", FIRES, None)], make_rule())
    assert [
        (None, None),
        (SEEN, "Mismatch rate 25 % (1 of 4 eligible turns), threshold 20 %."),
    ] == [(event.observation, event.sentence) for event in event_store.page(engine).events]


def test_nothing_happened_is_no_event(engine: Engine) -> None:
    with engine.begin() as connection:
        event_store.add(connection, "rule-1", "Mismatches", [])
    assert event_store.page(engine) == event_store.EventPage([], None)


def test_pages_follow_each_other_newest_first_without_gap_or_repeat(engine: Engine) -> None:
    """Events of one instant are told apart by their ids; older ones written later have their
    place by time."""
    for at in (20, 10, 20, 20, 30):
        add(engine, at)
    seen = []
    cursor = None
    while True:
        page = event_store.page(engine, limit=2, cursor=cursor)
        seen.append([(event.at, event.id) for event in page.events])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [[(30, 5), (20, 4)], [(20, 3), (20, 1)], [(10, 2)]]


def test_events_of_one_rule(engine: Engine) -> None:
    add(engine, 1, rule_id="a")
    add(engine, 2, rule_id="b")
    assert [event.at for event in event_store.page(engine, rule_id="a").events] == [1]


@pytest.mark.parametrize("cursor", ["", "x", "!!", "MTA", "MTA6LTE", "é"])
def test_a_cursor_that_was_not_given_out_is_refused(engine: Engine, cursor: str) -> None:
    with pytest.raises(AppError) as caught:
        event_store.page(engine, cursor=cursor)
    assert caught.value.code == "bad_cursor"


@pytest.mark.parametrize("limit", [0, -1, event_store.MOST + 1])
def test_a_limit_out_of_bounds_is_refused(engine: Engine, limit: int) -> None:
    with pytest.raises(AppError) as caught:
        event_store.page(engine, limit=limit)
    assert caught.value.code == "bad_limit"
