"""What a turn should have become, given everything that happened before it."""

import pytest

from app.demo.provider.replies import message
from app.demo.provider.verdict import Oracle
from tests.support.provider import AUTH, answer, events, frame, make_core, user

BODY = {"model": "gpt-5.5", "store": False}


class Play:
    """Turns of sessions over connections of the test's own choice."""

    def __init__(self, *replies):
        self.core = make_core(replies=[*replies, *(f"reply {n}" for n in range(20))])
        self.oracle = Oracle(self.core)

    def connect(self):
        return self.core.open_connection(AUTH)

    def turn(self, connection, history, session="s", socket=None, **fields):
        """A full turn; returns the history with the answer."""
        response = answer(connection, history, **fields)
        self.oracle.answered(
            response["id"], headers=AUTH, session=session, body={**BODY, **fields}, socket=socket
        )
        return [*history, *response["output"]]

    def ask(self, given, session="s", socket=None, headers=AUTH, **fields):
        return self.oracle.verdict(
            headers=headers,
            session=session,
            body={**BODY, "input": given, **fields},
            socket=socket,
        )


def test_without_an_answer_of_this_session_there_is_no_baseline():
    play = Play()
    history = play.turn(play.connect(), [user("a")])
    assert play.ask([user("a")], session="other").reason == "no_baseline"
    assert play.ask([*history, user("b")], session="other").reason == "no_baseline"
    assert play.ask([user("unrelated")]).reason == "no_baseline"


def test_a_request_that_extends_an_idle_connections_latest_is_to_be_continued():
    play = Play()
    connection = play.connect()
    history = play.turn(connection, [user("a")])
    verdict = play.ask([*history, user("b")])
    assert (verdict.reason, verdict.response_id) == ("ok", connection.latest.response_id)
    assert verdict.delta == [user("b")]


def test_another_customer_never_continues_it():
    play = Play()
    history = play.turn(play.connect(), [user("a")])
    stranger = {"authorization": "Bearer sk-other"}
    assert play.ask([*history, user("b")], headers=stranger).reason == "no_baseline"


def test_an_edit_is_a_mismatch_with_its_index():
    play = Play()
    history = play.turn(play.connect(), [user("a")])
    verdict = play.ask([user("edited"), *history[1:], user("b")])
    assert (verdict.reason, verdict.index) == ("prefix_mismatch", 0)


def test_a_shorter_history_is_a_mismatch_where_it_ends():
    play = Play()
    connection = play.connect()
    history = play.turn(connection, [user("a")])
    longer = play.turn(connection, [*history, user("b")])
    connection.lanes[None].latest = None  # so that the shorter one is held nowhere
    verdict = play.ask(history)
    assert len(longer) == 4
    assert (verdict.reason, verdict.index) == ("prefix_mismatch", 2)


def test_changed_fields_come_before_a_mismatch():
    play = Play()
    history = play.turn(play.connect(), [user("a")])
    verdict = play.ask([user("edited"), *history[1:], user("b")], instructions="new")
    assert verdict.reason == "non_input_fields_changed"
    assert (verdict.changed, verdict.index) == (("instructions",), 0)


def test_nothing_new_is_an_empty_delta_except_after_a_warm_up():
    play = Play()
    connection = play.connect()
    history = play.turn(connection, [user("a")])
    assert play.ask(history).reason == "empty_delta"
    warm = events(connection, [user("w")], generate=False)[-1]["response"]["id"]
    play.oracle.answered(warm, headers=AUTH, session="w", body=BODY)
    assert play.ask([user("w")], session="w").reason == "ok"


def test_a_busy_connection_is_not_continued():
    play = Play()
    connection = play.connect()
    history = play.turn(connection, [user("a")])
    steps = connection.handle_frame(frame([user("other")]))
    next(steps)
    assert play.ask([*history, user("b")]).reason == "chain_busy"


def test_a_closed_connection_is_lost():
    play = Play()
    connection = play.connect()
    history = play.turn(connection, [user("a")])
    connection.close()
    assert play.ask([*history, user("b")]).reason == "connection_lost"


def test_a_connection_that_another_session_took_over_is_lost_too():
    play = Play()
    connection = play.connect()
    history = play.turn(connection, [user("a")])
    play.turn(connection, [user("x")], session="t")
    assert play.ask([*history, user("b")]).reason == "connection_lost"


def test_a_fork_from_a_superseded_response_is_a_mismatch_with_the_newest():
    play = Play()
    connection = play.connect()
    history = play.turn(connection, [user("a")])
    play.turn(connection, [*history, user("b")])
    verdict = play.ask([*history, user("c")])
    assert (verdict.reason, verdict.index) == ("prefix_mismatch", 2)


def test_a_lease_reserves_the_chain_for_its_socket():
    play = Play()
    history = play.turn(play.connect(), [user("a")], socket="sock_1")
    assert play.ask([*history, user("b")], socket="sock_1").reason == "ok"
    assert play.ask([*history, user("b")], socket="sock_2").reason == "chain_busy"
    assert play.ask([*history, user("b")]).reason == "chain_busy"
    play.oracle.socket_closed("sock_1")
    assert play.ask([*history, user("b")], socket="sock_2").reason == "ok"


def test_after_a_reset_nothing_is_continued():
    play = Play()
    history = play.turn(play.connect(), [user("a")])
    play.turn(play.connect(), [user("a")], session="t")
    play.oracle.reset("s")
    assert play.ask([*history, user("b")]).reason == "epoch_reset"


def test_the_longest_baseline_with_equal_fields_wins():
    play = Play()
    first, second, third = play.connect(), play.connect(), play.connect()
    history = play.turn(first, [user("a")])
    longer = play.turn(second, [*history, user("b")])
    play.turn(third, [*longer, user("c")], instructions="other")
    verdict = play.ask([*longer, user("d")])
    assert verdict.response_id == second.latest.response_id
    fork = play.ask([*history, user("x")])
    assert (fork.reason, fork.response_id) == ("ok", first.latest.response_id)


def test_the_candidates_are_ranked():
    play = Play()
    first, second = play.connect(), play.connect()
    history = play.turn(first, [user("a")])
    longer = play.turn(second, [*history, user("b")], instructions="other")
    ranked = play.oracle.candidates(
        headers=AUTH, session="s", body=BODY, given=[*longer, user("c")]
    )
    assert [(c.connection, c.length, c.changed) for c in ranked] == [
        (first, 2, []),
        (second, 4, ["instructions"]),
    ]


def test_the_request_is_compared_with_what_it_echoes_most():
    play = Play([message("same")], [message("same")])
    one, two = play.connect(), play.connect()
    short = play.turn(one, [user("a")])
    long = play.turn(two, [*play.turn(two, [user("z")]), user("y")])
    one.close()
    two.close()
    edited = [user("Z"), *long[1:], user("new")]
    verdict = play.ask(edited)
    assert verdict.response_id == play.oracle.turns[-1].response_id
    assert (verdict.reason, verdict.index) == ("prefix_mismatch", 0)
    assert play.ask([*short, user("b")]).response_id == play.oracle.turns[0].response_id


def test_an_item_that_was_sent_is_an_echo_of_one_item():
    play = Play([message("same")], [message("same")], [message("same")])
    one, two = play.connect(), play.connect()
    play.turn(one, [*play.turn(one, [user("a")]), user("b")])
    play.turn(two, [user("c")])
    echo = {"role": "assistant", "content": "same"}
    assert play.ask([echo]).response_id == play.oracle.turns[-1].response_id
    assert play.ask([echo, echo]).response_id == play.oracle.turns[-2].response_id


@pytest.mark.parametrize("given", ["hi", [user("hi")], [{"role": "user", "content": "hi"}]])
def test_the_logical_input_may_be_a_string(given):
    play = Play()
    connection = play.connect()
    warm = events(connection, "hi", generate=False)[-1]["response"]["id"]
    play.oracle.answered(warm, headers=AUTH, session="s", body=BODY)
    assert play.ask(given).reason == "ok"
