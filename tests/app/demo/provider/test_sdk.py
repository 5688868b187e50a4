"""The official SDK, as it is, is served correctly: it parses what the provider sends."""

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAI, RateLimitError

from app.demo.provider.faults import HttpError, abort
from app.demo.provider.replies import function_call, message, reasoning
from tests.support.provider import provider, provider_thread

MODEL = "gpt-5.5"


@pytest.fixture
async def served():
    first = [reasoning("gAAA", ["why"]), message("hello"), function_call("f", {"a": 1}, "call_1")]
    async with (
        provider(replies=[first, "done"]) as up,
        AsyncOpenAI(base_url=up.url, api_key="sk-test", max_retries=0) as client,
    ):
        yield up, client


async def test_a_plain_request(served):
    _, client = served
    response = await client.responses.create(model=MODEL, input="hi")
    assert (response.output_text, response.status) == ("hello", "completed")
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


async def test_a_stream(served):
    _, client = served
    text, last = "", None
    async for event in await client.responses.create(model=MODEL, input="hi", stream=True):
        last = event
        if event.type == "response.output_text.delta":
            text += event.delta
    assert (text, last.type, last.response.output_text) == ("hello", "response.completed", "hello")


async def test_the_accumulating_stream(served):
    _, client = served
    async with client.responses.stream(model=MODEL, input="hi") as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call"]


async def test_output_objects_can_be_given_back(served):
    up, client = served
    first = await client.responses.create(model=MODEL, input="hi", store=False)
    history = [{"role": "user", "content": "hi"}, *first.output]
    history.append({"type": "function_call_output", "call_id": "call_1", "output": "1"})
    second = await client.responses.create(model=MODEL, input=history, store=False)
    assert second.output_text == "done"
    assert len(up.core.transcripts[second.id]) == 6


async def test_previous_response_id(served):
    up, client = served
    first = await client.responses.create(model=MODEL, input="hi")
    output = [{"type": "function_call_output", "call_id": "call_1", "output": "1"}]
    second = await client.responses.create(model=MODEL, input=output, previous_response_id=first.id)
    assert len(up.core.transcripts[second.id]) == 6
    assert (await client.responses.retrieve(second.id)).output_text == "done"


async def test_a_socket(served):
    up, client = served
    async with client.responses.connect() as connection:
        ids = []
        for given in ("hi", [{"type": "function_call_output", "call_id": "call_1", "output": "1"}]):
            extra = {"previous_response_id": ids[-1]} if ids else {}
            await connection.response.create(model=MODEL, input=given, store=False, **extra)
            async for event in connection:
                if event.type == "response.completed":
                    ids.append(event.response.id)
                    break
    assert len(up.core.transcripts[ids[1]]) == 6
    assert [attempt.transport for attempt in up.core.log] == ["ws", "ws"]


# The SDK calls the library that it brings in a way that its newest version deprecates.
@pytest.mark.filterwarnings("ignore:connect\\(\\) must be used:DeprecationWarning")
def test_the_synchronous_socket():
    with (
        provider_thread(replies=["hello"]) as up,
        OpenAI(base_url=up.url, api_key="sk-test", max_retries=0) as client,
        client.responses.connect() as connection,
    ):
        connection.response.create(model=MODEL, input="hi", store=False)
        types = []
        for event in connection:
            types.append(event.type)
            if event.type == "response.completed":
                break
    assert types[0] == "response.created"


async def test_errors_are_the_sdks_errors(served):
    up, client = served
    with pytest.raises(BadRequestError) as refused:
        await client.responses.create(model=MODEL, input="x", previous_response_id="resp_no")
    assert refused.value.code == "previous_response_not_found"
    up.core.faults.on_request(HttpError(429, code="rate_limit_exceeded"))
    with pytest.raises(RateLimitError):
        await client.responses.create(model=MODEL, input="x")
    with pytest.raises(NotFoundError):
        await client.responses.retrieve("resp_no")


async def test_the_sdk_retries_a_broken_request():
    async with (
        provider(replies=["hello"]) as up,
        AsyncOpenAI(base_url=up.url, api_key="sk-test", max_retries=1) as client,
    ):
        up.core.faults.on_request(abort())
        assert (await client.responses.create(model=MODEL, input="x")).output_text == "hello"
        assert [attempt.outcome for attempt in up.core.log] == ["aborted", "completed"]


async def test_compaction_and_models(served):
    _, client = served
    compacted = await client.responses.compact(model=MODEL, input="hi")
    assert [item.type for item in compacted.output] == ["message", "compaction"]
    assert MODEL in [model.id async for model in client.models.list()]
