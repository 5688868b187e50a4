"""The provider as a whole: flavours, log, bounds, determinism."""

import json

import pytest

from app.demo.provider.connection import UpgradeRefused
from app.demo.provider.core import Limits, Provider
from app.demo.provider.replies import Reply, message
from tests.support.provider import AUTH, Now, answer, events, frame, make_core, user


def test_an_unknown_flavour_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="openai, codex, azure"):
        Provider("mistral", now=Now())


def test_two_providers_answer_the_same_requests_with_the_same_bytes():
    def run():
        connection = make_core().open_connection(AUTH)
        first = events(connection, [user("a")])
        last = first[-1]["response"]["id"]
        return first + events(connection, [user("b")], previous_response_id=last)

    assert run() == run()


def test_the_transcript_is_the_chain_of_inputs_and_outputs():
    core = make_core(replies=["one", "two", "three"])
    connection = core.open_connection(AUTH)
    last = None
    for text in "abc":
        last = answer(connection, [user(text)], previous_response_id=last)["id"]
    roles = [item["role"] for item in core.transcripts[last]]
    assert roles == ["user", "assistant"] * 3
    assert len(core.transcripts) == 3
    with pytest.raises(KeyError):
        core.transcripts["resp_unknown"]


def test_the_log_has_what_arrived_as_it_arrived():
    core = make_core(replies=["one"])
    headers = [("Authorization", "Bearer k"), ("X-Codex-Turn", "t1"), ("OpenAI-Beta", "b")]
    connection = core.open_connection(headers, "/codex/responses")
    text = frame([user("hi")], client_metadata={"turn_id": "t"})
    list(connection.handle_frame(text))
    [attempt] = core.log
    assert attempt.frame == text
    assert attempt.headers == (
        ("authorization", "Bearer k"),
        ("x-codex-turn", "t1"),
        ("openai-beta", "b"),
    )
    assert (attempt.header("X-Codex-Turn"), attempt.header("x-none")) == ("t1", None)
    assert (attempt.transport, attempt.connection, attempt.nth) == ("ws", "conn_0", 0)
    assert attempt.path == "/codex/responses"
    assert json.loads(attempt.input_texts[0]) == user("hi")
    assert attempt.response_id == connection.latest.response_id
    assert attempt.usage == core.held(attempt.response_id).response["usage"]
    assert not attempt.incremental


def test_an_incremental_attempt_is_told_by_its_frame():
    core = make_core(replies=["one", "two"])
    connection = core.open_connection(AUTH)
    first = answer(connection)
    answer(connection, previous_response_id=first["id"])
    assert [attempt.incremental for attempt in core.log] == [False, True]


def test_an_upgrade_without_a_key_is_unauthorized():
    core = make_core()
    with pytest.raises(UpgradeRefused) as refused:
        core.open_connection({})
    assert refused.value.reply.status == core.upgrades[0].status == 401


def test_accounts_of_one_key_are_different_customers():
    core = make_core(replies=["one"])
    account = {**AUTH, "chatgpt-account-id": "acc_1"}
    first = answer(core.open_connection(account), store=True)
    assert events(core.open_connection(AUTH), previous_response_id=first["id"])[0]["status"] == 400


def test_live_connections_are_those_not_closed():
    core = make_core()
    first, second = core.open_connection(AUTH), core.open_connection(AUTH)
    first.close()
    assert core.live() == [second]


def test_a_long_running_provider_keeps_only_the_latest():
    core = make_core(limits=Limits(kept_responses=3))
    gone = core.open_connection(AUTH)
    gone.close()
    connection = core.open_connection(AUTH)
    for _ in range(5):
        answer(connection, store=True)
    assert [attempt.index for attempt in core.log] == [2, 3, 4]
    assert len(core.transcripts) == 3
    assert core.connections == [connection]
    assert core.open_connection(AUTH).id == "conn_2"


def test_a_forgotten_response_is_still_continued_on_its_connection():
    core = make_core(limits=Limits(kept_responses=1))
    first, second = core.open_connection(AUTH), core.open_connection(AUTH)
    one = answer(first)
    answer(second)
    assert one["id"] not in core.transcripts
    assert answer(first, previous_response_id=one["id"])["status"] == "completed"


def test_open_calls_can_be_allowed():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    connection = make_core(limits=Limits(require_outputs=False)).open_connection(AUTH)
    assert answer(connection, [user("a"), call])["status"] == "completed"


def test_missing_ids_and_statuses_are_filled_unless_the_reply_is_verbatim():
    bare = message("x")
    core = make_core(replies=[[bare], Reply((bare,), verbatim=True)])
    connection = core.open_connection(AUTH)
    filled = answer(connection)["output"][0]
    assert (filled["id"][:4], filled["status"]) == ("msg_", "completed")
    assert answer(connection)["output"] == [bare]


def test_a_replys_own_usage_is_sent():
    core = make_core(replies=[Reply((message("x"),), usage={"input_tokens": 7})])
    assert answer(core.open_connection(AUTH))["usage"] == {"input_tokens": 7}


def test_the_codex_backend_lists_no_output_at_the_end_but_keeps_it():
    core = make_core("codex", replies=["one"])
    connection = core.open_connection(AUTH)
    got = events(connection)
    assert got[-1]["response"]["output"] == []
    assert [e["type"] for e in got].count("response.output_item.done") == 1
    assert len(core.transcripts[connection.latest.response_id]) == 2


def test_a_server_without_websockets_refuses_every_upgrade_with_426():
    core = make_core("http")
    with pytest.raises(UpgradeRefused) as caught:
        core.open_connection(AUTH)
    assert caught.value.reply is not None
    assert (426, 426) == (caught.value.reply.status, core.upgrades[-1].status)


def test_limits_are_the_flavours_unless_they_are_given():
    assert 4 * 1024 * 1024 == make_core("vercel").limits.frame_bytes
    assert 25 * 60 == make_core("xai").limits.connection_seconds
    assert Limits() == make_core("openai").limits
    given = Limits(frame_bytes=7)
    assert given == make_core("vercel", limits=given).limits
