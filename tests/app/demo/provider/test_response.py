"""One response: events, compaction, delays."""

import json

import pytest

from app.demo.provider.events import TERMINAL
from app.demo.provider.latency import Latency
from app.demo.provider.replies import custom_tool_call, function_call, message, reasoning, refusal
from tests.support.provider import AUTH, answer, events, frame, make_core, output_of, user

TRIGGER = {"type": "compaction_trigger"}
FIELDS = {"store": False, "tools": [{"type": "function", "name": "f"}], "instructions": "be brief"}


def test_events_are_numbered_from_zero_without_a_gap():
    got = events(make_core().open_connection(AUTH))
    assert [event["sequence_number"] for event in got] == list(range(len(got)))


def test_each_item_is_announced_empty_streamed_and_done_whole():
    items = [
        reasoning("gAAA", ["because"]),
        message("hello there, this is a longer text"),
        refusal("no"),
        function_call("f", {"a": 1}, "call_1"),
        custom_tool_call("exec", "text('hi')", "call_2"),
    ]
    got = events(make_core(replies=[items]).open_connection(AUTH))
    for index, value in enumerate(items):
        mine = [e for e in got if e.get("output_index") == index]
        assert mine[0]["type"] == "response.output_item.added"
        assert mine[-1]["type"] == "response.output_item.done"
        assert mine[-1]["item"].items() >= value.items()
        text = "".join(e["delta"] for e in mine if e["type"].endswith(".delta"))
        assert text
        assert text in json.dumps(value, ensure_ascii=False).replace('\\"', '"')
        assert text not in json.dumps(mine[0])


def test_only_the_last_event_is_terminal():
    got = events(make_core().open_connection(AUTH))
    assert [event["type"] in TERMINAL for event in got] == [False] * (len(got) - 1) + [True]


def test_the_response_echoes_the_request():
    response = answer(make_core().open_connection(AUTH), **FIELDS)
    assert {name: response[name] for name in FIELDS} == FIELDS


def test_a_trigger_as_last_item_yields_exactly_one_compaction_item():
    core = make_core(replies=["unused"])
    connection = core.open_connection(AUTH)
    response = answer(connection, [user("a"), TRIGGER])
    [item] = response["output"]
    assert item["type"] == "compaction"
    assert item["encrypted_content"].startswith("gAAAA")


def test_a_trigger_anywhere_else_is_refused():
    connection = make_core().open_connection(AUTH)
    [event] = events(connection, [TRIGGER, user("a")])
    assert event["error"]["message"] == "A 'compaction_trigger' must be the last input item."


def test_a_trigger_may_follow_the_output_of_a_tool_in_a_delta():
    core = make_core(replies=[[function_call("f", {}, "call_1")], "after"])
    connection = core.open_connection(AUTH)
    first = answer(connection)
    given = [output_of("call_1"), TRIGGER]
    second = answer(connection, given, previous_response_id=first["id"])
    assert [item["type"] for item in second["output"]] == ["compaction"]


def test_a_compaction_item_starts_the_next_history():
    core = make_core(replies=["after"])
    connection = core.open_connection(AUTH)
    item = answer(connection, [user("a"), TRIGGER])["output"][0]
    assert answer(connection, [user("a"), item, user("b")])["status"] == "completed"


def test_beyond_the_threshold_the_server_compacts_by_itself():
    core = make_core(replies=["one", "two"])
    connection = core.open_connection(AUTH)
    wish = [{"type": "compaction", "compact_threshold": 1000}]
    small = answer(connection, [user("a")], context_management=wish)
    assert [item["type"] for item in small["output"]] == ["message"]
    big = answer(connection, [user("word " * 2000)], context_management=wish)
    assert [item["type"] for item in big["output"]] == ["compaction", "message"]


def test_delays_grow_with_what_is_not_cached_and_with_the_output():
    core = make_core(latency=Latency(), replies=["x" * 4000, "x" * 4000])
    connection = core.open_connection(AUTH)
    assert connection.connect_delay == Latency().connect

    def delays():
        steps = connection.handle_frame(frame([user("word " * 20_000)]))
        times = [delay for delay, _ in steps]
        return times[0], sum(times[1:])

    cold, warm = delays(), delays()
    assert cold[0] > warm[0] + 2
    assert cold[1] == pytest.approx(warm[1])
    assert cold[1] == pytest.approx(1000 * Latency().per_output_token, rel=0.05)


def test_without_latency_nothing_waits():
    steps = make_core().open_connection(AUTH).handle_frame(frame())
    assert {delay for delay, _ in steps} == {0}


def test_http_pays_for_its_request():
    latency = Latency()
    same = {"uploaded": 1000, "input_tokens": 100, "cached_tokens": 0}
    difference = latency.first_event(http=True, **same) - latency.first_event(http=False, **same)
    assert difference == pytest.approx(latency.http_request)
