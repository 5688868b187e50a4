"""The setting ``freeze``, from the settings file through the gateway to what the provider holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import WSMsgType

from app.demo.provider.core import Provider
from app.demo.provider.replies import function_call
from app.ledger.audit import Result, Verdict, audit
from app.ledger.filters import Filter
from tests.support.provider import AUTH, MODEL, provider, user
from tests.support.service import Running, running, settings

CALLS = [[function_call("look", {"n": n}, f"call_{n}")] for n in range(4)]
SEEN = [json.dumps({"rows": n, "_meta": {"turn": n}}) for n in range(4)]
BARE = [json.dumps({"rows": n}) for n in range(4)]
TOML = '[upstreams.default]\ncontinuation = "{}"\n'
ALWAYS = Filter(0, 1 << 52)
Json = dict[str, Any]


async def posted(live: Running, body: Json) -> list[Json]:
    url = f"{live.url}/v1/responses"
    async with live.http.post(url, json={**body, "stream": True}, headers=AUTH) as got:
        lines = (await got.text()).splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


async def framed(live: Running, body: Json) -> list[Json]:
    """On a socket of its own each time; the chain lives on."""
    events: list[Json] = []
    async with live.http.ws_connect(f"{live.url}/v1/responses", headers=AUTH) as socket:
        await socket.send_json({"type": "response.create", **body})
        async for message in socket:
            assert message.type is WSMsgType.TEXT
            events.append(json.loads(message.data))
            if events[-1]["type"] == "response.completed":
                break
    return events


async def conversation(
    live: Running, core: Provider, send: Callable[..., Any], **fields: Any
) -> tuple[list[Json], list[str]]:
    """Four turns in which the metadata moves on; rows, oldest first, and the outputs last held."""
    history = [user("Go.")]
    for number in range(4):
        events = await send(live, {"model": MODEL, "input": history, **fields})
        history.extend(events[-1]["response"]["output"])
        for item in history:
            if item["type"] == "function_call_output":
                item["output"] = json.dumps({"rows": json.loads(item["output"])["rows"]})
        history.append(
            {"type": "function_call_output", "call_id": f"call_{number}", "output": SEEN[number]}
        )
    held = core.held(events[-1]["response"]["id"]).items
    values = [item.value for item in held]
    rows = (await live.rows(4))[::-1]
    return rows, [one["output"] for one in values if one["type"] == "function_call_output"]


def told(rows: list[Json], *columns: str) -> list[Any]:
    return [
        [row[name] for name in columns] if len(columns) > 1 else row[columns[0]] for row in rows
    ]


def verdicts(live: Running) -> dict[Verdict, int]:
    result = Result()
    assert live.service.web.engine is not None
    assert [] == list(audit(live.service.web.engine, ALWAYS, result))
    return dict(result.verdicts)


async def test_metadata_that_moves_on_breaks_every_turn_without_the_setting(tmp_path):
    toml = TOML.format("websocket") + 'freeze = "off"\n'
    async with provider(replies=CALLS) as up, running(settings(tmp_path, up.url, toml)) as live:
        rows, held = await conversation(live, up.core, posted, store=False)
    assert ["no_baseline", "ok", "prefix_mismatch", "prefix_mismatch"] == told(rows, "reason")
    assert [0, 0, 0, 0] == told(rows, "frozen_items")
    assert [BARE[0], BARE[1], SEEN[2]] == held


@pytest.mark.parametrize("send", [posted, framed])
async def test_with_it_every_turn_is_continued_and_the_provider_holds_what_it_saw(tmp_path, send):
    toml = TOML.format("websocket") + 'freeze = ["_meta"]\n'
    async with provider(replies=CALLS) as up, running(settings(tmp_path, up.url, toml)) as live:
        rows, held = await conversation(live, up.core, send, store=False)
        proof = verdicts(live)
    assert ["ws_full"] + ["ws_incremental"] * 3 == told(rows, "mode")
    assert [[1, 0], [1, 0], [1, 1], [1, 2]] == told(rows, "items_sent", "frozen_items")
    assert SEEN[:3] == held
    assert {Verdict.VERIFIED: 3} == proof


async def test_kept_responses_are_continued_over_what_is_frozen(tmp_path):
    toml = TOML.format("store") + 'freeze = ["_meta"]\n'
    async with provider(replies=CALLS) as up, running(settings(tmp_path, up.url, toml)) as live:
        rows, held = await conversation(live, up.core, posted)
        proof = verdicts(live)
    assert ["http_full"] + ["http_incremental"] * 3 == told(rows, "mode")
    assert [[1, 0], [1, 0], [1, 1], [1, 2]] == told(rows, "items_sent", "frozen_items")
    assert SEEN[:3] == held
    assert {Verdict.VERIFIED: 3} == proof


async def test_observed_turns_say_what_would_be_frozen_and_go_as_they_came(tmp_path):
    toml = TOML.format("observe") + 'freeze = ["_meta"]\n'
    async with provider(replies=CALLS) as up, running(settings(tmp_path, up.url, toml)) as live:
        rows, held = await conversation(live, up.core, posted, store=False)
    assert ["http_full"] * 4 == told(rows, "mode")
    assert ["ws_full"] + ["ws_incremental"] * 3 == told(rows, "shadow_mode")
    assert [0, 0, 1, 2] == told(rows, "frozen_items")
    assert [BARE[0], BARE[1], SEEN[2]] == held
