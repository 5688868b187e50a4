import json
import logging
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from app.alerts.evaluation import Notification
from app.alerts.rules import Rule
from app.alerts.states import Cause, Memory, Notice, State, Told
from app.alerts.teller import Telling
from tests.support.alerts import MINUTE, Directory, make_rule, make_teller, messages, write
from tests.support.rows import START_MS


@pytest.fixture(scope="module")
def backend() -> str:
    """What this asks of the database, test_outbox asks of both kinds."""
    return "sqlite"


AT = START_MS + MINUTE
FIRES = Memory(State.FIRING, since=AT, started_at=AT, peak=1.0, told=Told.FIRING, told_at=AT)
ENDED = Memory(State.INACTIVE, since=AT, started_at=START_MS, ended_at=AT, peak=1.0)


def compose(
    engine: Engine,
    receivers: Directory,
    rule: Rule | None = None,
    *,
    told: Told = Told.FIRING,
    told_receivers: tuple[str, ...] = (),
) -> Telling:
    before, after = (FIRES, ENDED) if told is Told.RESOLVED else (Memory(), FIRES)
    return (
        make_teller(engine, receivers)
        .dispatch()
        .compose(
            rule or make_rule(),
            Notification("{}", Notice(told, AT), before, after),
            cause=Cause.CROSSED,
            observation=None,
            told_receivers=told_receivers,
        )
    )


def names(telling: Telling) -> list[str]:
    return [letter.receiver.name for letter in telling.letters]


def test_the_rules_receivers_are_told_that_it_fires(engine: Engine) -> None:
    telling = compose(engine, Directory("a", "ops", "b"), make_rule(receivers=["ops", "b"]))
    assert names(telling) == ["ops", "b"]
    assert telling.told_receivers == ("id-of-b", "id-of-ops")


def test_a_reminder_adds_to_those_who_are_to_hear_of_the_end(engine: Engine) -> None:
    telling = compose(engine, Directory("ops"), told_receivers=("id-of-former",))
    assert telling.told_receivers == ("id-of-former", "id-of-ops")


def test_the_end_goes_to_those_who_were_told_and_are_still_there(engine: Engine) -> None:
    telling = compose(
        engine,
        Directory("ops", "former"),
        told=Told.RESOLVED,
        told_receivers=("id-of-deleted", "id-of-former"),
    )
    assert names(telling) == ["former"]
    assert telling.told_receivers == ()


def test_a_receiver_that_does_not_exist_is_logged(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        telling = compose(engine, Directory("a"), make_rule(receivers=["a", "lost"]))
    assert names(telling) == ["a"]
    assert "lost" in caplog.text


def test_a_rule_without_receivers_tells_nobody_and_reads_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.alerts.causes.details", None)
    assert compose(engine, Directory("ops"), make_rule(receivers=[])) == Telling((), ())


def test_a_message_links_to_the_rows_the_rule_and_the_silence(engine: Engine) -> None:
    (letter,) = compose(engine, Directory("ops")).letters
    links = json.loads(letter.body)["data"]["links"]
    assert links["alert"] == "https://warmline.example/alerts?rule=rule-1"
    assert links["silence"] == "https://warmline.example/alerts?silence=rule-1"
    assert links["rows"].startswith("https://warmline.example/requests?")
    assert "by=recorded" in links["rows"]
    assert links["csv"].startswith("https://warmline.example/api/requests.csv?")


def test_only_what_fires_is_told_with_its_causes(engine: Engine) -> None:
    write(engine, START_MS, bad=2)
    (fires,) = compose(engine, Directory("ops")).letters
    assert len(json.loads(fires.body)["data"]["sample_request_ids"]) == 2
    (ended,) = compose(
        engine, Directory("ops"), told=Told.RESOLVED, told_receivers=("id-of-ops",)
    ).letters
    assert json.loads(ended.body)["data"]["sample_request_ids"] == []


def test_causes_that_cannot_be_told_are_left_out_and_logged_without_their_text(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_given: Any) -> Any:
        raise ValueError("sk-secret")

    monkeypatch.setattr("app.alerts.causes.details", fail)
    assert names(compose(engine, Directory("ops"))) == ["ops"]
    assert "ValueError" in caplog.text
    assert "sk-secret" not in caplog.text


def test_a_database_that_is_away_is_no_reason_for_a_poorer_message(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluation is made again later."""

    def fail(*_given: Any) -> Any:
        raise OperationalError("", {}, OSError())

    monkeypatch.setattr("app.alerts.causes.details", fail)
    with pytest.raises(OperationalError):
        compose(engine, Directory("ops"))


def test_letters_are_written_with_the_transaction_and_not_without_it(engine: Engine) -> None:
    dispatch = make_teller(engine).dispatch()
    letters = compose(engine, Directory("ops")).letters
    with engine.connect() as connection:
        dispatch.post(connection, letters, AT)
        connection.rollback()
    assert messages(engine) == []
    with engine.begin() as connection:
        assert dispatch.post(connection, letters, AT) == 1
    assert messages(engine) == [("firing", "ops")]
