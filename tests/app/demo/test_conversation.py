import pytest
from openai import AsyncOpenAI, OpenAIError, RateLimitError

from app.demo.conversation import INSTRUCTIONS, Conversation, answer, command_of
from app.demo.provider.cache import MINIMUM, tokens_of
from app.demo.provider.faults import HttpError, close
from tests.support.provider import provider


@pytest.fixture
async def served():
    async with (
        provider() as up,
        AsyncOpenAI(base_url=up.url, api_key="sk-test", max_retries=0) as client,
    ):
        yield up, client


async def test_every_request_replays_the_whole_history(served):
    up, client = served
    talk = Conversation(client, "a", model="gpt-5.5")
    requests = await talk.work("run `ls` 2 times", lambda command: f"printed by {command}")
    assert requests == 3
    sent = [attempt.body["input"] for attempt in up.core.log]
    assert [len(items) for items in sent] == sorted(len(items) for items in sent)
    assert sent[1][: len(sent[0])] == sent[0]
    assert sent[2][: len(sent[1])] == sent[1]
    outputs = [item["output"] for item in sent[2] if item["type"] == "function_call_output"]
    assert outputs == ["printed by ls", "printed by ls"]


async def test_requests_say_what_an_agent_without_state_says(served):
    up, client = served
    await Conversation(client, "a", model="gpt-5.5").say("hello")
    attempt = up.core.log[0]
    assert attempt.body["store"] is False
    assert attempt.body["include"] == ["reasoning.encrypted_content"]
    assert attempt.body["prompt_cache_key"] == "a"
    assert dict(attempt.headers)["x-warmline-session"] == "a"


async def test_headers_of_its_own_name_the_session_instead(served):
    up, client = served
    talk = Conversation(client, "a", model="gpt-5.5", headers={"thread-id": "t"})
    await talk.say("hello", **{"x-warmline-epoch-reset": "summarize"})
    headers = dict(up.core.log[0].headers)
    assert headers["thread-id"] == "t"
    assert headers["x-warmline-epoch-reset"] == "summarize"
    assert "x-warmline-session" not in headers


async def test_a_broken_answer_is_an_error_and_not_history(served):
    up, client = served
    up.core.faults.on_request(close(after=3))
    talk = Conversation(client, "a", model="gpt-5.5")
    with pytest.raises(OpenAIError, match="without a whole answer"):
        await talk.say("hello")
    assert [item["role"] for item in talk.history] == ["user"]


async def test_a_refused_request_is_the_sdks_error(served):
    up, client = served
    up.core.faults.on_request(HttpError(429, "Slow down.", kind="rate_limit_error"))
    with pytest.raises(RateLimitError, match=r"Slow down\."):
        await Conversation(client, "a", model="gpt-5.5").say("hello")


def test_the_instructions_are_long_enough_for_the_prompt_cache():
    assert tokens_of(len(INSTRUCTIONS)) > MINIMUM


def test_a_call_is_answered_under_its_id():
    call = {"type": "function_call", "call_id": "c1", "arguments": '{"command": "ls -l"}'}
    assert command_of(call) == "ls -l"
    assert answer(call, "out") == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "out",
    }
