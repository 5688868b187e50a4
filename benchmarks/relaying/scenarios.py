"""What is done to each peer, and what is read from it."""

from __future__ import annotations

import gzip
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.relaying.load import Client, Loop, Seen
from benchmarks.relaying.peers import PACED, SLOW, Peer
from benchmarks.relaying.processes import during
from benchmarks.relaying.script import Conversation

PATH = "/v1/responses"
FIGURES = ("first", "total", "late", "late_p99", "rate", "cpu")
_numbers = itertools.count()
TURNS_PER_SESSION = 30


def percentile(values: list[int], of_hundred: int) -> float:
    return float(sorted(values)[min(len(values) - 1, len(values) * of_hundred // 100)])


def conversation(path: str = PATH) -> Conversation:
    return Conversation(f"thread-{next(_numbers)}", path)


@dataclass(frozen=True)
class Measured:
    """Of one round, in microseconds and turns a second."""

    first: float
    total: float
    late: float
    late_p99: float
    rate: float
    cpu: float
    seen: Seen

    @classmethod
    def of(cls, seen: Seen, cpu_seconds: float) -> Measured:
        turns = len(seen.total)
        return cls(
            first=median(seen.first) / 1e3,
            total=median(seen.total) / 1e3,
            late=median(seen.late) / 1e3 if seen.late else 0.0,
            late_p99=percentile(seen.late, 99) / 1e3 if seen.late else 0.0,
            rate=turns / seen.seconds if seen.seconds else 0.0,
            cpu=cpu_seconds / turns * 1e6,
            seen=seen,
        )


def measured(peer: Peer, work: Callable[[Seen], None]) -> Measured:
    seen = Seen()

    def timed() -> None:
        began = time.monotonic()
        work(seen)
        seen.seconds = time.monotonic() - began

    spent = during(peer.process, timed)
    return Measured.of(seen, spent)


transcripts: Counter[str] = Counter()
"""Bytes of the conversations that each peer was shown; a gateway keeps no more than that."""


def many(peer: Peer, clients: int, turns: int, path: str, seen: Seen) -> None:
    """Clients that each hold conversations, one turn after the other, ``turns`` each."""
    loop = Loop()
    talks: dict[int, Conversation] = {}
    left: dict[int, int] = {}

    def go_on(client: Client) -> None:
        talk = talks[client.fileno]
        left[client.fileno] -= 1
        if left[client.fileno]:
            talk.answered()
            if talk.turns == TURNS_PER_SESSION:
                transcripts[peer.name] += len(talk.items)
                talk = talks[client.fileno] = conversation(path)
                seen.opened += 1
            loop.begin(client, talk.request())

    for _ in range(clients):
        client = Client(peer.ports(path), seen, stamps=path != PATH)
        client.ended = go_on
        talks[client.fileno], left[client.fileno] = conversation(path), turns
        loop.add(client)
        seen.opened += 1
        loop.begin(client, talks[client.fileno].request())
    loop.run()
    loop.close()
    transcripts[peer.name] += sum(len(talk.items) for talk in talks.values())


def burst(peer: Peer, turns: int) -> Measured:
    """32 clients, all events of an answer at once."""
    return measured(peer, partial(many, peer, 32, max(1, turns // 32), PATH))


def paced(peer: Peer, turns: int) -> Measured:
    """32 streams of one event in 10 ms."""
    return measured(peer, partial(many, peer, 32, max(1, turns // 32), PACED + PATH))


def alone(peer: Peer, turns: int) -> Measured:
    """One client, one turn after the other."""
    return measured(peer, partial(many, peer, 1, turns, PATH))


def continued(peer: Peer, size: int, turns: int) -> Measured:
    """One client whose long transcript goes on; its first turn is not counted."""
    talk = Conversation.long(f"thread-{next(_numbers)}", PATH, size)
    port = peer.ports(PATH)
    loop, first = Loop(), Seen()
    client = Client(port, first)
    loop.add(client)

    def turn() -> None:
        request = talk.request()
        loop.begin(client, request)
        loop.run()
        talk.answered()

    turn()
    client.seen = counted = Seen()

    def timed() -> None:
        for _ in range(turns):
            turn()

    spent = during(peer.process, timed)
    loop.close()
    transcripts[peer.name] += len(talk.items)
    return Measured.of(counted, spent)


def large_bodies(size: int) -> list[tuple[str, list[bytes]]]:
    """Requests that are the hardest to read, by what is hard in them."""
    first = Conversation.long(f"thread-{next(_numbers)}", PATH, size)
    opening = first.request()
    first.answered()
    going_on = first.request()
    edited = first.body().replace(b"tell me more of it", b"tell me less of it", 1)
    packed = Conversation(f"thread-{next(_numbers)}", PATH, first.items)
    spaced = Conversation(f"thread-{next(_numbers)}", PATH, first.items)
    apart = spaced.body().replace(b'"},{"', b'"}, {"')
    return [
        ("first turn, then continued", [opening, going_on]),
        ("an old item edited", [first.request(edited)]),
        ("gzip", [packed.request(gzip.compress(packed.body(), 1), "gzip")]),
        ("first turn, then respelled", [spaced.request(), spaced.request(apart)]),
    ]


def stall(peer: Peer, requests: list[bytes]) -> float:
    """The latest event of four paced streams beside these requests, in milliseconds."""
    seen, large = Seen(), Seen()
    loop, waiting = Loop(), iter(requests)
    client = Client(peer.ports(PATH), large)
    loop.add(client)

    def next_large(one: Client) -> None:
        request = next(waiting, None)
        if request is not None:
            loop.begin(one, request)

    talks: dict[int, Conversation] = {}

    def go_on(stream: Client) -> None:
        talks[stream.fileno].answered()
        if len(large.total) + large.lost < len(requests):
            loop.begin(stream, talks[stream.fileno].request())

    client.ended = next_large
    for _ in range(4):
        stream = Client(peer.ports(PACED + PATH), seen, stamps=True)
        stream.ended = go_on
        loop.add(stream)
        talks[stream.fileno] = conversation(PACED + PATH)
        loop.begin(stream, talks[stream.fileno].request())
    loop.at(time.monotonic() + 0.2, partial(next_large, client))
    loop.run()
    loop.close()
    transcripts[peer.name] += max(map(len, requests))
    if large.lost or seen.lost:
        raise RuntimeError(f"{peer.name}: a turn was lost")
    return max(seen.late) / 1e6


@dataclass(frozen=True)
class Crowd:
    """What many open sessions were answered; times in microseconds."""

    lost: int
    answered: int
    first: float
    first_p99: float
    cpu: float


def crowd(peer: Peer, sessions: int, turns: int, spread: float) -> Crowd:
    """``sessions`` agents, each of which takes a turn once in ``spread`` seconds, or when it can.

    The first turn of each opens its session and is not counted.
    """
    opening, seen = Seen(), Seen()
    loop, path = Loop(), SLOW + PATH
    talks: dict[int, Conversation] = {}
    running: set[int] = set()
    overdue: set[int] = set()

    def begin(client: Client) -> None:
        if client.fileno in running:
            overdue.add(client.fileno)
            return
        running.add(client.fileno)
        loop.begin(client, talks[client.fileno].request())

    def ended(client: Client) -> None:
        running.discard(client.fileno)
        talks[client.fileno].answered()
        client.seen = seen
        if client.fileno in overdue:
            overdue.discard(client.fileno)
            begin(client)

    clients = [Client(peer.ports(path), opening) for _ in range(sessions)]
    for client in clients:
        client.ended = ended
        talks[client.fileno] = conversation(path)
        loop.add(client)
    began = time.monotonic() + 0.2
    for n in range(turns):
        for at, client in enumerate(clients):
            moment = began + (n + at / sessions) * spread
            loop.at(moment, partial(begin, client))
    spent = during(peer.process, loop.run)
    loop.close()
    lost = opening.lost + seen.lost + sessions * turns - len(opening.total) - len(seen.total)
    transcripts[peer.name] += sum(len(talk.items) for talk in talks.values())
    return Crowd(
        lost=lost,
        answered=len(seen.total),
        first=median(seen.first) / 1e3,
        first_p99=percentile(seen.first, 99) / 1e3,
        cpu=spent / (sessions * turns) * 1e6,
    )
