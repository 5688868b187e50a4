"""What each agent sends, before the provider itself; what becomes of it is in test_run."""

import json
from itertools import pairwise

import pytest
from openai import AsyncOpenAI

from app.demo.agents import Agents, coder, crew, is_tidy, notes, printed, writer
from tests.support.provider import provider


async def no_pause(_seconds: float) -> None:
    return None


@pytest.fixture
async def served():
    async with (
        provider() as up,
        AsyncOpenAI(base_url=up.url, api_key="sk-test", max_retries=0) as client,
    ):
        yield up, client


async def test_the_coder_never_changes_what_it_has_sent(served):
    up, client = served
    await coder(client, "coder-1", no_pause, tasks=2)
    sent = [attempt.body["input"] for attempt in up.core.log]
    assert len(sent) == 2 * 4
    for before, now in pairwise(sent):
        assert now[: len(before)] == before


async def test_the_meta_block_stands_only_in_the_newest_result(served):
    up, client = served
    await notes(client, "notes-1", no_pause)
    outputs = [
        json.loads(item["output"])
        for item in up.core.log[-1].body["input"]
        if item["type"] == "function_call_output"
    ]
    assert [sorted(output) for output in outputs] == [["result"], ["result"], ["_meta", "result"]]


async def test_a_tidy_round_leaves_old_results_alone(served):
    up, client = served
    await notes(client, "notes-3", no_pause, tidy=True)
    sent = [attempt.body["input"] for attempt in up.core.log]
    for before, now in pairwise(sent):
        assert now[: len(before)] == before


def test_two_rounds_of_seven_are_faulty():
    assert [number for number in range(1, 16) if not is_tidy(number)] == [1, 2, 8, 9, 15]


async def test_the_writer_says_when_it_has_replaced_its_history(served):
    up, client = served
    await writer(client, "writer-1", no_pause)
    resets = [
        (number, dict(attempt.headers)["x-warmline-epoch-reset"])
        for number, attempt in enumerate(up.core.log)
        if "x-warmline-epoch-reset" in dict(attempt.headers)
    ]
    assert resets == [(3, "summarize"), (6, "summarize")]
    assert [len(up.core.log[number].body["input"]) for number, _ in resets] == [2, 2]


async def test_the_crew_shares_a_session_and_has_threads_of_its_own(served):
    up, client = served
    await crew(client, "crew-1", no_pause)
    headers = [dict(attempt.headers) for attempt in up.core.log]
    assert {each["session-id"] for each in headers} == {"crew-1"}
    assert {each["thread-id"] for each in headers} == {
        "crew-1",
        "crew-1/helper-1",
        "crew-1/helper-2",
        "crew-1/helper-3",
    }


def test_a_command_prints_the_same_each_time():
    assert printed("pytest -q tests/test_api.py") == printed("pytest -q tests/test_api.py")
    assert printed("pytest -q tests/test_api.py") != printed("pytest -q tests/test_cli.py")


async def test_a_failure_is_counted_and_told_without_content(caplog):
    agents = Agents("http://127.0.0.1:9", pace=0)

    async def habit(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt
        raise ValueError("secret content")

    with pytest.raises(KeyboardInterrupt):
        await agents._repeat("coder", habit)
    assert agents.failures == 2
    assert agents.rounds == {}
    assert caplog.messages == ["the sample agent coder failed: ValueError"] * 2
