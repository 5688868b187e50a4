"""The HTTP side: create, stored responses, compaction, models, errors."""

import json

import pytest

from app.demo.provider.actions import Abort, Send
from app.demo.provider.faults import ErrorFrame, HttpError, Incomplete, SseForm, abort
from app.demo.provider.latency import Latency
from app.demo.provider.replies import function_call
from tests.support.provider import AUTH, make_core, user

OTHER = {"authorization": "Bearer sk-other"}


def post(core, given="hi", headers=AUTH, path="/v1/responses", **fields):
    return core.post(headers, json.dumps({"model": "gpt-5.5", "input": given, **fields}), path)


def test_a_json_answer_is_the_terminal_response():
    core = make_core(replies=["hello"])
    reply = post(core)
    assert (reply.status, dict(reply.headers)["content-type"]) == (200, "application/json")
    body = reply.json()
    assert (body["object"], body["status"]) == ("response", "completed")
    assert body["output"][0]["content"][0]["text"] == "hello"
    assert (core.log[0].transport, core.log[0].outcome) == ("http", "completed")


def test_a_stream_is_the_same_events_as_on_a_socket():
    reply = post(make_core(replies=["hello"]), stream=True)
    types = [action.event["type"] for _, action in reply.steps]
    assert dict(reply.headers)["content-type"] == "text/event-stream; charset=utf-8"
    assert types == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_a_stored_response_is_continued_over_http():
    core = make_core(replies=["one", "two"])
    first = post(core).json()
    second = post(core, "again", previous_response_id=first["id"]).json()
    assert len(core.transcripts[second["id"]]) == 4


@pytest.mark.parametrize(("headers", "fields"), [(AUTH, {"store": False}), (OTHER, {})])
def test_what_is_not_stored_or_belongs_to_another_is_not_found(headers, fields):
    core = make_core(replies=["one"])
    first = post(core, **fields).json()
    reply = post(core, headers=headers, previous_response_id=first["id"])
    assert reply.status == 400
    assert reply.json()["error"] == {
        "message": f"Previous response with id '{first['id']}' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
    assert core.log[1].outcome == "error:previous_response_not_found"


def test_a_conversation_grows_by_itself():
    core = make_core(replies=["one", "two"])
    post(core, "a", conversation="conv_1")
    second = post(core, "b", conversation={"id": "conv_1"}).json()
    assert len(core.transcripts[second["id"]]) == 4


def test_a_background_response_is_queued_and_fetched_later():
    core = make_core(replies=["one"])
    queued = post(core, background=True).json()
    assert (queued["status"], queued["output"]) == ("queued", [])
    later = core.request("GET", f"/v1/responses/{queued['id']}", AUTH).json()
    assert (later["status"], len(later["output"])) == ("completed", 1)


def test_a_stored_response_is_fetched_listed_and_deleted_by_its_owner():
    core = make_core(replies=["one"])
    response_id = post(core).json()["id"]
    path = f"/v1/responses/{response_id}"
    assert core.request("GET", path, AUTH).json()["output"][0]["type"] == "message"
    assert core.request("GET", f"{path}/input_items", AUTH).json()["data"] == [user("hi")]
    assert core.request("GET", path, OTHER).status == 404
    assert core.request("DELETE", path, AUTH).json()["deleted"] is True
    assert core.request("GET", path, AUTH).status == 404


def test_an_unstored_response_cannot_be_fetched():
    core = make_core(replies=["one"])
    response_id = post(core, store=False).json()["id"]
    assert core.request("GET", f"/v1/responses/{response_id}", AUTH).status == 404


def test_models_are_listed():
    body = make_core(models=("a", "b")).request("GET", "/v1/models?client_version=1", AUTH).json()
    assert (body["object"], [model["id"] for model in body["data"]]) == ("list", ["a", "b"])


@pytest.mark.parametrize(
    "path",
    [
        "/v1/responses",
        "/codex/responses",
        "/backend-api/codex/responses",
        "/openai/v1/responses?api-version=preview",
    ],
)
def test_the_same_route_under_every_prefix(path):
    assert post(make_core(), path=path).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", 404), ("PUT", "/v1/responses", 405), ("GET", "/v1/responses", 405)],
)
def test_other_routes_are_refused(method, path, status):
    assert make_core().request(method, path, AUTH).status == status


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Basic abc"}, {"authorization": "Bearer "}]
)
def test_a_request_without_a_key_is_unauthorized(headers):
    assert post(make_core(), headers=headers).status == 401


def test_azures_header_is_a_key():
    assert post(make_core("azure"), headers={"api-key": "k"}).status == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_a_body_that_is_no_object_is_a_400(body):
    assert make_core().post(AUTH, body).status == 400


def test_a_scripted_status_comes_with_its_headers_and_body():
    core = make_core()
    core.faults.on_request(HttpError(429, "slow", code="x", headers=(("retry-after", "20"),)))
    reply = post(core, stream=True)
    assert (reply.status, dict(reply.headers)["retry-after"]) == (429, "20")
    assert reply.json()["error"]["code"] == "x"
    core.faults.on_request(HttpError(502, body="<html>bad gateway</html>"))
    assert post(core).body == b"<html>bad gateway</html>"


def test_an_error_in_the_midst_of_a_json_answer_is_its_answer():
    core = make_core(replies=["one"])
    core.faults.on_request(ErrorFrame(status=503, after=2))
    assert post(core).status == 503


def test_a_failed_response_is_a_200_whose_status_says_so():
    core = make_core(replies=["one"])
    core.faults.on_request(ErrorFrame(code="server_error", shape="failed", after=2))
    reply = post(core)
    assert (reply.status, reply.json()["status"]) == (200, "failed")


def test_an_incomplete_response_says_why():
    core = make_core(replies=["one"])
    core.faults.on_request(Incomplete())
    assert post(core).json()["incomplete_details"] == {"reason": "max_output_tokens"}


def test_an_error_event_in_a_stream_is_flat():
    core = make_core(replies=["one"])
    core.faults.on_request(ErrorFrame(code="server_error", message="m", after=1))
    last = list(post(core, stream=True).steps)[-1][1]
    assert last == Send({"type": "error", "code": "server_error", "message": "m", "param": None})


def test_a_cut_ends_the_steps():
    core = make_core(replies=["one"])
    core.faults.on_request(abort(after=2))
    steps = list(post(core, stream=True).steps)
    assert (len(steps), steps[-1][1]) == (3, Abort())


def test_the_form_of_the_stream_is_part_of_the_answer():
    core = make_core(replies=["one"])
    core.faults.on_request(SseForm(content_type=None))
    reply = post(core, stream=True)
    assert (reply.form.content_type, dict(reply.headers)) == (None, {})


def test_asking_for_the_end_before_the_steps_are_taken_is_a_mistake():
    core = make_core()
    reply = core.request("POST", "/v1/responses", AUTH, '{"model":"m","input":"x"}')
    with pytest.raises(RuntimeError, match="take all steps"):
        reply.finish()


def test_compact_returns_the_user_messages_and_one_compaction():
    core = make_core(replies=["one"])
    first = post(core, "a").json()
    reply = post(core, "b", path="/v1/responses/compact", previous_response_id=first["id"])
    body = reply.json()
    assert body["object"] == "response.compaction"
    assert [item["type"] for item in body["output"]] == ["message", "message", "compaction"]
    assert body["usage"]["total_tokens"] > 0
    assert core.log[1].path == "/v1/responses/compact"


def test_a_compaction_leaves_no_response_to_continue():
    core = make_core()
    body = post(core, "a", path="/v1/responses/compact").json()
    assert post(core, previous_response_id=body["id"]).status == 400


@pytest.mark.parametrize("fields", [{"stream": True}, {"store": False}, {"input": None}])
def test_compact_has_its_own_parameters(fields):
    core = make_core()
    body = json.dumps({"model": "m", "input": "x", **fields})
    assert core.post(AUTH, body, "/v1/responses/compact").status == 400


def test_compact_takes_open_calls():
    given = [user("a"), function_call("f", {}, "call_1")]
    assert post(make_core(), given, path="/v1/responses/compact").status == 200


def test_compact_can_be_made_to_fail():
    core = make_core()
    core.faults.on_request(HttpError(500))
    assert post(core, path="/v1/responses/compact").status == 500


def test_the_delay_of_a_json_answer_is_that_of_all_its_steps():
    core = make_core(replies=["one"], latency=Latency())
    assert post(core).delay > 0.6
