"""Two gateways behind nginx on one PostgreSQL, as deploy/ has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from app.ledger.database import open_engine
from tests.support import postgres
from tests.support.deployed import Deployment, deployed
from tests.support.nginx import need_nginx
from tests.support.rollups import expected_whole, found_whole
from tests.support.sessions_of_agents import (
    WAYS,
    all_rows,
    audited,
    by_session,
    make_agents,
    take_turns,
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


async def written(engine: Engine, count: int) -> None:
    """Wait until the ledger has so many rows: they are written by other processes."""
    async with asyncio.timeout(30):
        while len(await asyncio.to_thread(all_rows, engine)) < count:
            await asyncio.sleep(0.05)


async def test_each_session_stays_on_its_gateway_and_is_continued_however_it_is_named(
    deployment: Deployment, engine: Engine
) -> None:
    before = len(all_rows(engine))
    async with deployment.client() as http:
        agents = make_agents(deployment, http, SESSIONS)
        await take_turns(agents, TURNS)
    assert SESSIONS >= 2 * len(WAYS)
    assert [1] * SESSIONS == [len(set(agent.served_by)) for agent in agents]
    assert {one.address for one in deployment.gateways} == {a.served_by[0] for a in agents}
    await written(engine, before + SESSIONS * TURNS)
    rows = all_rows(engine)[before:]
    expected = [FULL] + [CONTINUED] * (TURNS - 1)
    assert [expected] * SESSIONS == list(by_session(rows).values())
    result, findings = audited(engine)
    assert ([], SESSIONS * (TURNS - 1)) == (findings, result.incremental)


def test_the_sums_of_both_gateways_are_those_of_their_rows(engine: Engine) -> None:
    rows = all_rows(engine)
    assert rows
    assert expected_whole(rows, ALWAYS) == found_whole(engine, ALWAYS)
