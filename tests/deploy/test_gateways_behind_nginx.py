"""Two gateways behind nginx on one PostgreSQL, as deploy/ has them."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from sqlalchemy import Engine, text

from app.alerts import state_store, store, tables
from app.ledger.database import open_engine
from tests.support import postgres
from tests.support.children import free_ports
from tests.support.deployed import TOKEN, Deployment, Gateway, deployed
from tests.support.nginx import START_SECONDS, need_nginx
from tests.support.provider_alone import HELD
from tests.support.receiver import Receiver, receiving
from tests.support.rollups import expected_whole, found_whole
from tests.support.sessions_of_agents import (
    WAYS,
    Agent,
    TurnLostError,
    all_rows,
    audited,
    by_session,
    make_agents,
    take_turns,
    written,
)
from tests.support.stack import ALWAYS

FULL, CONTINUED = ("ws_full", "no_baseline"), ("ws_incremental", "ok")
SESSIONS, TURNS = 33, 3


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    need_nginx()
    with (
        postgres.server().ledger() as database,
        deployed(tmp_path_factory.mktemp("deployed"), database) as made,
    ):
        yield made


@pytest.fixture
def engine(deployment: Deployment) -> Iterator[Engine]:
    opened = open_engine(deployment.database)
    yield opened
    opened.dispose()


async def test_each_session_stays_on_its_gateway_and_is_continued_however_it_is_named(
    deployment: Deployment, engine: Engine
) -> None:
    async with deployment.nginx.client() as http:
        agents = make_agents(deployment, http, SESSIONS)
        await take_turns(agents, TURNS)
    assert SESSIONS >= 2 * len(WAYS)
    assert [1] * SESSIONS == [len(set(agent.served_by)) for agent in agents]
    assert {one.address for one in deployment.gateways} == {a.served_by[0] for a in agents}
    await written(engine, SESSIONS * TURNS)
    rows = all_rows(engine)
    expected = [FULL] + [CONTINUED] * (TURNS - 1)
    assert [expected] * SESSIONS == list(by_session(rows).values())
    result, findings = audited(engine)
    assert ([], SESSIONS * (TURNS - 1)) == (findings, result.incremental)
    assert expected_whole(rows, ALWAYS) == found_whole(engine, ALWAYS)


# --- pages -------------------------------------------------------------------------------------

OPERATOR = {"authorization": f"Bearer {TOKEN}"}


async def test_a_page_at_either_gateway_shows_the_turns_of_both_as_they_end(
    deployment: Deployment,
) -> None:
    async with deployment.nginx.client() as http, AsyncExitStack() as stack:
        pages = [
            await stack.enter_async_context(
                http.ws_connect(f"{one.url}/api/live", headers=OPERATOR)
            )
            for one in deployment.gateways
        ]
        hello = [json.loads((await page.receive(10)).data)["type"] for page in pages]
        assert ["hello", "hello"] == hello
        agents = make_agents(deployment, http, 22, "shown")
        await take_turns(agents, 1)
        assert 2 == len({agent.served_by[0] for agent in agents})
        names = sorted(agent.name for agent in agents if "{name}" in str(agent.way.headers))
        for page in pages:
            rows = await rows_of(page, len(agents))
            assert len(agents) == len({row["turn_id"] for row in rows})
            known = [name for row in rows if (name := row["session"]) in names]
            assert sorted(set(known)) == sorted(known)


async def rows_of(page: aiohttp.ClientWebSocketResponse, count: int) -> list[dict[str, Any]]:
    """The next rows on a page; more than these would be there already."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        message = json.loads((await page.receive(20)).data)
        assert "rows" == message["type"]
        found += message["rows"]
    return found


async def test_who_logs_in_at_one_gateway_is_known_to_the_other_and_foreign_pages_to_none(
    deployment: Deployment,
) -> None:
    nginx = deployment.nginx
    async with nginx.client() as http:
        form = {"token": TOKEN, "next": "/requests"}
        own, foreign = {"origin": nginx.url}, {"origin": "https://evil.example"}
        login = f"{nginx.url}/login"
        async with http.post(login, data=form, headers=foreign, allow_redirects=False) as answer:
            assert 403 == answer.status
        async with http.post(login, data=form, headers=own, allow_redirects=False) as answer:
            assert (303, "/requests") == (answer.status, answer.headers["location"])
            cookie = answer.cookies["warmline_session"]
            assert cookie["secure"]
        known = {"cookie": f"{cookie.key}={cookie.value}"}
        for one in deployment.gateways:
            async with http.get(f"{one.url}/api/summary", headers=known) as answer:
                assert 200 == answer.status
        live = f"{nginx.url}/api/live"
        async with http.ws_connect(live, headers=known | own) as page:
            assert "hello" == json.loads((await page.receive(10)).data)["type"]
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await http.ws_connect(live, headers=known | foreign)
        other = {"host": "evil.example", **OPERATOR}
        async with http.get(f"{nginx.url}/api/summary", headers=other) as answer:
            assert "host_not_allowed" == (await answer.json())["error"]["code"]


async def test_whoever_has_no_token_gets_neither_turns_nor_pages(deployment: Deployment) -> None:
    url = deployment.nginx.url
    async with deployment.nginx.client() as http:
        async with http.get(f"{url}/api/summary") as answer:
            assert 401 == answer.status
        async with http.post(f"{url}/v1/responses", json={}) as answer:
            assert 401 == answer.status
        with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
            await http.ws_connect(f"{url}/v1/responses")


async def test_a_request_that_is_too_large_is_refused_by_the_gateway_in_its_own_words(
    deployment: Deployment,
) -> None:
    body = io.BytesIO(bytes(64 * 1024 * 1024 + 1))
    async with (
        deployment.nginx.client() as http,
        http.post(
            f"{deployment.nginx.url}/v1/responses", data=body, headers=deployment.headers
        ) as answer,
    ):
        assert (413, "request_too_large") == (
            answer.status,
            (await answer.json())["error"]["code"],
        )


def test_a_gateway_with_another_key_is_refused(deployment: Deployment, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("cd" * 32)
    third = replace(deployment.gateways[0], name="third", port=free_ports(1)[0])
    third.start(WARMLINE_KEY_FILE=str(key))
    assert third.process is not None
    assert 3 == third.process.popen.wait(START_SECONDS)
    assert "The key file is not the one this ledger was written with." in (
        third.process.log.read_text()
    )


# --- alerts ------------------------------------------------------------------------------------

CROSSINGS = 50


async def test_fifty_crossings_at_once_are_told_once(
    deployment: Deployment, engine: Engine
) -> None:
    async with deployment.nginx.client() as http, receiving() as receiver:
        agents = make_agents(deployment, http, CROSSINGS, "crossing")
        await take_turns(agents, 1)
        rule = await watch_mismatches(deployment, http, receiver, "crossing")
        for agent in agents:
            agent.forget()
        await take_turns(agents, 1, at_once=CROSSINGS)
        assert 2 == len({agent.served_by[-1] for agent in agents})
        await receiver.arrived()
        await evaluated(engine, rule, times=3)
        assert ["cache.alert.firing"] == [one.json["type"] for one in receiver.received]
        assert sum(agent.way.is_named for agent in agents) == mismatches(engine, rule)


async def watch_mismatches(
    deployment: Deployment, http: aiohttp.ClientSession, receiver: Receiver, name: str
) -> str:
    """A rule on the sessions that are named so, evaluated each second; returns its id."""
    definition = {
        "name": name,
        "signal": "mismatch_rate",
        "filter": f"q={name}-",
        "confidence": "raw",
        "threshold": 0.2,
        "window": "15m",
        "every": "1s",
        "delay": 0,
        "min_turns": 1,
        "receivers": [name],
    }
    made = {"name": name, "kind": "webhook", "url": receiver.url, "secrets": [receiver.secret]}
    await ask(deployment, http, "/api/alerts/receivers", made)
    return str((await ask(deployment, http, "/api/alerts/rules", definition))["rule"]["id"])


async def ask(
    deployment: Deployment, http: aiohttp.ClientSession, path: str, body: dict[str, Any]
) -> Any:
    async with http.post(deployment.nginx.url + path, json=body, headers=OPERATOR) as answer:
        assert 201 == answer.status, await answer.text()
        return await answer.json()


def mismatches(engine: Engine, rule: str) -> int:
    """How many the last evaluation has counted."""
    with engine.connect() as connection:
        [group] = state_store.load(connection, rule).values()
    assert group.observation is not None
    return int(group.observation.reading.measure.part)


async def evaluated(engine: Engine, rule: str, *, times: int) -> None:
    """Wait until the rule was evaluated so many times more, by whichever gateway."""
    for _ in range(times):
        before = store.get_rule(engine, rule).evaluated_until
        async with asyncio.timeout(30):
            while store.get_rule(engine, rule).evaluated_until == before:
                await asyncio.sleep(0.05)


# --- a gateway that is killed ------------------------------------------------------------------

SURVIVORS, UNDER_WAY = 33, 22


async def test_a_gateway_that_is_killed_while_it_evaluates_takes_nothing_with_it_but_its_chains(
    deployment: Deployment, engine: Engine
) -> None:
    before = len(all_rows(engine))
    async with deployment.nginx.client() as http, receiving() as receiver:
        agents = make_agents(deployment, http, SURVIVORS, "survivor")
        await take_turns(agents, 2)
        under_way = make_agents(deployment, http, UNDER_WAY, "under-way")
        ends = [asyncio.ensure_future(agent.turn(HELD)) for agent in under_way]
        await begun(under_way)
        crossing = make_agents(deployment, http, 4, "last-crossing")
        await take_turns(crossing, 1)
        rule = await watch_mismatches(deployment, http, receiver, "last-crossing")

        with engine.connect() as holding:
            holding.execute(text(f"LOCK TABLE {tables.events.name} IN EXCLUSIVE MODE"))
            crossing[0].forget()
            await crossing[0].turn()
            dead = await evaluating(engine, deployment)
            dead.kill()
        await receiver.arrived()
        await evaluated(engine, rule, times=3)
        assert ["cache.alert.firing"] == [one.json["type"] for one in receiver.received]

        lost = [agent for agent in under_way if agent.served_by[-1] == dead.address]
        assert 0 < len(lost) < len(under_way)
        deployment.open_the_gate()
        results = await asyncio.gather(*ends, return_exceptions=True)
        assert [agent in lost for agent in under_way] == [
            isinstance(result, TurnLostError) for result in results
        ]

        moved = {agent for agent in agents if agent.served_by[-1] == dead.address}
        assert 0 < len(moved) < len(agents)
        await take_turns(agents, 2)  # raises where one is lost
        [alive] = {one.address for one in deployment.gateways} - {dead.address}
        assert {alive} == {agent.served_by[-1] for agent in agents}

    dead.start()  # and brings the rows of what was under way
    await asyncio.to_thread(dead.wait)
    await written(engine, before + 4 * SURVIVORS + UNDER_WAY + 5)
    rows = all_rows(engine)[before:]
    assert len(lost) == sum(row.error_code == "process_ended" for row in rows)
    expected = [turns for agent in agents for turns in turns_of(agent, is_moved=agent in moved)]
    assert sorted(expected) == sorted(
        turns for turns in by_session(rows).values() if len(turns) > 1 and turns[1] == CONTINUED
    )
    assert [] == audited(engine)[1]
    assert expected_whole(all_rows(engine), ALWAYS) == found_whole(engine, ALWAYS)


def turns_of(agent: Agent, *, is_moved: bool) -> list[list[tuple[str, str]]]:
    """Of four turns; the other gateway does not know the session's name where it has none."""
    if not is_moved:
        return [[FULL, CONTINUED, CONTINUED, CONTINUED]]
    again = [FULL, CONTINUED]
    return [again + again] if agent.way.is_named else [again, again]


async def begun(agents: Sequence[Agent]) -> None:
    """Wait until each is being answered."""
    async with asyncio.timeout(30):
        for agent in agents:
            await agent.answering.wait()


async def evaluating(engine: Engine, deployment: Deployment) -> Gateway:
    """The gateway that has taken the rule and waits to write what became of it."""
    query = text(
        "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE relation = CAST(:table AS regclass) AND NOT granted"
    )
    async with asyncio.timeout(30):
        while True:
            with engine.connect() as connection:
                found = connection.execute(query, {"table": tables.events.name}).scalars().all()
            if found:
                [name] = found
                return next(one for one in deployment.gateways if one.name == name)
            await asyncio.sleep(0.02)
