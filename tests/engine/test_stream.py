"""The events of one response, folded into what the engine keeps of them."""

import itertools
import json

import pytest

from engine.model import Usage, UsageState
from engine.stream import Fold, ended_response, read_usage

R = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
A = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "p"}]}  # fmt: skip
FC = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
USAGE = {"input_tokens": 84, "output_tokens": 16, "total_tokens": 100}


def event(type_, **more):
    return json.dumps({"type": type_, **more}).encode()


def done(index, item):
    return event("response.output_item.done", output_index=index, item=item)


def added(index, item):
    return event("response.output_item.added", output_index=index, item=item)


def ended(type_="response.completed", **response):
    return event(type_, response={"id": "r1", "status": type_.split(".")[-1], **response})


def fold(*events):
    state = Fold()
    for data in events:
        state.feed(data)
    return state


def outputs(state):
    return [json.loads(bytes(raw)) for raw in state.outputs]


# --- output items ----------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [{}, {"output": []}, {"output": None}, {"output": [R, A]}])
def test_items_come_from_their_done_events(terminal):
    state = fold(done(0, R), done(1, A), ended(**terminal))
    assert (outputs(state), state.commits) == ([R, A], True)
    assert (state.conflicts, state.lacks_items) == (False, False)


def test_items_stand_in_the_order_of_their_index():
    for order in itertools.permutations([done(0, R), done(1, A), done(2, FC)]):
        assert outputs(fold(*order, ended(output=[]))) == [R, A, FC]


def test_items_without_an_index_stand_in_order_of_arrival():
    events = [event("response.output_item.done", item=item) for item in (R, A)]
    assert outputs(fold(*events, ended())) == [R, A]


def test_the_terminal_list_may_spell_its_items_differently():
    said = {**A, "status": "completed", "content": [{"type": "output_text", "text": "p", "annotations": []}]}  # fmt: skip
    assert not fold(done(0, A), ended(output=[said])).conflicts


@pytest.mark.parametrize(
    "terminal",
    [[{**FC, "arguments": '{"a":1}'}], [{**FC, "type": "custom_tool_call"}], [R], [FC, A],
     [{"type": "function_call", "call_id": "c1", "name": "f"}], [{**FC, "id": "fc_2"}], ["text"]],
)  # fmt: skip
def test_a_terminal_list_that_contradicts_the_done_items_is_a_conflict(terminal):
    assert fold(done(0, FC), ended(output=terminal)).conflicts


def test_an_item_that_nobody_can_read_is_a_conflict():
    twice = b'{"a":1,"a":1}'
    data = b'{"type":"response.output_item.done","output_index":0,"item":' + twice + b" }"
    end = b'{"type":"response.completed","response":{"output":[{"a":1, "a":1}]}}'
    assert fold(data, end).conflicts


def test_two_different_items_at_one_place_are_a_conflict():
    assert fold(done(0, A), done(0, FC), ended(output=[])).conflicts
    assert not fold(done(0, A), done(0, A), ended(output=[])).conflicts
    unplaced = event("response.output_item.done", item=A)
    assert fold(done(1, FC), unplaced, ended(output=[])).conflicts


def test_items_of_which_no_done_event_came_are_missed():
    assert fold(ended(output=[A])).lacks_items
    assert fold(added(0, R), added(1, A), done(0, R), ended()).lacks_items
    assert fold(event("response.output_text.delta", delta="x"), ended()).lacks_items
    assert not fold(added(0, R), done(0, R), ended()).lacks_items
    assert not fold(ended()).lacks_items


def test_an_incomplete_answer_lacks_nothing_but_may_conflict():
    part = fold(added(0, A), ended("response.incomplete"))
    assert (part.commits, part.lacks_items, part.conflicts, outputs(part)) == (
        True,
        False,
        False,
        [],
    )
    assert fold(ended("response.incomplete", output=[A])).conflicts


def test_a_done_event_without_an_item_brings_none():
    state = fold(event("response.output_item.done", output_index=0), ended())
    assert state.outputs == []


def test_after_the_end_nothing_counts():
    state = fold(done(0, A), ended(output=[]), done(1, FC), ended("response.failed", id="r2"))
    state.feed(event("response.created", response={"id": "r2"}))
    assert (outputs(state), state.terminal, state.response_id) == ([A], "response.completed", "r1")


# --- ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "commits"),
    [("response.completed", True), ("response.incomplete", True), ("response.done", True),
     ("response.failed", False)],
)  # fmt: skip
def test_only_good_ends_commit(type_, commits):
    state = fold(ended(type_))
    assert (state.terminal, state.commits, state.response_id) == (type_, commits, "r1")


def test_nothing_commits_before_the_end():
    state = fold(event("response.created", response={"id": "r1"}), done(0, A))
    assert (state.terminal, state.commits, state.response_id) == (None, False, "r1")


@pytest.mark.parametrize("shape", [{"error": {"code": "c"}}, {"code": "c"}])
def test_an_error_ends_the_turn_in_both_shapes(shape):
    state = fold(event("error", **shape))
    assert (state.terminal, state.commits, state.error["code"]) == ("error", False, "c")
    assert not state.has_started


def test_a_failure_tells_its_error_and_its_tokens():
    state = fold(ended("response.failed", error={"code": "server_error"}, usage=USAGE))
    assert (state.error, state.usage.input_tokens) == ({"code": "server_error"}, 84)
    assert fold(ended("response.failed", error=None)).error is None


def test_a_text_about_an_error_is_no_error():
    state = fold(event("response.output_text.delta", delta="error"), done(0, A), ended(error=None))
    assert (state.commits, state.error) == (True, None)


def test_a_terminal_event_without_a_response_is_an_end():
    assert fold(event("response.completed")).commits
    assert fold(event("response.completed", response=[])).complete_response() is None


def test_unknown_nested_shapes_do_not_hide_the_end():
    weird = {"input_tokens": 1, "output_tokens": 2, "output_tokens_details": []}
    state = fold(ended(usage=weird, output="text", error=5, prompt_cache_diagnostics=[], model=7))
    assert (state.commits, state.usage.output_tokens, state.error, state.model) == (
        True,
        2,
        None,
        None,
    )


def test_what_the_response_says_of_itself_is_kept():
    state = fold(
        ended(model="m", service_tier="flex", prompt_cache_diagnostics={"reason": "x" * 99})
    )
    assert (state.model, state.service_tier, state.miss_reason) == ("m", "flex", "x" * 64)


@pytest.mark.parametrize(
    ("diagnosis", "word"),
    [
        (
            {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 9},
            "tools_changed",
        ),
        ({"type": "cache_miss", "reason": None}, "cache_miss"),
        ({"type": "cache_hit"}, "cache_hit"),
        ({"type": "comparison_response_not_found"}, "comparison_response_not_found"),
        ({"type": "unavailable", "reason": ""}, "unavailable"),
        ({"type": 5}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_providers_word_on_the_cache_is_the_reason_of_a_miss_or_the_type_of_its_answer(
    diagnosis, word
):
    assert word == fold(ended(prompt_cache_diagnostics=diagnosis)).miss_reason


# --- events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [b"", b"[DONE]", b"{", b"[]", b"5", b"{}", b'{"type":null}', b'{"type":5}', b'{"type":""}',
     b'{"type":"response.output_text.delta","delta":' + b"[" * 5000 + b"]" * 5000 + b"}"],
)  # fmt: skip
def test_an_event_that_cannot_be_read_is_counted_and_skipped(data):
    state = fold(data, done(0, A), ended())
    assert (state.unreadable, state.commits, outputs(state)) == (1, True, [A])


def test_known_keys_of_unknown_shape_leave_the_event_its_type():
    data = event("response.output_item.done", output_index="0", item=A)
    state = Fold()
    assert state.feed(data) == "response.output_item.done"
    assert (outputs(state), state.unreadable) == ([A], 0)


@pytest.mark.parametrize(
    "type_", ["codex.rate_limits", "responsesapi.websocket_timing", "keepalive"]
)
def test_private_events_change_nothing(type_):
    state = fold(event(type_, rate_limits={"limit_reached": True}, response={"id": "x"}))
    assert (state.has_started, state.has_output, state.terminal, state.response_id) == (
        False, False, None, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "token"),
    [({"x-codex-turn-state": "t"}, "t"), ({"x-codex-turn-state": ["t", "u"]}, "t"),
     ({"x-codex-turn-state": []}, None), ({}, None), ("text", None), (None, None)],
)  # fmt: skip
def test_the_turn_state_is_read_from_the_metadata(headers, token):
    state = fold(event("response.metadata", headers=headers))
    assert (state.turn_state, state.has_started) == (token, False)


def test_a_later_turn_state_without_a_token_keeps_the_first():
    first = event("response.metadata", headers={"x-codex-turn-state": "t"})
    assert fold(first, event("response.metadata", headers={})).turn_state == "t"


@pytest.mark.parametrize(
    ("data", "output"),
    [
        (event("response.created", response={"id": "r"}), False),
        (added(0, R), False),
        (added(0, {**A, "content": []}), False),
        (added(0, {**A, "content": [{"type": "output_text", "text": ""}, "x"]}), False),
        (added(0, "text"), False),
        (event("response.output_item.added", output_index=0), False),
        (event("response.output_text.delta", delta=""), False),
        (event("response.output_text.delta", delta=None), False),
        (event("response.output_text.delta"), False),
        (event("response.output_text.delta", delta="x"), True),
        (event("response.function_call_arguments.delta", delta="{"), True),
        (added(0, FC), True),
        (done(0, A), True),
        (done(0, {**A, "content": [{"type": "refusal", "refusal": "no"}]}), True),
        (done(0, {**R, "summary": [{"type": "summary_text", "text": "t"}]}), True),
        (done(0, {**R, "content": [{"type": "reasoning_text", "text": "t"}]}), True),
        (done(0, {"type": "compaction", "encrypted_content": "Z"}), True),
        (done(0, {"type": 5}), False),
    ],
)
def test_the_first_output_is_what_the_model_made(data, output):
    assert fold(data).has_output == output


@pytest.mark.parametrize(
    ("data", "ended_id"),
    [
        (ended(), "r1"),
        (ended("response.failed"), "r1"),
        (event("response.created", response={"id": "r1"}), None),
        (event("response.completed"), None),
        (event("response.completed", response={"id": 5}), None),
        (event("response.completed", response="r1"), None),
        (b"", None),
        (b'{"type":"response.completed","response":{"id":"r1"}', None),
    ],
)
def test_only_a_readable_terminal_event_names_the_response_that_it_ends(data, ended_id):
    assert ended_id == ended_response(data)


def test_an_id_that_is_no_text_is_no_id():
    state = fold(b'{"type":"response.completed","response":{"id":"\xff"}}')
    assert (None, True) == (state.response_id, state.commits)


def test_an_error_whose_words_are_no_text_is_an_error_without_words():
    state = fold(b'{"type":"error","error":{"code":"a","message":"\xff"}}')
    assert ("error", None, False) == (state.terminal, state.error, state.commits)


# --- answers that were not streamed -----------------------------------------------------------------


def whole(**response):
    state = Fold()
    state.feed_response(json.dumps({"id": "r1", "usage": USAGE, **response}).encode())
    return state


@pytest.mark.parametrize(
    ("status", "terminal"),
    [("completed", "response.completed"), ("incomplete", "response.incomplete"),
     ("failed", "response.failed"), ("queued", None), (None, None)],
)  # fmt: skip
def test_a_complete_response_is_read_like_its_stream(status, terminal):
    state = whole(status=status, output=[A])
    assert (state.terminal, outputs(state), state.usage.input_tokens) == (terminal, [A], 84)
    assert (state.has_output, state.conflicts, state.lacks_items) == (True, False, False)


def test_a_complete_response_without_output_has_none():
    state = whole(status="completed")
    assert (state.outputs, state.has_output) == ([], False)


def test_an_empty_terminal_list_gets_the_done_items():
    state = fold(done(1, A), done(0, R), ended(output=[], x=1.5))
    assert json.loads(state.complete_response()) == {
        "id": "r1", "status": "completed", "output": [R, A], "x": 1.5,
    }  # fmt: skip


def test_a_filled_terminal_list_stays_as_it_is():
    state = fold(done(0, A), ended(output=[A]))
    assert (
        state.complete_response()
        == json.dumps({"id": "r1", "status": "completed", "output": [A]}).encode()
    )
    assert fold().complete_response() is None


# --- usage -----------------------------------------------------------------------------------------


def test_every_reported_token_is_kept():
    usage = read_usage({
        "input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 30,
                                 "cache_write_tokens_details": {"ttl_12h_tokens": 20}},
        "output_tokens_details": {"reasoning_tokens": 5},
    })  # fmt: skip
    assert usage == Usage(100, 40, 30, 20, 10, 5, 110, UsageState.REPORTED)


@pytest.mark.parametrize(
    "value", [None, [], "text", {}, {"total_tokens": 5}, {"input_tokens": None}]
)
def test_absent_usage_is_unknown_and_not_zero(value):
    usage = read_usage(value)
    assert (usage.input_tokens, usage.output_tokens, usage.state) == (
        None,
        None,
        UsageState.MISSING,
    )


def test_a_reported_zero_is_a_number():
    usage = read_usage({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0})
    assert (usage.input_tokens, usage.cached_tokens, usage.state) == (0, None, UsageState.REPORTED)


@pytest.mark.parametrize("value", [True, "5", 1.5, -1, [], None])
def test_what_is_no_count_is_unknown(value):
    assert read_usage({"input_tokens": value, "output_tokens": 1}).input_tokens is None


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ({"input_tokens": 789, "input_tokens_details": {"cached_tokens": 9984}}, "inconsistent"),
        ({"input_tokens": 5, "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 3}},
         "inconsistent"),
        ({"output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 6}}, "inconsistent"),
        ({"input_tokens": 5, "output_tokens": 5, "total_tokens": 11}, "inconsistent"),
        ({"input_tokens": 117231, "output_tokens": 225, "total_tokens": 117456,
          "input_tokens_details": {"cached_tokens": 115584}}, "reported"),
        ({"input_tokens": 20793, "output_tokens": 2315, "total_tokens": 23108,
          "output_tokens_details": {"reasoning_tokens": 2303}}, "reported"),
        ({"input_tokens": 5, "total_tokens": 11}, "reported"),
    ],
)  # fmt: skip
def test_numbers_that_contradict_each_other_are_kept_and_flagged(value, state):
    assert read_usage(value).state == state


@pytest.mark.parametrize("colon", [":", ": "])
def test_deltas_after_the_first_output_are_told_by_their_type_alone(colon, monkeypatch):
    state = fold(event("response.output_text.delta", delta="x"))
    monkeypatch.setattr("engine.stream._head", None)  # nothing more is decoded
    raw = b'{"type"' + colon.encode() + b'"response.output_text.delta","delta":"y"}'
    assert "response.output_text.delta" == state.feed(raw)


def test_after_the_first_output_an_event_that_only_speaks_of_a_delta_is_no_delta():
    state = fold(event("response.output_text.delta", delta="x"))
    assert "response.completed" == state.feed(
        b'{"type":"response.completed","response":{"id":"r","note":"response.text.delta\\""}}'
    )
    assert ("response.completed", "r") == (state.terminal, state.response_id)
