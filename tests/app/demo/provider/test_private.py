"""What only the Codex backend sends: between the events on a socket, in headers over HTTP."""

import json

from tests.support.provider import AUTH, events, frame, make_core

STATE = "x-codex-turn-state"


def connection():
    core = make_core("codex", replies=["one", "two", "three"])
    return core, core.open_connection(AUTH)


def state_in(got):
    [event] = [e for e in got if e["type"] == "response.metadata"]
    return event["headers"][STATE]


def test_private_events_stand_around_the_standard_ones():
    _, socket = connection()
    types = [event["type"] for event in events(socket)]
    assert types[:4] == [
        "codex.rate_limits",
        "response.created",
        "codex.response.metadata",
        "response.metadata",
    ]
    assert types[-2:] == ["keepalive", "response.completed"]


def test_private_events_have_no_sequence_number_but_keepalive():
    _, socket = connection()
    got = events(socket)
    without = {event["type"] for event in got if "sequence_number" not in event}
    assert without == {"codex.rate_limits", "codex.response.metadata", "response.metadata"}
    numbers = [e["sequence_number"] for e in got if "sequence_number" in e]
    assert numbers == list(range(len(numbers)))


def test_private_events_are_not_counted():
    core, socket = connection()
    got = events(socket)
    assert core.log[0].events == len(got) - 4


def test_the_model_that_answers_is_the_one_that_was_asked():
    _, socket = connection()
    [metadata] = [e for e in events(socket, model="gpt-9") if e["type"] == "response.metadata"]
    assert metadata["headers"]["openai-model"] == "gpt-9"


def test_the_turn_state_is_new_unless_the_client_sends_it_back():
    _, socket = connection()
    first = state_in(events(socket))
    again = state_in(events(socket, client_metadata={STATE: first}))
    other = state_in(events(socket))
    assert (again, other == first) == (first, False)


def test_over_http_the_turn_state_is_a_header_both_ways():
    core, _ = connection()
    body = json.loads(frame(stream=True))
    del body["type"]
    first = dict(core.post(AUTH, json.dumps(body)).headers)[STATE]
    reply = core.post({**AUTH, STATE: first}, json.dumps(body))
    assert dict(reply.headers)[STATE] == first
    types = [action.event["type"] for _, action in reply.steps]
    assert [t for t in types if not t.startswith("response.")] == ["keepalive"]


def test_a_warm_up_has_metadata_but_no_limits():
    _, socket = connection()
    types = [event["type"] for event in events(socket, generate=False)]
    assert types == ["response.created", "response.metadata", "response.completed"]


def test_openai_sends_nothing_private():
    got = events(make_core(replies=["one"]).open_connection(AUTH))
    assert all(event["type"].startswith("response.") for event in got)
    assert all(event["type"] != "response.metadata" for event in got)
