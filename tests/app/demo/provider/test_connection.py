"""What one WebSocket remembers, refuses and forgets."""

import json

import pytest

from app.demo.provider.actions import Abort, Close, Hang, Send
from app.demo.provider.core import Limits
from app.demo.provider.faults import ErrorFrame, HttpError, abort, close, silence
from tests.support.provider import AUTH, Now, answer, events, frame, make_core, output_of, user


def opened(kind="openai", **options):
    core = make_core(kind, **options)
    return core, core.open_connection(AUTH)


def not_found(response_id):
    return {
        "type": "error",
        "status": 400,
        "error": {
            "type": "invalid_request_error",
            "code": "previous_response_not_found",
            "message": f"Previous response with id '{response_id}' not found.",
            "param": "previous_response_id",
        },
    }


def test_the_next_turn_may_hang_on_the_latest_response_with_store_false():
    core, connection = opened(replies=["one", "two"])
    first = answer(connection, [user("a")])
    second = answer(connection, [user("b")], previous_response_id=first["id"])
    texts = [part["text"] for item in core.transcripts[second["id"]] for part in item["content"]]
    assert texts == ["a", "one", "b", "two"]


def test_only_the_latest_response_is_kept():
    _, connection = opened(replies=["one", "two"])
    first = answer(connection)
    answer(connection, previous_response_id=first["id"])
    assert events(connection, previous_response_id=first["id"]) == [not_found(first["id"])]


def test_a_full_request_replaces_the_latest_response():
    _, connection = opened(replies=["one", "two"])
    first = answer(connection)
    second = answer(connection)
    assert connection.latest.response_id == second["id"]
    assert events(connection, previous_response_id=first["id"]) == [not_found(first["id"])]


def test_another_connection_does_not_know_the_response():
    core, connection = opened(replies=["one"])
    first = answer(connection)
    other = core.open_connection(AUTH)
    assert events(other, previous_response_id=first["id"]) == [not_found(first["id"])]


def test_a_stored_response_is_found_from_any_connection_of_its_customer_only():
    core, connection = opened(replies=["one", "two"])
    first = answer(connection, store=True)
    same = core.open_connection(AUTH)
    assert answer(same, previous_response_id=first["id"])["status"] == "completed"
    stranger = core.open_connection({"authorization": "Bearer sk-other"})
    assert events(stranger, previous_response_id=first["id"]) == [not_found(first["id"])]


def test_store_is_true_when_omitted():
    core, connection = opened(replies=["one"])
    body = {"type": "response.create", "model": "m", "input": "hi"}
    list(connection.handle_frame(json.dumps(body)))
    assert core.held(connection.latest.response_id).stored is True


def test_a_closed_connection_forgets():
    _, connection = opened(replies=["one"])
    answer(connection)
    connection.close("gone")
    assert (connection.latest, connection.idle, connection.closed_by) == (None, False, "gone")


def test_a_rejected_continuation_evicts_the_response_it_named():
    _, connection = opened(replies=["one"])
    first = answer(connection)
    refused = events(connection, [output_of("call_x")], previous_response_id=first["id"])
    assert refused[0]["status"] == 400
    assert connection.latest is None
    assert events(connection, previous_response_id=first["id"]) == [not_found(first["id"])]


def test_a_failed_request_that_names_nothing_evicts_nothing():
    _, connection = opened(replies=["one", "two"])
    first = answer(connection)
    assert events(connection, [output_of("call_x")])[0]["status"] == 400
    assert answer(connection, previous_response_id=first["id"])["status"] == "completed"


def test_on_azure_any_failed_turn_empties_the_cache():
    _, connection = opened("azure", replies=["one"])
    answer(connection)
    events(connection, [output_of("call_x")])
    assert connection.latest is None


@pytest.mark.parametrize("fault", [ErrorFrame(), HttpError(500), abort(after=2), close(after=2)])
def test_a_turn_that_breaks_off_evicts_the_response_it_named(fault):
    core, connection = opened(replies=["one", "two"])
    first = answer(connection)
    core.faults.on_request(fault)
    events(connection, previous_response_id=first["id"])
    assert connection.latest is None


def test_a_client_that_leaves_in_mid_stream_leaves_no_response():
    core, connection = opened(replies=["one"])
    steps = connection.handle_frame(frame())
    next(steps)
    assert not connection.idle
    steps.close()
    assert core.log[0].outcome == "client_closed"
    assert (connection.idle, connection.latest, dict(core.transcripts)) == (True, None, {})


def test_the_response_is_held_before_its_terminal_event_is_out():
    _, connection = opened(replies=["one"])
    for _, action in connection.handle_frame(frame()):
        if action.event["type"] == "response.completed":
            assert connection.latest.response_id == action.event["response"]["id"]
            break
        assert connection.latest is None


def test_one_response_at_a_time():
    _, connection = opened(replies=["one", "two"])
    first = connection.handle_frame(frame())
    next(first)
    second = connection.handle_frame(frame())
    with pytest.raises(RuntimeError, match="one response at a time"):
        next(second)


def test_a_frame_that_arrives_during_another_response_is_told_apart_in_the_log():
    core, connection = opened(replies=["one", "two"])
    first, second = connection.handle_frame(frame()), connection.handle_frame(frame())
    assert (len(list(first)) > 0, len(list(second)) > 0) == (True, True)
    assert [attempt.overlapped for attempt in core.log] == [False, True]
    assert connection.idle


def test_a_warm_up_answers_created_and_completed_without_output():
    core, connection = opened()
    got = events(connection, [user("context")], generate=False)
    assert [event["type"] for event in got] == ["response.created", "response.completed"]
    assert got[-1]["response"]["output"] == []
    assert core.log[0].outcome == "warmup"


def test_a_turn_may_hang_on_a_warm_up_even_with_nothing_new():
    core, connection = opened(replies=["one"])
    warm = events(connection, [user("a")], generate=False)[-1]["response"]
    response = answer(connection, [], previous_response_id=warm["id"])
    assert [item["role"] for item in core.transcripts[response["id"]]] == ["user", "assistant"]


def test_a_warm_up_with_empty_input_is_accepted():
    _, connection = opened()
    assert events(connection, [], generate=False)[-1]["type"] == "response.completed"


def test_after_sixty_minutes_a_create_is_refused_and_the_connection_closed():
    now = Now()
    core = make_core(now=now, replies=["one", "two"])
    connection = core.open_connection(AUTH)
    now.advance(3599)
    answer(connection)
    now.advance(1)
    actions = [action for _, action in connection.handle_frame(frame())]
    assert actions[0].event["status"] == 400
    assert actions[0].event["error"]["code"] == "websocket_connection_limit_reached"
    assert isinstance(actions[1], Close)


@pytest.mark.parametrize("kind", [str, bytes])
def test_a_frame_of_sixteen_mebibytes_closes_1009_and_one_byte_less_does_not(kind):
    limit = 16 * 1024 * 1024
    core, connection = opened(replies=["one"])
    padding = limit - len(frame(""))

    def padded(size):
        text = frame("x" * size)
        return text if kind is str else text.encode()

    actions = [action for _, action in connection.handle_frame(padded(padding))]
    assert actions == [Close(1009, "message too big")]
    assert core.log[0].outcome == "closed:1009"
    last = list(connection.handle_frame(padded(padding - 1)))[-1][1]
    assert last.event["type"] == "response.completed"


def test_the_size_of_a_frame_is_counted_in_bytes():
    _, connection = opened(limits=Limits(frame_bytes=200))
    assert len(frame("é" * 60)) < 200 + 6 * 60  # escaped by json.dumps
    text = json.dumps(
        {"type": "response.create", "model": "m", "input": "é" * 90}, ensure_ascii=False
    )
    assert len(text) < 200 < len(text.encode())
    assert isinstance(next(connection.handle_frame(text))[1], Close)


@pytest.mark.parametrize(
    ("text", "status"),
    [("{", 400), ("[]", 400), ('{"type":"response.append"}', 400), ('{"model":"m"}', 400)],
)
def test_a_frame_that_is_no_create_is_answered_with_a_nested_error_and_status(text, status):
    _, connection = opened()
    [(_, action)] = list(connection.handle_frame(text))
    assert action.event["type"] == "error"
    assert action.event["status"] == status
    assert action.event["error"]["type"] == "invalid_request_error"


def test_lanes_hold_one_response_each_and_their_events_carry_the_lane():
    _, connection = opened(replies=["one", "two", "three"])
    first = events(connection, stream_id="a")
    answer(connection)
    assert {event["stream_id"] for event in first} == {"a"}
    last = first[-1]["response"]["id"]
    again = events(connection, stream_id="a", previous_response_id=last)
    assert again[-1]["type"] == "response.completed"


def test_a_lane_may_fork_from_another_lanes_latest():
    core, connection = opened(replies=["one", "two"])
    first = answer(connection)
    fork = answer(connection, stream_id="fork", previous_response_id=first["id"])
    assert len(core.transcripts[fork["id"]]) == 4
    assert connection.latest.response_id == first["id"]


def test_a_failed_fork_does_not_evict_the_parent():
    core, connection = opened(replies=["one", "two"])
    first = answer(connection)
    core.faults.on_request(ErrorFrame())
    assert (
        events(connection, stream_id="f", previous_response_id=first["id"])[0]["stream_id"] == "f"
    )
    assert connection.latest.response_id == first["id"]


def test_there_are_at_most_32_named_lanes():
    _, connection = opened()
    for number in range(32):
        answer(connection, stream_id=f"s{number}")
    refused = events(connection, stream_id="one-too-many")
    assert refused[0]["error"]["code"] == "websocket_stream_limit_reached"


def test_azure_knows_no_lanes():
    _, connection = opened("azure")
    assert events(connection, stream_id="a")[0]["error"]["code"] == "unknown_parameter"


def test_a_deaf_connection_never_answers_again():
    core, connection = opened(replies=["one"])
    core.faults.on_request(ErrorFrame(deaf=True))
    assert events(connection)[0]["type"] == "error"
    assert [action for _, action in connection.handle_frame(frame())] == [Hang()]


def test_silence_reads_the_request_and_sends_nothing():
    core, connection = opened()
    core.faults.on_request(silence())
    assert [action for _, action in connection.handle_frame(frame())] == [Hang()]
    assert (core.log[0].outcome, core.log[0].response_id) == ("hung", None)


def test_abort_before_any_event_sends_nothing():
    core, connection = opened()
    core.faults.on_request(abort())
    assert [action for _, action in connection.handle_frame(frame())] == [Abort()]
    assert core.log[0].outcome == "aborted"


def test_an_interrupt_ends_the_running_response_with_its_finished_items():
    core, connection = opened(replies=[[{"type": "reasoning", "summary": []}, _long()]])
    steps = connection.handle_frame(frame())
    seen = []
    for _, action in steps:
        seen.append(action.event)
        if action.event["type"] == "response.output_text.delta":
            break
    response_id = seen[0]["response"]["id"]
    interrupt = {"type": "response.interrupt", "response_id": response_id}
    assert list(connection.handle_frame(json.dumps(interrupt))) == []
    [last] = [action.event for _, action in steps]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "interrupted"}
    assert [item["type"] for item in core.transcripts[response_id][1:]] == ["reasoning"]
    assert answer(connection, previous_response_id=response_id)["status"] == "completed"


def _long():
    text = "word " * 100
    part = {"type": "output_text", "annotations": [], "text": text}
    return {"type": "message", "role": "assistant", "content": [part]}


def test_steering_is_refused_by_its_own_event():
    _, connection = opened()
    steer = {"type": "response.steer", "previous_response_id": "resp_1", "input": []}
    [(_, action)] = list(connection.handle_frame(json.dumps(steer)))
    assert isinstance(action, Send)
    assert action.event["error"]["code"] == "steering_not_supported"


# --- flavours -----------------------------------------------------------------------------------


def refused(connection, given="hi", **fields):
    """The code of the error, and the close code behind it."""
    steps = [action for _, action in connection.handle_frame(frame(given, **fields))]
    error, *rest = steps
    return error.event["error"]["code"], [action.code for action in rest]


def test_vercel_refuses_another_model_and_closes_with_1008():
    _, connection = opened("vercel", replies=["one"])
    answer(connection)
    assert ("model_mismatch", [1008]) == refused(connection, model="gpt-6-sol")


def test_vercel_has_no_websocket_for_older_models():
    _, connection = opened("vercel")
    assert ("model_not_supported", [1008]) == refused(connection, model="gpt-5")


def test_vercel_closes_after_an_error_of_its_own_with_1011():
    core, connection = opened("vercel")
    core.faults.on_request(ErrorFrame(status=500))
    assert (None, [1011]) == refused(connection)


def test_vercel_continues_nothing_that_its_connection_does_not_hold():
    core, connection = opened("vercel", replies=["one"])
    first = answer(connection, store=True)
    other = core.open_connection(AUTH)
    assert ("previous_response_not_found", [1008]) == refused(
        other, previous_response_id=first["id"]
    )


@pytest.mark.parametrize(("kind", "minutes", "code"), [("vercel", 13, 1001), ("litellm", 60, 1000)])
def test_a_connection_whose_time_is_over_is_closed_unread(kind, minutes, code):
    now = Now()
    core, connection = opened(kind, now=now)
    for _ in range(minutes - 1):
        now.advance(60)
        connection.pinged()
    assert [] == core.expire()
    now.advance(60)
    connection.pinged()
    steps = list(connection.handle_frame(frame()))
    assert [(0.0, Close(code))] == steps
    assert f"closed:{code}" == core.log[-1].outcome
    assert [connection] == core.expire()
    assert (False, f"expired:{code}") == (connection.open, connection.closed_by)


def test_vercel_closes_a_connection_on_which_nothing_came_for_five_minutes():
    now = Now()
    core, connection = opened("vercel", now=now, replies=["one"])
    answer(connection)
    now.advance(299)
    connection.pinged()
    now.advance(299)
    assert [] == core.expire()
    now.advance(1)
    assert [connection] == core.expire()


def test_a_busy_connection_does_not_expire():
    now = Now()
    core, connection = opened("vercel", now=now)
    steps = connection.handle_frame(frame())
    next(steps)
    now.advance(800)
    assert [] == core.expire()


def test_xai_tells_that_the_time_is_over_after_25_minutes():
    now = Now()
    _, connection = opened("xai", now=now)
    now.advance(25 * 60)
    assert ("websocket_connection_limit_reached", [1000]) == refused(connection)


def test_litellm_answers_with_the_first_model_whatever_is_asked():
    _, connection = opened("litellm", replies=["one", "two"])
    answer(connection)
    assert "gpt-5.5" == answer(connection, model="gpt-6-sol")["model"]


def test_litellm_answers_without_a_history_that_it_does_not_have():
    core, connection = opened("litellm", replies=["one"])
    response = answer(connection, [user("a")], previous_response_id="resp_nobody_has")
    assert ["user", "assistant"] == [item["role"] for item in core.transcripts[response["id"]]]
