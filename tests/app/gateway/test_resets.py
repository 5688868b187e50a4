"""A reset by key, through the whole service: page, gateway, engine and the built-in provider."""

import asyncio

import pytest
from openai import AsyncOpenAI

from app.demo.provider.actions import Gate
from app.demo.provider.faults import Hold
from tests.support.provider import MODEL, provider, user
from tests.support.service import running, settings

KEPT = '[upstreams.default]\ncontinuation = "store"\nmodels = ["gpt-*"]'


class Talk:
    """One conversation; ``name`` None: without a name of its own."""

    def __init__(self, live, client, name, *, store=False):
        self.live, self.client, self.history = live, client, []
        self.more = {} if name is None else {"prompt_cache_key": name}
        self.more["store"] = store

    async def say(self, text):
        self.history.append(user(text))
        raw = await self.client.responses.with_raw_response.create(
            model=MODEL, input=self.history, **self.more
        )
        self.history += [item.model_dump(exclude_unset=True) for item in raw.parse().output]
        return raw.headers["x-warmline-mode"], raw.headers["x-warmline-reason"]


async def reset(live, key, body=None, status=200):
    return await live.ask("POST", f"/api/sessions/{key}/epoch-reset", body, status=status)


@pytest.mark.parametrize(
    ("toml", "incremental", "full"),
    [("", "ws_incremental", "ws_full"), (KEPT, "http_incremental", "http_full")],
)
async def test_the_next_turn_goes_in_full_and_says_why(tmp_path, toml, incremental, full):
    async with (
        provider() as up,
        running(settings(tmp_path, up.url, toml)) as live,
        AsyncOpenAI(base_url=f"{live.url}/v1", api_key="sk-test") as client,
    ):
        store = bool(toml)
        named, other, unnamed = (Talk(live, client, n, store=store) for n in ("a", "b", None))
        for talk in (named, other, unnamed):
            assert [(full, "no_baseline"), (incremental, "ok")] == [
                await talk.say("one"), await talk.say("two")
            ]  # fmt: skip
        rows = await live.rows(6)
        key_of_unnamed, _, key = (row["session_key"] for row in rows[::2])

        assert {"session_key": key, "reason": "manual", "chains": 1, "under_way": False} == (
            await reset(live, key)
        )
        await reset(live, key_of_unnamed, {"reason": "tidied"})
        assert [(full, "epoch_reset"), (incremental, "ok")] == [
            await named.say("three"), await named.say("four")
        ]  # fmt: skip
        assert (full, "epoch_reset") == await unnamed.say("three")
        assert (incremental, "ok") == await other.say("three")

        found = {(row["session_key"], row["epoch_reset_reason"]) for row in await live.rows(10)}
        assert {(key, "manual"), (key_of_unnamed, "tidied")} == {
            one for one in found if one[1] is not None
        }


async def test_a_turn_under_way_ends_as_it_began_and_the_next_one_is_full(tmp_path):
    async with (
        provider() as up,
        running(settings(tmp_path, up.url)) as live,
        AsyncOpenAI(base_url=f"{live.url}/v1", api_key="sk-test") as client,
    ):
        talk, gate = Talk(live, client, "a"), Gate()
        await talk.say("one")
        [row] = await live.rows(1)
        up.core.faults.on_request(Hold(gate))
        waiting = asyncio.ensure_future(talk.say("two"))
        await up.wait_until(lambda: len(up.core.log) == 2)
        told = await reset(live, row["session_key"])
        assert (1, True) == (told["chains"], told["under_way"])
        gate.open()
        assert ("ws_incremental", "ok") == await waiting
        assert ("ws_full", "epoch_reset") == await talk.say("three")
        assert ("ws_incremental", "ok") == await talk.say("four")


async def test_what_is_not_live_here_is_not_reset(tmp_path):
    async with provider() as up:
        config = settings(tmp_path, up.url)
        async with running(config) as live:
            async with AsyncOpenAI(base_url=f"{live.url}/v1", api_key="sk-test") as client:
                await Talk(live, client, "a").say("one")
            [row] = await live.rows(1)
            key = row["session_key"]
            await reset(live, "0" * 64, status=404)
        async with running(config) as live:  # as after a restart, or at another gateway
            told = await reset(live, key, status=409)
            assert "no_live_chain" == told["error"]["code"]
            assert "gateways" in told["error"]["hint"]
