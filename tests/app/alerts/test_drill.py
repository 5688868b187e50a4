import itertools
import json

import pytest

from app.alerts import delivery_log, drill, groups
from app.alerts.states import State, Told
from app.ledger.database import prepare
from tests.support.alerts import make_rule
from tests.support.databases import migrated
from tests.support.rows import START_MS

BASE = "https://warm.example"


class Party:
    def __init__(self, kind: str, disabled: str | None = None) -> None:
        self.id, self.name, self.kind, self.disabled = f"id-{kind}", kind, kind, disabled


@pytest.fixture
def engine(tmp_path):
    opened = prepare(migrated(tmp_path / "ledger.db"))
    yield opened
    opened.dispose()


def send(engine, *parties, rule=None, told=Told.FIRING):
    numbers = itertools.count(1)
    return drill.send(
        engine,
        rule or make_rule(),
        told,
        parties,
        now=START_MS,
        base_url=BASE,
        new_id=lambda prefix: f"{prefix}{next(numbers)}",
    )


def test_each_receiver_gets_a_marked_message_in_its_own_form(engine):
    sent = send(engine, Party("webhook"), Party("slack"), Party("alertmanager"))
    assert ["webhook", "slack", "alertmanager"] == [each.receiver for each in sent]
    for each in sent:
        found = delivery_log.get(engine, each.id)
        assert (True, "queued", "firing") == (
            found.delivery.test,
            found.delivery.state.value,
            found.delivery.told,
        )
        assert "[TEST]" in found.body
        assert json.loads(found.body)


@pytest.mark.parametrize("told", list(Told))
def test_a_test_says_which_state_it_is_of_and_has_no_value(told):
    message = drill.compose(make_rule(group_by=["model"]), told, START_MS, BASE)
    assert (True, told, {"model": "example"}, None, None) == (
        message.test,
        message.told,
        message.labels,
        message.reading,
        message.peak,
    )
    over = told is Told.RESOLVED
    assert (State.INACTIVE if over else State.FIRING) is message.now
    assert (message.ended_at is not None) is over
    assert (told is Told.NO_DATA) is message.absence


def test_a_test_ends_no_real_alert():
    rule = make_rule()
    message = drill.compose(rule, Told.RESOLVED, START_MS, BASE)
    assert groups.dedupe_key(rule.id, groups.ALONE) != message.dedupe_key


def test_its_links_lead_here(engine):
    message = drill.compose(make_rule(), Told.FIRING, START_MS, BASE)
    for link in (message.links.alert, message.links.rows, message.links.csv, message.links.silence):
        assert link.startswith(BASE + "/")


def test_to_a_disabled_receiver_it_is_dead_at_once_and_can_be_replayed(engine):
    (sent,) = send(engine, Party("webhook", "it said 410"))
    assert "dead" == delivery_log.get(engine, sent.id).delivery.state.value


def test_without_a_rule_the_receiver_gives_its_name(engine):
    assert "Test of ops" == drill.rule_for("ops").name
    assert 100 == len(drill.rule_for("x" * 100).name)
