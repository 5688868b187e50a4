"""Many sessions through nginx and two gateways: ``python -m tests.deploy.many_sessions``.

What the test does with some dozens, with as many sessions as are wanted, and its figures. Exits with
1 where a session left its gateway, a turn that could be continued was not, or one was lost.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from app.ledger.database import open_engine
from tests.support import postgres
from tests.support.deployed import Deployment, deployed
from tests.support.rollups import expected_whole, found_whole
from tests.support.sessions_of_agents import (
    all_rows,
    audited,
    by_session,
    make_agents,
    take_turns,
    written,
)
from tests.support.stack import ALWAYS


async def run(deployment: Deployment, sessions: int, turns: int, at_once: int) -> int:
    engine = open_engine(deployment.database)
    began = time.monotonic()
    async with deployment.nginx.client() as http:
        agents = make_agents(deployment, http, sessions)
        await take_turns(agents, turns, at_once=at_once)
    took = time.monotonic() - began
    await written(engine, sessions * turns)
    late = time.monotonic() - began - took
    rows = all_rows(engine)
    left = sum(len(set(agent.served_by)) > 1 for agent in agents)
    per_gateway = Counter(agent.served_by[0] for agent in agents)
    found = by_session(rows)
    outcomes = Counter(pair for pairs in found.values() for pair in pairs[1:])
    firsts = Counter(pairs[0] for pairs in found.values())
    continued = outcomes["ws_incremental", "ok"]
    result, findings = audited(engine)
    whole = expected_whole(rows, ALWAYS) == found_whole(engine, ALWAYS)
    engine.dispose()
    print(f"sessions: {len(found)}, on the gateways: {sorted(per_gateway.values())}")
    print(
        f"turns: {len(rows)} of {sessions * turns} in {took:.1f} s, {len(rows) / took:.0f} a second"
    )
    print(f"rows: the last one {late:.1f} s after the last turn; rollups equal the rows: {whole}")
    print(f"first turns: {dict(firsts)}")
    print(f"later turns: {dict(outcomes)}; {continued / outcomes.total():.2%} continued")
    print(f"sessions that left their gateway: {left}")
    print(f"audit: {result.incremental} continued turns, {len(findings)} not proven")
    fine = whole and not left and not findings and continued == sessions * (turns - 1)
    return 0 if fine and len(rows) == sessions * turns else 1


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=1_000)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--at-once", type=int, default=40, help="turns under way at a time")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name, postgres.server().ledger() as database:
        folder = Path(name)
        folder.chmod(0o755)
        with deployed(folder, database) as deployment:
            return asyncio.run(run(deployment, given.sessions, given.turns, given.at_once))


if __name__ == "__main__":
    sys.exit(main())
