"""Kills and outages under load: ``python -m tests.kills --kills 200``, also part of ``make soak``.

On each database the service is killed at random moments while clients send turns: amid their
answers, while it starts (so that what it recovers is left behind again), at a line or a segment of
its journal, while it deletes what is settled, before, amid and after a commit, while it ends in
good order, and twice in a row without traffic. Then, with PostgreSQL, the server is stopped under load: several times for an
instant, and once for ``--outage`` seconds.

Every turn whose end a client saw has to be in the ledger exactly once, every other one that had
begun exactly once, and the figures of the rollups have to be those of the rows. Exits 1 otherwise.
Each run takes the next seed and adds its figures to a state file; ``--seed`` repeats the moments
that were drawn, though not what the machine made of them, and adds nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from tests.support import fatal, postgres
from tests.support.children import free_ports
from tests.support.databases import fresh
from tests.support.killing import Clients, Killable, verdict
from tests.support.provider import provider
from tests.support.service import settings

STATE = Path(__file__).resolve().parents[1] / ".cache" / "kills.json"
MOMENTS = {
    "load": 5, "start": 3, "line": 3, "segment": 3, "removal": 1, "commit": 4, "idle": 1, "end": 2,
}  # fmt: skip
"""How often each is drawn."""
_NTH = {"line": 80, "segment": 8, "removal": 2, "commit": 12}
"""Up to which passage of a place the process lives. The first commit is that of what it recovers."""
RESTARTS = 20
"""Instants for which PostgreSQL is stopped."""


class Killer:
    """Kills a service at moments that ``chance`` draws."""

    def __init__(self, service: Killable, clients: Clients, chance: random.Random) -> None:
        self.service, self.clients, self.chance = service, clients, chance
        self.kills: Counter[str] = Counter()
        self.unreached = 0
        """Of the kills at a place, those that came from outside after ten seconds without it."""
        self._start = 1.0
        """Seconds that the latest start took."""

    async def kill(self) -> None:
        moment = self.chance.choices(list(MOMENTS), list(MOMENTS.values()))[0]
        if moment in fatal.PLACES:
            await self._at(moment)
        elif moment == "start":
            await self.service.begin()
            await asyncio.sleep(self.chance.uniform(0, 1.2 * self._start))
            await self.service.kill()
        elif moment == "load":
            await self._serving()
            await self.service.kill()
        elif moment == "end":
            await self._serving()
            self.service.signal(signal.SIGTERM)
            if not await self.service.has_ended(within=self.chance.uniform(0, 0.5)):
                await self.service.kill()
        else:
            self.clients.pause()
            for _ in range(2):
                await self._started()
                await asyncio.sleep(self.chance.uniform(0, 0.2))
                await self.service.kill()
            self.kills[moment] += 1
            self.clients.go_on()
        self.kills[moment] += 1

    async def _at(self, place: str) -> None:
        nth, share = self.chance.randint(1, _NTH[place]), self.chance.random()
        await self.service.begin(fatal.Death(place, nth, share))
        if await self.service.serves() and not await self.service.has_ended(within=10):
            await self.service.kill()
            self.unreached += 1

    async def _serving(self) -> None:
        """Amid the answers of a service that has just started."""
        await self._started()
        async with asyncio.timeout(120):
            await self.clients.have_answers(self.clients.count + self.chance.randint(0, 30))
        await asyncio.sleep(self.chance.uniform(0, 0.05))

    async def _started(self) -> None:
        began = time.monotonic()
        await self.service.start()
        self._start = time.monotonic() - began


class Run:
    """A service on a fresh database, its clients, and what is told of them."""

    def __init__(self, backend: str, folder: Path, database: str, upstream: str) -> None:
        key = folder / "key"
        key.write_text("ab" * 32)
        key.chmod(0o600)
        self.backend, self.database, self.turns = backend, database, folder / "turns"
        self.service = Killable(
            settings(
                folder,
                upstream,
                port=str(*free_ports(1)),
                database=database,
                key_file=str(key),
                journal_dir=str(self.turns),
            )
        )
        self.clients = Clients(self.service)
        self.faults: list[str] = []
        self.figures = {"kills": 0}

    async def kills(self, count: int, seed: int) -> None:
        killer = Killer(self.service, self.clients, random.Random(f"{self.backend} {seed}"))
        began = time.monotonic()
        async with self.clients.running(4, sockets=2):
            while (killed := killer.kills.total()) < count:
                await killer.kill()
                if killed // 20 < killer.kills.total() // 20:
                    print(f"  {killer.kills.total()} kills, {self.clients.count} turns", flush=True)
        await self.service.start()
        await self.service.end()
        self.figures["kills"] += killer.kills.total()
        moments = ", ".join(f"{name} {n}" for name, n in killer.kills.most_common())
        print(
            f"{self.backend}: {killer.kills.total()} kills in {time.monotonic() - began:.0f} s: {moments}; "
            f"{killer.unreached} places not reached"
        )
        self.tell()

    def tell(self) -> None:
        """What the ledger has, of what was sent."""
        found, clients = verdict(self.database, self.clients), self.clients
        print(
            f"  {clients.sent} requests, {clients.count} answered ({len(clients.answered)} over "
            f"HTTP, {len(clients.responses)} over WebSockets); {found.rows} rows, "
            f"{len(found.missing) + len(found.unknown)} missing, {len(found.double)} double, "
            f"{found.in_flight} in flight, {found.counted} in rollups",
            flush=True,
        )
        self.figures |= {
            "answered": clients.count,
            "rows": found.rows,
            "in flight": found.in_flight,
            "missing": len(found.missing) + len(found.unknown),
            "double": len(found.double),
        }
        if not found.is_sound:
            self.faults.append(f"{self.backend}: {found}")
        if any(self.turns.iterdir()):
            self.faults.append(f"{self.backend}: the journal was left behind")

    async def outages(self, seconds: float, seed: int) -> None:
        """PostgreSQL goes away at once, as when its machine fails, and comes back."""
        server, chance = postgres.server(), random.Random(f"outages {seed}")
        clients = self.clients
        await self.service.start()
        broken = clients.broken
        async with aiohttp.ClientSession() as http, clients.running(4, sockets=2):
            usual = await self._served(min(seconds, 20))
            for _ in range(RESTARTS):
                await asyncio.sleep(chance.uniform(0, 0.5))
                await asyncio.to_thread(server.stop, chance.choice((signal.SIGQUIT, signal.SIGINT)))
                await asyncio.to_thread(server.start)
            await self._settled(http)
            await asyncio.to_thread(server.stop)
            meanwhile = await self._served(seconds)
            status, told = await self.service.readiness(http)
            await asyncio.to_thread(server.start)
            began = time.monotonic()
            await self._settled(http)
        print(
            f"{self.backend}: {RESTARTS} restarts, then {seconds:.0f} s without a server: "
            f"{meanwhile}, before {usual}; {clients.broken - broken} turns failed; /readyz {status} "
            f"{told['status']}; all written {time.monotonic() - began:.1f} s after its return"
        )
        if clients.broken > broken or status == 200:
            self.faults.append(f"{self.backend}: the outage was felt, or was not told")
        await self.service.end()
        self.tell()

    async def _served(self, seconds: float) -> str:
        self.clients.times.clear()
        await asyncio.sleep(seconds)
        times = sorted(self.clients.times)
        assert times, "no turn was answered"
        half, most = times[len(times) // 2], times[len(times) * 95 // 100]
        rate = len(times) / seconds
        return f"{rate:.0f} turns a second, half within {half:.2f} s, 95 % within {most:.2f} s"

    async def _settled(self, http: aiohttp.ClientSession) -> None:
        """Wait until the service can write again and hardly anything waits."""
        async with asyncio.timeout(120):
            while True:
                status, told = await self.service.readiness(http)
                if status == 200 and told["ledger"]["queued"] < 200:
                    return
                await asyncio.sleep(0.05)


async def run(backend: str, kills: int, outage: float, seed: int) -> Run:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warmline-kills-")))
        database = stack.enter_context(fresh(backend, folder))
        up = await stack.enter_async_context(provider())
        one = Run(backend, folder, database, up.url)
        if kills:
            await one.kills(kills, seed)
        if outage and backend == "postgresql":
            await one.outages(outage, seed)
        return one


def add(path: Path, seed: int, runs: list[Run]) -> None:
    """Add a run's figures to those of all runs, and tell them."""
    totals = Counter(json.loads(path.read_text()) if path.is_file() else {})
    for one in runs:
        totals.update({f"{one.backend}, {name}": n for name, n in one.figures.items()})
    totals["next seed"] = seed + 1
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(totals, indent=1))
    print("in all: " + "; ".join(f"{name} {n}" for name, n in totals.items()))


def next_seed(path: Path) -> int:
    return int(json.loads(path.read_text())["next seed"]) if path.is_file() else 1


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=200, help="on each database")
    options.add_argument("--outage", type=float, default=60.0, help="seconds without PostgreSQL")
    options.add_argument("--state", type=Path, default=STATE, help="where the totals are kept")
    options.add_argument("--seed", type=int, help="draw these moments again")
    options.add_argument("--database", choices=("sqlite", "postgresql"), help="only this one")
    given = options.parse_args()
    seed = next_seed(given.state) if given.seed is None else given.seed
    print(f"kills, seed {seed}")
    backends = (given.database,) if given.database else ("sqlite", "postgresql")
    runs = [asyncio.run(run(one, given.kills, given.outage, seed)) for one in backends]
    if given.seed is None:
        add(given.state, seed, runs)
    faults = [fault for one in runs for fault in one.faults]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
