"""What breaks add up to in plain Python, to hold their sums against."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, select

from app.analysis.waste import Waste, loss_of
from app.ledger import breaks, store
from app.ledger.break_groups import group_of
from app.ledger.conditions import matcher
from app.ledger.database import WRITES, reading
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rollups.contribution import DAY, HOUR, MINUTE
from app.ledger.rows import COLUMNS, TurnRow
from app.web.break_costs import costs
from tests.support.rollups import FIRST, Model
from tests.support.rows import make_row

_PARTED = {"mode": "ws_full", "reason": "prefix_mismatch", "eligible": True}
_LOGGED = {"mode": None, "reason": None, "eligible": False}
_NAMES = {
    "client": ["codex", "unknown"],
    "source": ["import:codex"],
    "model": ["gpt-5.6-sol"],
    "break": ["f1", "unknown", "verdict:persistent"],
}
_OTHERS = {"verdict": ["persistent"], "fingerprint": ["f1"], "session": ["a"]}


def instant(randomly: random.Random) -> int:
    hours = randomly.choice([0, 1, 2, 7, 23, 24, 25, 47, 48, 60])
    return FIRST + hours * HOUR + randomly.choice([0, 1, 30, 59]) * MINUTE


def rows(randomly: random.Random, number: int) -> list[TurnRow]:
    """Turns of sixty, within three days; most are breaks of a few groups, sessions and hours."""
    return [_row(randomly) for _ in range(number)]


def _row(randomly: random.Random) -> TurnRow:
    one = randomly.choice
    at, figures = instant(randomly), [None, 0, 900, 40_000, 300_000]
    given, written = one([None, 0, 32_000, 32_001, 150_000, 300_000]), one(figures)
    return make_row(
        turn_id=f"t{randomly.randrange(60)}",
        started_at=at,
        ended_at=at,
        recorded_at=at + one([0, HOUR]),
        session=one("abc"),
        source=one(["gateway", "gateway", "import:codex"]),
        client=one([None, "codex"]),
        client_version=one("12"),
        # The price of one of them is another one for some hours of each day.
        model=one(["gpt-5.6-sol", "claude-sonnet-4-5", "deepseek-v4-pro", None]),
        fingerprint=one([None, "f1", "f2"]),
        cache_verdict=one(["hit", "persistent", None]),
        missed_tokens=one(figures),
        input_tokens=given,
        cached_tokens=given and 0,
        cache_write_tokens=written,
        cache_write_long_tokens=None if written is None else one([0, written]),
        **one([{}, _PARTED, _PARTED, _LOGGED]),
    )


def views(randomly: random.Random) -> Iterator[Filter]:
    """Of all, of windows on the hour and beside it, and by what sums know and do not know."""
    yield Filter(start=FIRST - DAY, end=FIRST + 5 * DAY)
    for names in ({}, {}, _NAMES, _NAMES, _OTHERS):
        start, end = sorted(instant(randomly) for _ in range(2))
        told = {
            n: (randomly.choice(names[n]),)
            for n in randomly.sample(sorted(names), min(1, len(names)))
        }
        yield Filter(
            start=start,
            end=max(end, start + 1),
            by="recorded" if names and randomly.random() < 0.2 else "started",
            **({"include": told} if randomly.random() < 0.5 else {"exclude": told}),
        )


class Breaks(Model):
    """Also judges."""

    def judge(self, some: list[TurnRow]) -> None:
        verdicts = {
            row.turn_id: store.Verdict(row.cache_verdict, None, row.missed_tokens)
            for row in self._there(some)
        }
        with self.engine.execution_options(**WRITES).begin() as connection:
            store.put_verdicts(connection, verdicts)


def kept(engine: Engine) -> list[TurnRow]:
    """The rows there are, in the order of their writing."""
    query = select(*(turns.c[name] for name in COLUMNS)).order_by(turns.c.id)
    with engine.connect() as connection:
        return [TurnRow.of(values) for values in connection.execute(query)]


def expected(known: Sequence[TurnRow], view: Filter, edges: Sequence[int]) -> dict[str, Any]:
    matches = matcher(view)
    by_group: defaultdict[str, list[TurnRow]] = defaultdict(list)
    for row in known:
        group = group_of(row)
        at = row.recorded_at if view.by == "recorded" else row.started_at
        if group is not None and view.start <= at < view.end and matches(row):
            by_group[group].append(row)
    return {group: _told(some, view, edges) for group, some in by_group.items()}


def _told(some: list[TurnRow], view: Filter, edges: Sequence[int]) -> dict[str, Any]:
    cost = Waste()
    for row in some:
        cost.add(loss_of(row, None))
    times = [row.recorded_at if view.by == "recorded" else row.started_at for row in some]
    places = (min(max(bisect_right(edges, at) - 1, 0), len(edges) - 2) for at in times)
    return {
        "turns": len(some),
        "counted": sum(row.missed_tokens is not None for row in some),
        "missed": sum(row.missed_tokens or 0 for row in some),
        "last_at": max(row.started_at for row in some),
        "buckets": Counter(places),
        "sessions": len({row.session_key for row in some}),
        "clients": Counter((row.client, row.client_version) for row in some),
        "models": Counter(row.model for row in some),
        "cost": (cost.priced, cost.nano),
        "example": max(
            enumerate(some), key=lambda place: (place[1].started_at, place[0])
        )[1].turn_id,
    }  # fmt: skip


def found(connection: Connection, view: Filter, edges: Sequence[int]) -> dict[str, Any]:
    sums = breaks.sums(connection, view, edges)
    parts = list(breaks.parts(connection, view, None))
    more = breaks.told(connection, view, sums, parts)
    last = {group: one.last_at for group, one in sums.items()}
    shown = breaks.examples(connection, view, last)
    cost = costs(connection, view, parts, {})
    return {
        group: {
            "turns": one.turns,
            "counted": one.counted,
            "missed": one.missed,
            "last_at": one.last_at,
            "buckets": one.buckets,
            "sessions": more[group].sessions,
            "clients": more[group].clients,
            "models": more[group].models,
            "cost": (cost[group].priced, cost[group].nano),
            "example": shown[group].turn_id,
        }
        for group, one in sums.items()
    }


def expected_ever(known: Sequence[TurnRow], now: int) -> dict[str, Any]:
    times: defaultdict[str, list[int]] = defaultdict(list)
    hours: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in known:
        group = group_of(row)
        if group is not None:
            times[group].append(row.started_at)
            hours[group].add((row.session_key, now // HOUR - row.started_at // HOUR))
    days = {
        group: [sum(ago // 24 == day for _, ago in some) for day in range(2)]
        for group, some in hours.items()
    }
    return {
        "whole": {
            group: breaks.Whole(len(some), min(some), max(some)) for group, some in times.items()
        },
        "days": {group: some for group, some in days.items() if any(some)},
    }


def found_ever(engine: Engine, now: int) -> dict[str, Any]:
    with reading(engine) as connection:
        return {"whole": breaks.whole(connection), "days": breaks.days(connection, now, 2)}
