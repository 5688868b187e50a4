import pytest

from app.importers.codex_rows import Session, Turn, duration, failure, parent_of
from engine.model import Usage
from tests.support.rows import make_row


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (78, 78.0),
        (1.23456, 1.235),
        ({"secs": 2, "nanos": 500_000_000}, 2_500.0),
        ({"secs": 2}, None),
        ("78", None),
        (-1, None),
        (None, None),
    ],
)
def test_a_duration_is_a_number_or_seconds_and_nanoseconds(value, expected):
    assert expected == duration(value)


def test_the_parent_of_an_agent_stands_in_one_of_two_places():
    spawned = {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}
    assert "p" == parent_of(spawned) == parent_of({"parent_thread_id": "p"})
    assert parent_of({"source": "cli"}) is parent_of({"source": {"subagent": "review"}}) is None


def test_a_code_is_a_word_and_no_sentence():
    def code(name):
        return failure({"codex_error_info": name}, answered=True)[1]

    assert ("other", None, None) == (code("other"), code("it said: x"), code("é"))
    assert 64 == len(code("x" * 99))


def test_an_http_status_is_one():
    for status in (99, 600, "429", True, None):
        error = {"codex_error_info": {"bad_request": {"http_status_code": status}}}
        assert ("error", "bad_request", None) == failure(error, answered=False)


def made(session, **known):
    return session.row(("x",), started=2, ended=1, usage=Usage(), **known)


def test_a_new_epoch_begins_with_the_first_word_of_several():
    session = Session("s")
    session.replaced("rollback")
    assert ("rollback", 1, 1) == (
        (row := made(session)).epoch_reset_reason, row.epoch, row.epoch_turn,
    )  # fmt: skip
    session.compacted()
    session.replaced("rollback")
    row = made(session)
    assert ("compaction", 2, 1) == (row.epoch_reset_reason, row.epoch, row.epoch_turn)
    row = made(session)
    assert (None, 2, 2) == (row.epoch_reset_reason, row.epoch, row.epoch_turn)


def test_a_request_does_not_begin_after_its_end():
    row = made(Session("s"))
    assert (1, 1, 1) == (row.started_at, row.ended_at, row.recorded_at)


def test_what_was_told_of_another_sessions_history_is_forgotten():
    session = Session("s")
    made(session)
    session.compacted()
    session.inherited()
    row = made(session)
    assert (None, 1, 1) == (row.epoch_reset_reason, row.epoch, row.epoch_turn)


def test_a_turn_without_rows_learns_nothing():
    turn = Turn()
    turn.time_to_first_token(5)
    turn.compaction("r")
    turn.adopt("r")
    assert [] == list(turn.release())


def test_a_compaction_without_a_response_is_no_row():
    turn = Turn(rows=[make_row(response_id=None)])
    turn.compaction(None)
    assert "generation" == turn.rows[0].kind
