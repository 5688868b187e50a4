from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import Engine

from app.alerts import silences, store
from app.alerts.silences import Silence
from app.errors import AppError
from tests.support.alerts import MINUTE, make_rule
from tests.support.rows import START_MS

HOUR = 60 * MINUTE


def silence(**changes: Any) -> Silence:
    values: dict[str, Any] = {
        "id": "silence-1",
        "matchers": {},
        "starts_at": START_MS,
        "ends_at": START_MS + HOUR,
        "created_at": START_MS,
    }
    return Silence(**(values | changes))


@pytest.mark.parametrize(
    ("at", "covered"), [(-1, False), (0, True), (HOUR - 1, True), (HOUR, False)]
)
def test_a_silence_covers_from_its_start_to_just_before_its_end(at: int, covered: bool) -> None:
    assert covered is silences.silenced([silence()], "rule-1", {}, START_MS + at)


@pytest.mark.parametrize(
    ("rule_id", "matchers", "labels", "covered"),
    [
        (None, {}, {"model": "a"}, True),
        ("rule-1", {}, {"model": "a"}, True),
        ("rule-2", {}, {"model": "a"}, False),
        (None, {"model": "a"}, {"model": "a", "client": "x"}, True),
        (None, {"model": "b"}, {"model": "a"}, False),
        (None, {"model": "a", "client": "x"}, {"model": "a"}, False),
        (None, {"model": "a"}, {}, False),
    ],
)
def test_a_silence_covers_the_groups_that_have_all_its_labels(
    rule_id: str | None, matchers: Mapping[str, str], labels: Mapping[str, str], covered: bool
) -> None:
    one = silence(rule_id=rule_id, matchers=matchers)
    assert covered is silences.silenced([one], "rule-1", labels, START_MS)


def test_one_of_several_is_enough_and_none_is_not() -> None:
    others = [silence(rule_id="rule-2"), silence(matchers={"model": "b"})]
    assert not silences.silenced(others, "rule-1", {"model": "a"}, START_MS)
    assert silences.silenced([*others, silence()], "rule-1", {"model": "a"}, START_MS)
    assert not silences.silenced([], "rule-1", {}, START_MS)


def create(engine: Engine, **changes: Any) -> Silence:
    values: dict[str, Any] = {
        "id": "silence-1",
        "rule_id": None,
        "matchers": {},
        "ends_at": START_MS + HOUR,
        "now": START_MS,
    }
    return silences.create(engine, **(values | changes))


def since(engine: Engine, at: int) -> list[Silence]:
    with engine.connect() as connection:
        return silences.since(connection, at)


def test_a_silence_is_read_as_it_was_made(engine: Engine) -> None:
    store.create_rule(engine, make_rule(group_by=["client", "model"]), START_MS)
    made = create(
        engine,
        rule_id="rule-1",
        matchers={"model": "é", "client": "x"},
        comment=" Deploying ",
        author="me",
    )
    assert (made.comment, made.author) == ("Deploying", "me")
    assert silences.listing(engine, START_MS) == ([made], [])
    assert since(engine, START_MS) == [made]


def test_what_has_ended_is_listed_apart_and_evaluates_no_more(engine: Engine) -> None:
    first = create(engine, id="1")
    second = create(engine, id="2", ends_at=START_MS + 2 * HOUR)
    third = create(engine, id="3", ends_at=START_MS + 3 * HOUR)
    now = START_MS + 2 * HOUR
    assert silences.listing(engine, now) == ([third], [second, first])
    assert since(engine, START_MS + HOUR) == [second, third]


def test_a_silence_can_be_ended_now(engine: Engine) -> None:
    create(engine)
    ended = silences.end(engine, "silence-1", START_MS + MINUTE)
    assert ended.ends_at == START_MS + MINUTE
    assert silences.listing(engine, START_MS + MINUTE) == ([], [ended])


def test_ending_again_does_not_change_when_it_ended(engine: Engine) -> None:
    create(engine)
    silences.end(engine, "silence-1", START_MS + MINUTE)
    assert silences.end(engine, "silence-1", START_MS + HOUR).ends_at == START_MS + MINUTE


def test_one_to_come_that_is_ended_never_begins(engine: Engine) -> None:
    one = create(engine, starts_at=START_MS + HOUR, ends_at=START_MS + 2 * HOUR)
    ended = silences.end(engine, one.id, START_MS)
    assert not any(ended.covers("rule-1", {}, at) for at in (START_MS, START_MS + HOUR))


def test_no_more_than_200_are_open_at_a_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every evaluation of every group looks at all of them."""
    assert silences.MOST == 200
    monkeypatch.setattr(silences, "MOST", 1)
    create(engine, id="1")
    with pytest.raises(AppError) as caught:
        create(engine, id="2")
    assert (caught.value.code, caught.value.status) == ("too_many", 409)
    silences.end(engine, "1", START_MS)
    create(engine, id="2")
    assert [one.id for one in since(engine, START_MS)] == ["2"]


def test_what_is_not_there_cannot_be_ended(engine: Engine) -> None:
    with pytest.raises(AppError) as caught:
        silences.end(engine, "none", START_MS)
    assert (caught.value.code, caught.value.status) == ("not_found", 404)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ends_at": START_MS},
        {"ends_at": START_MS + HOUR, "starts_at": START_MS + HOUR},
        {"ends_at": START_MS - MINUTE, "starts_at": START_MS - HOUR},
        {"ends_at": START_MS + silences.LONGEST + 1},
        {"matchers": {"session": "a"}},
        {"matchers": {"model": ""}},
        {"matchers": {"model": 3}},
        {"matchers": {"model": "a\0"}},
        {"author": "a\x9b31m"},
        {"comment": "two\nlines"},
        {"comment": "x" * 501},
        {"author": None},
        {"rule_id": "rule-1", "matchers": {"tenant": "a"}},
    ],
)
def test_what_makes_no_sense_is_refused(engine: Engine, wrong: dict[str, Any]) -> None:
    store.create_rule(engine, make_rule(group_by=["model"]), START_MS)
    with pytest.raises(AppError) as caught:
        create(engine, **wrong)
    assert (caught.value.code, caught.value.status) == ("bad_silence", 422)
    assert silences.listing(engine, START_MS) == ([], [])


def test_a_rule_that_is_not_there_cannot_be_silenced(engine: Engine) -> None:
    with pytest.raises(AppError) as caught:
        create(engine, rule_id="none")
    assert caught.value.code == "not_found"
