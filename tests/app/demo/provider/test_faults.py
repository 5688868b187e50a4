"""Each fault strikes where it says, and the log tells how the request ended."""

import pytest

from app.demo.provider.actions import Abort, Close, Gate, Hang, Send, Text, Wait
from app.demo.provider.faults import (
    CloseAfterwards,
    ConflictingOutput,
    DropDone,
    ErrorFrame,
    Hold,
    HttpError,
    Incomplete,
    NoResponseId,
    RenameTerminal,
    ShuffleDone,
    TerminalOutput,
    Usage,
    abort,
    close,
    connection_limit_reached,
    extra_event,
    garbage,
    previous_response_not_found,
    stall,
)
from app.demo.provider.replies import function_call, message, reasoning
from tests.support.provider import AUTH, frame, make_core

REPLY = [reasoning("gAAA"), message("hello there"), function_call("f", {"a": 1}, "call_1")]


def struck(*faults, kind="openai", reply=REPLY):
    """The actions of one request under the faults, the core and the connection."""
    core = make_core(kind, replies=[reply])
    core.faults.on_request(*faults)
    connection = core.open_connection(AUTH)
    actions = [action for _, action in connection.handle_frame(frame())]
    return actions, core, connection


def types(actions):
    return [a.event["type"] if isinstance(a, Send) else a for a in actions]


def terminal(actions):
    return actions[-1].event["response"]


def outcome(core):
    return core.log[0].outcome


@pytest.mark.parametrize(
    ("shape", "event"),
    [
        (
            None,
            {
                "type": "error",
                "status": 500,
                "error": {"type": "server_error", "code": None, "message": "m", "param": None},
            },
        ),
        (
            "status_code",
            {
                "type": "error",
                "status_code": 500,
                "error": {"type": "server_error", "code": None, "message": "m", "param": None},
            },
        ),
        (
            "no_status",
            {
                "type": "error",
                "error": {"type": "server_error", "code": None, "message": "m", "param": None},
            },
        ),
        ("flat", {"type": "error", "code": None, "message": "m", "param": None}),
    ],
)
def test_an_error_frame_before_any_event_in_each_shape(shape, event):
    actions, core, connection = struck(ErrorFrame(message="m", shape=shape))
    assert actions == [Send(event)]
    assert (outcome(core), core.log[0].status, core.log[0].events) == ("error:server_error", 500, 0)
    assert connection.latest is None


def test_an_error_as_response_failed_carries_the_code_in_the_response():
    actions, core, _ = struck(ErrorFrame(code="rate_limit_exceeded", shape="failed", after=2))
    last = actions[-1].event
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"]["code"] == "rate_limit_exceeded"
    assert outcome(core) == "failed"


def test_an_error_frame_may_carry_headers_or_be_anything():
    [with_headers], _, _ = struck(ErrorFrame(status=429, headers=(("retry-after", "7"),)))
    assert with_headers.event["headers"] == {"retry-after": "7"}
    [raw], _, _ = struck(ErrorFrame(raw={"type": "error", "status_code": 429}))
    assert raw.event == {"type": "error", "status_code": 429}


def test_the_rejections_of_the_provider_can_be_scripted():
    [refused], _, _ = struck(previous_response_not_found("resp_9"))
    assert refused.event["error"]["code"] == "previous_response_not_found"
    assert refused.event["error"]["message"] == "Previous response with id 'resp_9' not found."
    [limit], _, _ = struck(connection_limit_reached())
    assert (limit.event["status"], limit.event["error"]["code"]) == (
        400,
        "websocket_connection_limit_reached",
    )


def test_an_http_error_on_a_socket_is_a_nested_error_frame_with_status():
    fault = HttpError(429, "slow down", code="rate_limit_exceeded", headers=(("retry-after", "3"),))
    [action], core, _ = struck(fault)
    assert (action.event["status"], action.event["error"]["code"]) == (429, "rate_limit_exceeded")
    assert action.event["headers"] == {"retry-after": "3"}
    assert core.log[0].status == 429


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_cut_comes_behind_exactly_so_many_events(after):
    actions, core, _ = struck(abort(after=after))
    assert actions[-1] == Abort()
    assert len(actions) == after + 1 == core.log[0].events + 1
    assert (core.log[0].response_id is None) is (after == 0)


def test_a_cut_at_minus_one_comes_right_before_the_terminal_event():
    actions, core, _ = struck(close(1011, after=-1))
    assert types(actions)[-2:] == ["response.output_item.done", Close(1011)]
    assert outcome(core) == "closed:1011"


def test_a_cut_beyond_the_response_comes_before_the_terminal_event_too():
    actions, _, _ = struck(abort(after=10_000))
    assert types(actions)[-2:] == ["response.output_item.done", Abort()]


def test_a_cut_behind_the_first_event_of_a_type():
    actions, _, _ = struck(abort(after="response.output_text.delta"))
    assert types(actions)[-2:] == ["response.output_text.delta", Abort()]


def test_a_cut_behind_an_event_that_never_comes_is_a_mistake_of_the_test():
    with pytest.raises(ValueError, match=r"waits for 'response.audio.delta'"):
        struck(abort(after="response.audio.delta"))


def test_a_stall_is_for_ever_or_goes_on_after_its_time():
    actions, core, _ = struck(stall(after=2))
    assert (actions[-1], outcome(core)) == (Hang(None), "hung")
    actions, core, _ = struck(stall(after=2, seconds=3))
    assert (actions[2], outcome(core)) == (Hang(3), "completed")


def test_a_hold_waits_for_its_gate_and_goes_on():
    gate = Gate()
    woken = []
    gate.on_open(lambda: woken.append(1))
    actions, core, _ = struck(Hold(gate, after=1))
    assert (actions[1], outcome(core)) == (Wait(gate), "completed")
    assert woken == []
    gate.open()
    gate.on_open(lambda: woken.append(2))
    assert woken == [1, 2]


def test_garbage_and_foreign_events_stand_between_good_ones():
    actions, core, _ = struck(garbage("{oops", after=1), extra_event({"type": "x.y"}, after=2))
    assert types(actions)[:4] == [
        "response.created",
        Text("{oops"),
        "response.in_progress",
        "x.y",
    ]
    assert outcome(core) == "completed"


def test_incomplete_ends_after_whole_items():
    actions, core, connection = struck(Incomplete(items=1))
    assert types(actions)[-1] == "response.incomplete"
    assert terminal(actions)["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in terminal(actions)["output"]] == ["reasoning"]
    assert len(core.transcripts[connection.latest.response_id]) == 2
    assert outcome(core) == "incomplete"


def test_incomplete_keeps_all_items_unless_told_otherwise():
    actions, _, _ = struck(Incomplete(reason="content_filter"))
    assert len(terminal(actions)["output"]) == 3


def test_usage_can_be_left_out_or_be_anything():
    assert "usage" not in terminal(struck(Usage(None))[0])
    assert terminal(struck(Usage({"input_tokens": 84}))[0])["usage"] == {"input_tokens": 84}


def test_done_events_can_come_in_reverse_before_the_end():
    actions, core, connection = struck(ShuffleDone())
    done = [
        a.event["output_index"] for a in actions if a.event["type"] == "response.output_item.done"
    ]
    assert done == [2, 1, 0]
    kinds = [item.get("type") for item in core.transcripts[connection.latest.response_id]]
    assert kinds == ["message", "reasoning", "message", "function_call"]


def test_done_events_can_be_missing_while_the_provider_holds_the_items():
    actions, core, connection = struck(DropDone((1,)))
    assert types(actions).count("response.output_item.done") == 2
    assert len(core.transcripts[connection.latest.response_id]) == 4
    assert types(struck(DropDone())[0]).count("response.output_item.done") == 0


def test_the_terminal_output_can_be_empty_true_or_contradict():
    assert terminal(struck(TerminalOutput())[0])["output"] == []
    assert len(terminal(struck(TerminalOutput(None), kind="codex")[0])["output"]) == 3
    lie = terminal(struck(ConflictingOutput())[0])["output"]
    assert lie[2]["arguments"] != '{"a": 1}'
    assert terminal(struck(ConflictingOutput(), reply=[message("x")])[0])["output"][0]["content"][
        0
    ]["text"] == ("x (but not really)")


def test_a_conflict_does_not_change_what_is_held():
    _, core, connection = struck(ConflictingOutput())
    assert core.transcripts[connection.latest.response_id][3]["arguments"] == '{"a": 1}'


def test_no_event_has_the_response_id():
    actions, _, _ = struck(NoResponseId())
    assert all("id" not in a.event.get("response", {}) for a in actions)


def test_the_terminal_event_under_another_name():
    actions, core, _ = struck(RenameTerminal())
    assert (types(actions)[-1], outcome(core)) == ("response.done", "completed")


@pytest.mark.parametrize(("code", "action"), [(1000, Close(1000)), (None, Abort())])
def test_the_idle_connection_can_end_right_after_the_answer(code, action):
    actions, core, _ = struck(CloseAfterwards(code))
    assert types(actions)[-2:] == ["response.completed", action]
    assert outcome(core) == "completed"


def test_faults_combine():
    actions, _, _ = struck(Incomplete(items=1), Usage(None), garbage(after=1))
    assert isinstance(actions[1], Text)
    assert (types(actions)[-1], "usage" in terminal(actions)) == ("response.incomplete", False)


@pytest.mark.parametrize("fault", [abort(), ErrorFrame(), HttpError(500)])
def test_a_request_that_breaks_off_before_its_first_event_uses_up_no_reply(fault):
    _, core, connection = struck(fault)
    actions = [action for _, action in connection.handle_frame(frame())]
    assert len(terminal(actions)["output"]) == len(REPLY)
    assert len(core.log) == 2
