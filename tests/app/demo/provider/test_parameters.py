"""Parameters: which there are, and what they may be."""

import json

import pytest

from app.demo.provider.parameters import compaction_threshold, writes_are_reported
from tests.support.provider import AUTH, events, make_core

GOOD = {"model": "gpt-5.5", "input": "hi"}


def post(kind="openai", **fields):
    return make_core(kind).post(AUTH, json.dumps({**GOOD, **fields}))


@pytest.mark.parametrize("name", ["type", "generate", "stream_id", "frobnicate"])
def test_an_unknown_parameter_of_a_post_is_a_400(name):
    reply = post(**{name: "x"})
    assert reply.status == 400
    assert reply.json() == {
        "error": {
            "message": f"Unknown parameter: '{name}'.",
            "type": "invalid_request_error",
            "param": name,
            "code": "unknown_parameter",
        }
    }


def test_a_frame_has_its_own_parameters_but_not_every_one():
    connection = make_core().open_connection(AUTH)
    assert events(connection, stream=True, client_metadata={})[-1]["type"] == "response.completed"
    assert events(connection, frobnicate=1)[0]["error"]["code"] == "unknown_parameter"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": 5}, "model"),
        ({"store": "yes"}, "store"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"name": "x"}]}, "tools[0].type"),
        ({"max_output_tokens": True}, "max_output_tokens"),
        ({"instructions": 7}, "instructions"),
        ({"client_metadata": {"a": 1}}, "client_metadata"),
        ({"previous_response_id": "resp_1", "conversation": "conv_1"}, "previous_response_id"),
    ],
)
def test_an_ill_typed_parameter_is_a_400_that_names_it(fields, param):
    reply = post(**fields)
    assert (reply.status, reply.json()["error"]["param"]) == (400, param)


def test_null_is_the_same_as_absent():
    assert post(store=None, tools=None, previous_response_id=None).status == 200


def test_a_model_is_required():
    reply = make_core().post(AUTH, '{"input":"hi"}')
    assert reply.json()["error"]["code"] == "missing_required_parameter"


def test_something_to_answer_is_required():
    reply = make_core().post(AUTH, '{"model":"m"}')
    assert (reply.status, reply.json()["error"]["param"]) == (400, "input")


@pytest.mark.parametrize("fields", [{}, {"store": True}])
def test_the_codex_backend_needs_store_false(fields):
    reply = post("codex", stream=True, **fields)
    assert (reply.status, reply.json()["error"]["message"]) == (400, "Store must be set to false")


def test_the_codex_backend_needs_a_stream_over_http():
    reply = post("codex", store=False)
    assert (reply.status, reply.json()["error"]["message"]) == (400, "Stream must be set to true")
    assert post("codex", store=False, stream=True).status == 200


def test_the_codex_backend_refuses_store_true_on_a_socket_too():
    connection = make_core("codex").open_connection(AUTH)
    assert events(connection, store=True)[0]["status"] == 400


def test_azure_refuses_cache_options_for_older_models():
    options = {"ttl": "30m"}
    assert post("azure", prompt_cache_options=options).status == 400
    assert post("azure", prompt_cache_options=options, model="gpt-5.6-sol").status == 200
    assert post("openai", prompt_cache_options=options).status == 200


def test_background_does_not_go_over_a_socket():
    connection = make_core().open_connection(AUTH)
    assert events(connection, background=True)[0]["error"]["param"] == "background"


@pytest.mark.parametrize("lane", ["", "a b", "é", "x" * 257])
def test_a_lane_has_a_plain_name(lane):
    connection = make_core().open_connection(AUTH)
    assert events(connection, stream_id=lane)[0]["error"]["code"] == "invalid_stream_id"


@pytest.mark.parametrize(
    ("model", "reported"),
    [("gpt-5.5", False), ("gpt-5.6-sol", True), ("gpt-6-sol", True), ("o3", False)],
)
def test_cache_writes_are_reported_from_gpt_5_6_on(model, reported):
    assert writes_are_reported(model) is reported


def test_the_threshold_of_server_side_compaction():
    entry = {"type": "compaction", "compact_threshold": 5000}
    assert compaction_threshold({"context_management": [entry]}) == 5000
    assert compaction_threshold({"context_management": [{"type": "other"}]}) is None
    assert compaction_threshold({}) is None
