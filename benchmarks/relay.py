"""What the gateway costs, beside doing without one and beside others, in one run.

The gateway is the one that users run: ``warmline serve``, with its ledger, one worker. It stands
between a load generator and a scripted upstream whose answers have 50 events of 420 bytes; both
share one core, and what is measured has the other one. Agents hold conversations that grow, so that
Warmline continues them upstream; the peers pass the same requests on. Prints medians of interleaved
rounds, and the median of each round's ratios, which are what carries over to other machines, beside
the targets. Two thousand turns go before, which nobody counts.

    python -m benchmarks.relay [--short] [--only burst,paced] [--install-peers]

nginx is looked for in PATH; Starlette with httpx and LiteLLM in environments of their own, which
``--install-peers`` makes under .cache/peers. What is not installed is left out, LiteLLM also with
``--short``. "bare" is the least that the gateway's own packages can do, without a target.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.relaying import peers, scenarios
from benchmarks.relaying.peers import Peer
from benchmarks.relaying.processes import cores
from benchmarks.relaying.scenarios import FIGURES, Measured

OURS, DIRECT, NGINX, STARLETTE, LITELLM, BARE = (
    "Warmline", "direct", "nginx", "Starlette + httpx", "LiteLLM", "bare",
)  # fmt: skip
_SLOW = {STARLETTE: 10, LITELLM: 60}
"""They are given so many times fewer turns."""
_WARM_TURNS = 2000
"""Turns of one client before anything is counted: they last for some seconds, and what is done once
in these is no turn's. Memory is looked at behind them, since sessions that are kept take some."""

Figure = Callable[[Measured, Measured], float]
"""One of a round, by what was measured of a peer and of doing without one."""


def plain(figure: str) -> Figure:
    return lambda one, _base: getattr(one, figure)


def added(figure: str) -> Figure:
    """What a peer adds to doing without."""
    return lambda one, base: max(1.0, getattr(one, figure) - getattr(base, figure))


@dataclass
class Rounds:
    """What was measured of each peer, in rounds of all.

    Ratios are of one round, and the one in the middle is told: what else the machine does changes
    from one round to the next, and is much the same for all peers of one.
    """

    of: dict[str, list[Measured]]

    def middle(self) -> dict[str, Measured]:
        """Of each peer the one in the middle of each figure."""
        return {
            name: Measured(
                **{one: median(getattr(each, one) for each in several) for one in FIGURES},
                seen=several[-1].seen,
            )
            for name, several in self.of.items()
        }

    def ratio(self, figure: Figure, peer: str) -> float:
        """Ours by the peer's."""
        rounds = zip(self.of[OURS], self.of[peer], self.of[DIRECT], strict=True)
        return median(figure(ours, base) / figure(other, base) for ours, other, base in rounds)


@dataclass
class Report:
    missed: list[str] = field(default_factory=list)

    def ratio(
        self, label: str, value: float, target: float, *, at_least: bool = False, unit: str = "x"
    ) -> None:
        met = value >= target if at_least else value <= target
        sign = ">=" if at_least else "<="
        told = f"  {label:52} {value:>9.2f} {unit}"
        print(f"{told:70} target {sign} {target:g}: {'reached' if met else 'MISSED'}", flush=True)
        if not met:
            self.missed.append(label)

    def against(
        self,
        label: str,
        found: Rounds,
        figure: Figure,
        peer: str,
        target: float,
        *,
        at_least: bool = False,
    ) -> None:
        """Ours by the peer's, where there is that peer."""
        if peer in found.of:
            self.ratio(f"{label} / {peer}", found.ratio(figure, peer), target, at_least=at_least)


def rounds(
    there: Sequence[Peer], count: int, turns: int, work: Callable[[Peer, int], Measured]
) -> Rounds:
    found: dict[str, list[Measured]] = {peer.name: [] for peer in there}
    for _ in range(count):
        for peer in there:
            fewer = max(1, turns // _SLOW.get(peer.name, 1))
            found[peer.name].append(work(peer, fewer))
    return Rounds(found)


def told(report: Report, found: Rounds) -> None:
    middle = found.middle()
    for name, one in middle.items():
        late = f"  late {one.late:>7.0f} p99 {one.late_p99:>7.0f}" if one.late else ""
        modes = {mode.decode(): n for mode, n in one.seen.modes.items() if mode != b"-"}
        print(
            f"  {name:18} first {one.first:>8.0f} µs  total {one.total:>9.0f} µs  "
            f"{one.rate:>6.0f}/s  CPU {one.cpu:>7.0f} µs a turn{late}  {modes or ''}",
            flush=True,
        )
    # Figures of turns that were sent in full would be those of another gateway.
    seen = middle[OURS].seen
    whole = len(seen.total) - seen.modes.get(b"ws_incremental", 0)
    report.ratio("turns sent whole that open no session", whole - seen.opened, 0, unit="")


def quick_ones(there: Sequence[Peer]) -> list[Peer]:
    """Those that are worth a long run; what is bare would only send large bodies on in full."""
    return [peer for peer in there if peer.name not in (*_SLOW, BARE)]


def burst(report: Report, there: Sequence[Peer], count: int, scale: float) -> None:
    print("\n32 clients, all events at once")
    found = rounds(there, count, int(3200 * scale), scenarios.burst)
    told(report, found)
    report.against("CPU a turn", found, plain("cpu"), NGINX, 3)
    report.against("turns a second", found, plain("rate"), STARLETTE, 4, at_least=True)
    report.against("turns a second", found, plain("rate"), LITELLM, 30, at_least=True)
    if BARE in found.of:
        print(f"  {'CPU a turn / bare':52} {found.ratio(plain('cpu'), BARE):>9.2f} x")


def alone(report: Report, there: Sequence[Peer], count: int, scale: float) -> None:
    print("\none client, all events at once")
    found = rounds(there, count, int(600 * scale), scenarios.alone)
    told(report, found)
    report.against("added time to the first event", found, added("first"), NGINX, 1.5)


def paced(report: Report, there: Sequence[Peer], count: int, scale: float) -> None:
    print("\n32 streams, one event in 10 ms")
    found = rounds([p for p in there if p.paces], count, int(640 * scale), scenarios.paced)
    told(report, found)
    report.against("added latency of an event", found, added("late"), NGINX, 1.5)
    if NGINX in found.of:
        print(f"  {'CPU a turn / nginx':52} {found.ratio(plain('cpu'), NGINX):>9.2f} x")


def long(report: Report, there: Sequence[Peer], count: int, scale: float) -> None:
    quick = quick_ones(there)
    for size, target in ((1_000_000, 1.3), (10_000_000, 1.0)):
        print(f"\n{size // 1_000_000} MB transcript, continued; the others pass the whole body")

        def work(peer: Peer, turns: int, size: int = size) -> Measured:
            return scenarios.continued(peer, size, turns)

        found = rounds(quick, count, max(5, int(30 * scale)), work)
        told(report, found)
        report.against("total", found, plain("total"), NGINX, target)


def memory(report: Report, there: Sequence[Peer]) -> None:
    print(
        f"\nresident memory, MB, and the transcripts that were shown, after {_WARM_TURNS:,} turns"
    )
    for peer in there:
        if peer.process is not None:
            shown = scenarios.transcripts[peer.name] / 1e6
            print(f"  {peer.name:18} {peer.process.resident():>8.1f}   {shown:>8.1f}")
            if peer.name == OURS:
                ours = peer.process.resident() - shown
    report.ratio("resident without the transcripts", ours, 120, unit="MB")


def stalls(report: Report, there: Sequence[Peer], count: int, scale: float) -> None:
    size = 20_000_000
    print(f"\nthe latest event of other streams, ms, beside a body of {size // 1_000_000} MB")
    quick = quick_ones(there)
    worst: dict[str, float] = {}
    for _ in range(max(1, int(count * scale))):
        for kind, requests in scenarios.large_bodies(size):
            for peer in quick:
                late = scenarios.stall(peer, requests)
                worst[peer.name] = max(worst.get(peer.name, 0.0), late)
                print(f"  {peer.name:18} {late:>8.1f}   {kind}", flush=True)
    report.ratio("the latest event", worst[OURS], 50, unit="ms")


def crowd(report: Report, there: Sequence[Peer], count: int, scale: float) -> None:
    sessions = 1_000 if scale >= 1 else 300
    print(f"\n{sessions} open sessions, one event in 200 ms, a turn of each in 12 s")
    quick = quick_ones(there)
    one = rounds(quick, count, 100, scenarios.alone).middle()
    found = {peer.name: scenarios.crowd(peer, sessions, 3, 12.0) for peer in quick}
    for name, many in found.items():
        print(
            f"  {name:18} answered {many.answered}, lost {many.lost}, first event "
            f"{many.first:.0f} µs, p99 {many.first_p99:.0f}; one client {one[name].first:.0f}"
            f"; CPU {many.cpu:.0f} µs a turn",
            flush=True,
        )
    report.ratio("turns lost", found[OURS].lost, 0, unit="")
    base = one[DIRECT].first
    times = (found[OURS].first_p99 - base) / max(1.0, one[OURS].first - base)
    report.ratio("added time to first event, p99 / one client", times, 20)


SCENARIOS = {"burst": burst, "alone": alone, "paced": paced, "long": long, "stalls": stalls,
             "crowd": crowd}  # fmt: skip


def run(names: Sequence[str], count: int, scale: float) -> list[str]:
    """The targets that were missed. LiteLLM takes its time to start: only in a full run."""
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        up = peers.upstream(scratch)
        there = [peers.direct(up)]
        try:
            starts = [(NGINX, peers.nginx), (STARLETTE, peers.starlette), (BARE, peers.bare)]
            if scale >= 1 and not {"burst", "alone"}.isdisjoint(names):
                starts.append((LITELLM, peers.litellm))
            for name, start in starts:
                peer = start(up, scratch)
                if peer is None:
                    print(f"{name}: not installed")
                else:
                    there.append(peer)
            there.append(peers.warmline(up, scratch))
            print(f"load of this machine before: {os.getloadavg()[0]:.1f}")
            for peer in there:
                scenarios.alone(peer, _WARM_TURNS // _SLOW.get(peer.name, 1))
            memory(report, there)
            for name in names:
                SCENARIOS[name](report, there, count, scale)
        finally:
            for peer in there:
                peer.stop()
            up.process.stop()
    return report.missed


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--short", action="store_true", help="shorter rounds")
    options.add_argument("--rounds", type=int)
    options.add_argument("--only", default=",".join(SCENARIOS), help="of " + ", ".join(SCENARIOS))
    options.add_argument("--install-peers", action="store_true")
    given = options.parse_args()
    unknown = set(given.only.split(",")) - SCENARIOS.keys()
    if unknown:
        options.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    if given.install_peers:
        peers.install()
    gc.disable()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    os.sched_setaffinity(0, cores()[1])
    count, scale = (7, 0.25) if given.short else (7, 1.0)
    missed = run(given.only.split(","), given.rounds or count, scale)
    print("\n" + ("all targets reached" if not missed else f"missed: {', '.join(missed)}"))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
