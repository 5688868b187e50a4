"""The embedded session with its own transports, over sockets, on the built-in provider."""

from __future__ import annotations

import pytest

from app.demo.provider import faults
from app.demo.provider.oracle import same_transcript
from engine.embed import ResponsesSession
from engine.errors import TurnFailed
from tests.support.embedded import CONTINUED, converted, gave, said
from tests.support.provider import MODEL, provider

TOOLS = [{"type": "function", "name": "exec_command", "parameters": {"type": "object"}}]
REQUEST = {"model": MODEL, "tools": TOOLS, "include": ["reasoning.encrypted_content"]}


class Agent:
    """A tool loop on a real server."""

    def __init__(self, server, url: str) -> None:
        self.core = server.core
        self.facts = []
        self.history = []
        self.session = ResponsesSession(
            url, identity="agent-7", api_key="sk-test", on_turn=self.facts.append
        )

    async def ask(self, text: str) -> None:
        """Ask, and answer calls until the model has said something."""
        self.history.append(said(text))
        while True:
            async for event in self.session.send(REQUEST, self.history):
                last = event
            assert "response.completed" == last["type"]
            output = self.session.last_output
            held = self.core.held(self.facts[-1].response_id).items
            assert same_transcript(held, [*self.history, *output])
            self.history.extend(converted(item) for item in output)
            assert self.session.record(self.history)
            calls = [item for item in output if item["type"] == "function_call"]
            if not calls:
                return
            self.history.extend(gave(call["call_id"]) for call in calls)

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        return [(str(facts.mode), str(facts.reason)) for facts in self.facts]


@pytest.mark.parametrize("kind", ["openai", "codex"])
async def test_a_tool_loop_is_continued_over_real_sockets(kind):
    async with provider(kind) as up:
        agent = Agent(up, up.codex_url if kind == "codex" else up.url)
        async with agent.session:
            await agent.ask("run ls 3 times")
            await agent.ask("run ls 2 times in parallel")
        assert [("ws_full", "no_baseline"), *[CONTINUED] * 5] == agent.outcomes
        assert {False} == {attempt.body["store"] for attempt in up.core.log}


async def test_an_upstream_without_websockets_is_used_over_http():
    async with provider("openai") as up:
        up.core.faults.on_upgrade(faults.RefuseUpgrade(426), times=None)
        agent = Agent(up, up.url)
        async with agent.session:
            await agent.ask("run ls")
        assert {("http_full", "ws_rejected")} == set(agent.outcomes)


async def test_a_refused_credential_is_raised():
    async with provider("openai") as up:
        up.core.faults.on_upgrade(faults.RefuseUpgrade(401, code="invalid_api_key"))
        agent = Agent(up, up.url)
        async with agent.session:
            with pytest.raises(TurnFailed, match="invalid_api_key"):
                await agent.ask("hello")


async def test_sticky_routing_is_kept_for_the_turns_of_one_message_of_the_user():
    async with provider("codex") as up:
        agent = Agent(up, up.codex_url)
        async with agent.session:
            await agent.ask("run ls 2 times")
            await agent.ask("thank you")
        states = [
            (attempt.body.get("client_metadata") or {}).get("x-codex-turn-state")
            for attempt in up.core.log
        ]
        first, second, third, other = states
        assert (None, None) == (first, other)
        assert second is not None
        assert second == third


async def test_sticky_routing_is_kept_over_http_too():
    async with provider("codex") as up:
        up.core.faults.on_upgrade(faults.RefuseUpgrade(426), times=None)
        agent = Agent(up, up.codex_url)
        async with agent.session:
            await agent.ask("run ls 2 times")
            await agent.ask("thank you")
        states = [attempt.header("x-codex-turn-state") for attempt in up.core.log]
        first, second, third, other = states
        assert (None, None) == (first, other)
        assert second is not None
        assert second == third


async def test_an_answer_of_two_megabytes_is_taken():
    async with provider("openai", replies=["long " * 400_000]) as up:
        agent = Agent(up, up.url)
        async with agent.session:
            await agent.ask("tell me all")
            await agent.ask("thank you")
        assert [("ws_full", "no_baseline"), CONTINUED] == agent.outcomes
