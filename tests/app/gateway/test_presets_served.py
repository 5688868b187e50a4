"""Each preset before a provider of its flavour: the transcripts agree, and the wire is as meant."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from app.demo.provider.faults import ErrorFrame, HttpError, close
from app.demo.provider.oracle import first_difference, same_transcript
from app.presets import PRESETS
from engine.model import Policy
from tests.support.loopback import Stack
from tests.support.provider import AUTH, MODEL, Now, make_core, provider, user
from tests.support.service import running, settings

MINUTE = 60.0


class Talk:
    """A client that sends its whole history each time."""

    def __init__(self, preset: str, flavour: str, **more: Any) -> None:
        self.now = Now()
        self.core = make_core(flavour, now=self.now)
        self.stack = Stack(self.core, replace(Policy(), **{**PRESETS[preset].policy, **more}))
        self.model = MODEL
        self.history: list[dict[str, Any]] = []

    async def turn(self, text: str) -> tuple[str | None, str | None]:
        """Mode and reason; what the provider holds then is what was meant."""
        meant = [*self.history, user(text)]
        body = {"model": self.model, "input": meant, "store": False, "stream": True}
        *_, last = await self.stack.turn(body)
        if last.get("type") == "response.completed":
            response = last["response"]
            held = self.core.held(response["id"])
            meant += [item.value for item in held.output]
            assert same_transcript(held.items, meant), first_difference(held.items, meant)
            self.history = meant
        return self.stack.last.mode, self.stack.last.reason

    async def modes(self, *texts: str) -> list[str | None]:
        return [(await self.turn(text))[0] for text in texts]

    def pass_time(self, seconds: float, *, pinged: bool = False) -> None:
        """For both sides; the provider closes what is over."""
        self.now.advance(seconds)
        self.stack.clock.advance(seconds)
        for connection in self.core.live():
            if pinged:
                connection.pinged()
        self.core.expire()


FULL, NEXT = "ws_full", "ws_incremental"
SPEAKERS = ["openai", "codex", "azure", "xai", "vercel", "litellm"]


async def test_behind_one_gateway_each_upstream_is_spoken_to_as_its_preset_says(tmp_path):
    async with AsyncExitStack() as stack:
        toml, cores = "", {}
        for name in (*SPEAKERS, "http", "ollama"):
            up = await stack.enter_async_context(
                provider(name if name in SPEAKERS else "http", replies=["first", "second"])
            )
            cores[name] = up.core
            toml += f'[upstreams.{name}]\nbase_url = "{up.url}"\npreset = "{name}"\n'
        config = settings(tmp_path, "http://127.0.0.1:9/v1", toml)
        live = await stack.enter_async_context(running(config))
        for name, core in cores.items():
            history, modes = [], []
            for text in ("one", "two"):
                history.append(user(text))
                asked = {"model": MODEL, "input": history, "store": False, "stream": True}
                url = f"{live.url}/u/{name}/v1/responses"
                async with live.http.post(url, json=asked, headers=AUTH) as got:
                    lines = (await got.text()).splitlines()
                    modes.append(got.headers["x-warmline-mode"])
                events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
                done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
                history += done
                held = core.held(events[-1]["response"]["id"]).items
                assert same_transcript(held, history), (name, first_difference(held, history))
            expected = [FULL, NEXT] if name in SPEAKERS else ["http_full", "http_full"]
            assert (name, expected) == (name, modes)


@pytest.mark.parametrize("name", SPEAKERS)
async def test_a_conversation_is_continued_whoever_speaks(name):
    it = Talk(name, name)
    assert [FULL, NEXT, NEXT] == await it.modes("one", "two", "three")
    assert 1 == len(it.core.connections)


@pytest.mark.parametrize(
    ("name", "minutes"),
    [("openai", 60), ("azure", 60), ("codex", 60), ("xai", 25), ("vercel", 13), ("litellm", 60)],
)
async def test_a_connection_is_replaced_before_the_provider_ends_it(name, minutes):
    it = Talk(name, name)
    await it.modes("one", "two")
    for _ in range(minutes - 1):
        it.pass_time(MINUTE, pinged=True)
    assert (FULL, "epoch_reset") == await it.turn("three")
    assert [NEXT] == await it.modes("four")
    assert all(attempt.outcome == "completed" for attempt in it.core.log)


@pytest.mark.parametrize("name", ["xai", "vercel"])
async def test_without_the_preset_the_provider_would_have_ended_it(name):
    it = Talk("openai", name)
    await it.modes("one", "two")
    for _ in range(26):
        it.pass_time(MINUTE, pinged=True)
    assert (FULL, "connection_lost") == await it.turn("three")


async def test_a_connection_that_vercel_closed_for_silence_costs_one_full_turn():
    it = Talk("vercel", "vercel")
    await it.modes("one", "two")
    it.pass_time(5 * MINUTE)
    assert (FULL, "connection_lost") == await it.turn("three")
    assert [NEXT] == await it.modes("four")


async def test_another_model_never_meets_a_connection_of_vercels_first():
    it = Talk("vercel", "vercel")
    await it.modes("one")
    it.model = "gpt-6-sol"
    assert (FULL, "non_input_fields_changed") == await it.turn("two")
    it.model = MODEL
    assert [NEXT] == await it.modes("three")  # of the first connection, which is still there
    assert all(attempt.outcome == "completed" for attempt in it.core.log)
    assert 2 == len(it.core.live())


async def test_a_model_without_websockets_at_vercel_goes_over_http():
    it = Talk("vercel", "vercel")
    it.model = "gpt-5"
    assert ("http_full", "continuation_off") == await it.turn("one")
    assert [] == it.core.upgrades


async def test_a_frame_beyond_vercels_limit_goes_over_http():
    it = Talk("vercel", "vercel")
    await it.modes("one")
    assert ("http_full", "payload_too_large") == await it.turn("x" * 4_100_000)


async def test_an_error_of_vercels_reaches_the_client_and_ends_the_chain():
    it = Talk("vercel", "vercel")
    await it.modes("one", "two")
    it.core.faults.on_request(ErrorFrame(code="overloaded", status=503))
    await it.turn("three")
    assert (503, "overloaded") == (it.stack.last.http_status, it.stack.last.error_code)
    assert (FULL, "connection_lost") == await it.turn("three")
    assert 2 == len(it.core.connections)


async def test_a_provider_out_of_credits_is_told_as_402_and_not_held_against_its_websockets():
    it = Talk("vercel", "vercel", max_losses=1)
    it.core.faults.on_request(close(4402))
    await it.turn("one")
    assert (402, "insufficient_credits", 1) == (
        it.stack.last.http_status,
        it.stack.last.error_code,
        it.stack.last.attempts,
    )
    assert [FULL] == await it.modes("one")


async def test_an_xai_socket_that_takes_no_anchor_is_answered_in_full_each_time():
    it = Talk("xai", "xai")
    refusal = HttpError(
        400,
        "previous_response_id is not supported on this connection.",
        kind="invalid_request_error",
        param="previous_response_id",
    )
    it.core.faults.on_request(
        refusal, when=lambda attempt: "previous_response_id" in attempt.body, times=None
    )
    await it.modes("one")
    assert (FULL, "previous_response_not_found") == await it.turn("two")
    assert [FULL] == await it.modes("three")


async def test_a_history_that_litellm_would_make_up_is_never_asked_for():
    """It answers an id that it does not know as if nothing had been before."""
    it = Talk("litellm", "litellm")
    await it.modes("one", "two")
    it.stack.sockets.opened[0].drop(1000)
    assert (FULL, "connection_lost") == await it.turn("three")


@pytest.mark.parametrize(("preset", "connections"), [("litellm", 2), ("openai", 1)])
async def test_a_client_that_names_a_stored_response_and_another_model_gets_a_connection_for_it(
    preset, connections
):
    it = Talk(preset, preset)
    named: dict[str, Any] = {}
    for model in (MODEL, "gpt-6-sol"):
        body = {"model": model, "input": [user(model)], **named}
        *_, last = await it.stack.turn(body, transport="ws", socket="ws_1")
        assert model == last["response"]["model"]
        named = {"previous_response_id": last["response"]["id"]}
    assert connections == len(it.core.connections)


@pytest.mark.parametrize("preset", ["openrouter", "vllm", "ollama", "http"])
async def test_what_has_only_http_is_never_asked_for_a_websocket(preset):
    it = Talk(preset, "http")
    assert ["http_full", "http_full"] == await it.modes("one", "two")
    assert [] == it.core.upgrades


async def test_a_426_is_believed_where_the_operator_wanted_websockets():
    it = Talk("ollama", "http", continuation="websocket")
    assert ("http_full", "ws_rejected") == await it.turn("one")
    assert ["http_full"] == await it.modes("two")
    assert 1 == len(it.core.upgrades)
