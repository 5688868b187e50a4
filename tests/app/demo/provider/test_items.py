"""What the provider demands of items, alone and together."""

import pytest

from app.demo.provider.errors import ApiError
from app.demo.provider.faults import HttpError
from app.demo.provider.items import REQUIRED, check_item, input_items, kind_of
from app.demo.provider.replies import function_call, message, reasoning, unknown_item
from tests.support.provider import AUTH, answer, events, make_core, output_of, user

NOTHING = frozenset()
SAMPLE = {
    "role": "user",
    "content": "x",
    "summary": [],
    "tools": [],
    "queries": [],
    "action": {},
    "operation": {},
    "output": "x",
    "approve": True,
}


def refused(given, **fields):
    connection = make_core().open_connection(AUTH)
    [event] = events(connection, given, **fields)
    assert event["status"] == 400
    return event["error"]["message"]


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, fields in REQUIRED.items() for field in fields]
)
def test_each_required_field_is_required(kind, field):
    whole = {"type": kind} | {name: SAMPLE.get(name, "x") for name in REQUIRED[kind]}
    check_item(whole, "input[0]", NOTHING)
    with pytest.raises(ApiError, match=rf"Missing required parameter: 'input\[3\]\.{field}'"):
        check_item({k: v for k, v in whole.items() if k != field}, "input[3]", NOTHING)


def test_an_item_without_type_is_a_message_if_it_has_a_role():
    assert kind_of({"role": "user", "content": "x"}) == "message"
    assert kind_of({"id": "msg_1"}) == "item_reference"
    assert kind_of({"content": "x"}) == ""


@pytest.mark.parametrize(
    ("item", "message_part"),
    [
        ("text", r"Invalid type for 'input\[0\]'"),
        ({"content": "x"}, r"Missing required parameter: 'input\[0\]\.type'"),
        ({"type": "hologram_call"}, "Invalid value: 'hologram_call'"),
        ({"role": "wizard", "content": "x"}, "Invalid value: 'wizard'"),
        ({"role": "user", "content": 3}, r"Invalid type for 'input\[0\]\.content'"),
        ({"role": "user", "content": [{"type": "output_text", "text": "x"}]}, "Invalid value"),
        ({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}, "Invalid value"),
        ({"role": "user", "content": [{"type": "input_text"}]}, r"content\[0\]\.text"),
        ({"type": "function_call", "call_id": 1, "name": "f", "arguments": "{}"}, "call_id"),
        ({"type": "reasoning", "id": "x1", "summary": []}, "begins with 'rs'"),
        ({"role": "user", "content": "x", "id": 4}, r"'input\[0\]\.id'"),
    ],
)
def test_a_bad_item_is_refused_with_where_and_why(item, message_part):
    with pytest.raises(ApiError, match=message_part):
        check_item(item, "input[0]", NOTHING)


def test_a_string_is_one_user_message():
    [item] = input_items("hi", (), NOTHING)
    assert item.value == user("hi")
    assert item.from_string


def test_input_that_is_neither_string_nor_array_is_refused():
    with pytest.raises(ApiError, match="a string or an array of items"):
        input_items(7, (), NOTHING)


def test_a_duplicate_id_in_the_reconstructed_transcript_is_refused():
    assert refused([user("a", id="msg_1"), user("b", id="msg_1")]).startswith(
        "Duplicate item found with id msg_1."
    )


def test_a_duplicate_id_is_found_across_the_chain():
    core = make_core(replies=[[message("one", id="msg_out")]])
    connection = core.open_connection(AUTH)
    first = answer(connection)
    repeated = message("one", id="msg_out", status="completed")
    [event] = events(connection, [repeated], previous_response_id=first["id"])
    assert event["error"]["message"].startswith("Duplicate item found with id msg_out.")


def test_a_local_shell_output_may_bear_the_id_of_its_call():
    connection = make_core(replies=["ok"]).open_connection(AUTH)
    call = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "action": {}}
    done = {"type": "local_shell_call_output", "id": "lsh_1", "output": "x"}
    assert answer(connection, [user("a"), call, done])["status"] == "completed"


def test_an_output_needs_its_call_in_the_transcript():
    assert refused([user("a"), output_of("call_9")]) == (
        "No tool call found for function call output with call_id call_9."
    )


def test_an_output_may_answer_a_call_of_the_previous_response():
    core = make_core(replies=[[function_call("f", {}, "call_1")], "ok"])
    connection = core.open_connection(AUTH)
    first = answer(connection)
    second = answer(connection, [output_of("call_1")], previous_response_id=first["id"])
    assert [item["type"] for item in core.transcripts[second["id"]]] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]


def test_a_call_needs_its_output_before_the_model_goes_on():
    call = function_call("f", {}, "call_1")
    assert refused([user("a"), call]) == "No tool output found for function call call_1."


def test_a_warm_up_may_leave_a_call_open():
    connection = make_core().open_connection(AUTH)
    call = function_call("f", {}, "call_1")
    assert events(connection, [user("a"), call], generate=False)[-1]["type"] == "response.completed"


def test_an_unknown_type_comes_back_only_to_the_provider_that_sent_it():
    core = make_core(replies=[[unknown_item(id="holo_1")], "ok"])
    connection = core.open_connection(AUTH)
    answer(connection)
    replay = [user("hi"), unknown_item(id="holo_1"), user("go on")]
    assert answer(connection, replay)["status"] == "completed"
    assert "Invalid value: 'hologram_call'" in refused(replay)


def test_an_item_that_was_sent_as_output_is_known_by_its_id_when_it_comes_back():
    core = make_core(replies=[[unknown_item(id="holo_1")], "ok"])
    connection = core.open_connection(AUTH)
    answer(connection)
    last = answer(connection, [user("hi"), unknown_item(id="holo_1"), user("go on")])
    assert [item.made for item in core.held(last["id"]).items] == [False, True, False, True]


def test_the_text_of_each_input_item_is_kept_as_it_was_sent():
    core = make_core(replies=["ok"])
    connection = core.open_connection(AUTH)
    item = '{ "role" :"user", "content":"caf\\u00e9", "x": 1.50e0 }'
    text = f'{{"type":"response.create","model":"m","store":false,"input":[ {item} ]}}'
    list(connection.handle_frame(text))
    assert core.held(connection.latest.response_id).texts[0] == item


def test_a_reference_stands_for_the_stored_item():
    core = make_core(replies=[[message("one", id="msg_a")], "ok"])
    connection = core.open_connection(AUTH)
    answer(connection, store=True)
    reference = {"type": "item_reference", "id": "msg_a"}
    last = answer(connection, [reference, user("b")])
    assert core.transcripts[last["id"]][0]["content"][0]["text"] == "one"


def test_a_reference_to_an_item_that_is_not_stored_is_not_found():
    core = make_core(replies=[[message("one", id="msg_a")]])
    connection = core.open_connection(AUTH)
    answer(connection)
    [event] = events(connection, [{"type": "item_reference", "id": "msg_a"}])
    assert event["status"] == 404


def test_rendering_leaves_out_what_the_model_does_not_see():
    [plain, dressed] = [
        input_items([value], ["ignored"], NOTHING)[0].rendered
        for value in (
            message("x"),
            message("x", id="msg_1", status="completed", metadata={"a": 1}, phase=None),
        )
    ]
    assert plain == dressed
    assert input_items([message("y")], [""], NOTHING)[0].rendered != plain


def test_reasoning_needs_no_id():
    connection = make_core(replies=["ok"]).open_connection(AUTH)
    assert answer(connection, [user("a"), reasoning("gAAA"), user("b")])["status"] == "completed"


def test_a_scripted_status_is_no_judgement_of_the_items():
    core = make_core()
    core.faults.on_request(HttpError(503))
    assert core.post(AUTH, '{"model":"m","input":"x"}').status == 503
