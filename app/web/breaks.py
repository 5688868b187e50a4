"""Breaks by their cause, and what an operator says of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from sqlalchemy import Connection, Engine

from app.analysis import breaks as analysis
from app.analysis import onset
from app.analysis.breaks import DAYS, Decided, Seen, State
from app.analysis.buckets import Buckets, cut
from app.analysis.economics import dollars
from app.analysis.waste import Sellers, Waste
from app.errors import AppError
from app.ledger import breaks as ledger
from app.ledger import series
from app.ledger.breaks import Decision, Sums, Told, Whole
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rollups import sessions
from app.ledger.rows import TurnRow, iso, to_ms
from app.web.alerts import bodies
from app.web.alerts.bodies import Body, Json, takes
from app.web.alerts.silences import end_of
from app.web.answers import JsonAnswer
from app.web.api import limit_of, one_of, parameters
from app.web.break_costs import costs
from app.web.economics import sellers_of
from app.web.shown import shown
from app.web.web import Web

OPERATOR = "operator"
"""Who decides: the dashboard is the operator's."""
BARS = 40
"""Buckets of the counts beside a group, about."""
COMPARED = 1_000
"""The newest breaks of an onset, and the last turns before it, that are asked what was new."""
NAMED = 10
"""Clients, models and sessions that are named of a group."""
_EVER = Filter(start=0, end=2**53)
_OWN = ("state", "sort", "limit")


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of groups beyond a view."""

    whole: dict[str, Whole]
    days: dict[str, list[int]]
    decisions: dict[str, Decision]
    now: int

    @classmethod
    def read(cls, connection: Connection, now: int, group: str | None = None) -> _Known:
        return cls(
            ledger.whole(connection, group),
            ledger.days(connection, now, 1 + DAYS, group),
            ledger.decisions(connection),
            now,
        )

    def state(self, group: str) -> State:
        whole, days = self.whole[group], self.days.get(group, [0] * (1 + DAYS))
        seen = Seen(whole.first_at, whole.last_at, days)
        return analysis.state_of(seen, self.decisions.get(group), self.now)

    def shown(self, group: str) -> Json:
        decided = self.decisions.get(group)
        return {
            "state": self.state(group),
            "decided": decided
            and {
                "state": decided.state,
                "at": iso(decided.at),
                "ends_at": None if decided.until is None else iso(decided.until),
                "by": decided.who,
            },
        }


@dataclass(frozen=True, slots=True)
class _More:
    """What is told of the groups of a view that are shown, and the cost of each."""

    told: dict[str, Told]
    examples: dict[str, TurnRow]
    costs: defaultdict[str, Waste]

    @classmethod
    def read(
        cls,
        connection: Connection,
        view: Filter,
        shown: Sequence[Sums],
        sellers: Sellers,
        of: Collection[str] | None = None,
    ) -> _More:
        """``of``: the groups whose cost is asked for; None: all of the view."""
        parts = list(ledger.parts(connection, view, of))
        return cls(
            ledger.told(connection, view, [one.group for one in shown], parts),
            ledger.examples(connection, view, {one.group: one.last_at for one in shown}),
            costs(connection, view, parts, sellers),
        )


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/breaks", tags=["api"])

    @api.get("", openapi_extra=parameters(*_OWN))
    def groups(request: Request) -> JsonAnswer:
        """The breaks of a view by their cause. Own parameters: `state` (repeatable), `sort`
        (`missed`, `turns`, `recent`), `limit`."""
        view, now = web.view(request, also=_OWN), to_ms(web.clock.now())
        limit = limit_of(request.query_params.get("limit"))
        wanted = [one_of("state", each, State) for each in request.query_params.getlist("state")]
        order = SORTS[one_of("sort", request.query_params.get("sort") or "missed", SORTS)]
        buckets = cut(view.start, view.end, zone=view.zone, now=now, limit=BARS)
        with reading(web.ledger) as connection:
            found = ledger.sums(connection, view, buckets.edges)
            known = _Known.read(connection, now)
            states = Counter(known.state(group) for group in found)
            kept = [one for one in found.values() if not wanted or known.state(one.group) in wanted]
            kept.sort(key=lambda one: (*order(one), one.group))
            more = _More.read(connection, view, kept[:limit], sellers_of(web))
        whole = _whole(found.values(), more.costs.values())
        return JsonAnswer(
            web.frame(view)
            | {
                "turns": whole.turns,
                "missed_tokens": whole.missed,
                "cost_usd": dollars(whole.cost_usd),
                "turns_without_price": whole.unpriced,
                "states": {state.value: states[state] for state in State},
                "count": len(kept),
                "buckets": [iso(bucket.start) for bucket in buckets.items],
                "groups": [_shown(one, known, more, buckets) for one in kept[:limit]],
            }
        )

    @api.get("/{group:path}", openapi_extra=parameters("limit", "cursor"))
    def one_group(group: str, request: Request) -> JsonAnswer:
        """One group, and its breaks in the view, newest first, by pages. Own parameters: `limit`,
        `cursor`."""
        view, now = web.view(request, also=("limit", "cursor")), to_ms(web.clock.now())
        limit = limit_of(request.query_params.get("limit"))
        cursor = request.query_params.get("cursor") or None
        buckets = cut(view.start, view.end, zone=view.zone, now=now)
        with reading(web.ledger) as connection:
            known = _known(connection, now, group)
            found = ledger.sums(connection, view, buckets.edges, group).get(group) or Sums(group)
            page = ledger.page(connection, view, group, limit=limit, cursor=cursor)
            more = _More.read(connection, view, [found], sellers_of(web), of=[group])
            if group not in more.examples:
                more.examples[group] = ledger.page(connection, _EVER, group, limit=1).rows[0]
            worst = ledger.worst(connection, view, group, limit=NAMED)
        return JsonAnswer(
            web.frame(view)
            | {
                "group": _shown(found, known, more, buckets),
                "buckets": [iso(bucket.start) for bucket in buckets.items],
                "onset": _onset(web.ledger, view, buckets, group, now) if found.turns else None,
                "by_session": [
                    {"session_key": key, "session": name, "turns": turns, "turn_id": newest}
                    for key, name, turns, newest in worst
                ],
                "rows": [shown(row) for row in page.rows],
                "next_cursor": page.next_cursor,
            }
        )

    @api.patch(
        "/{group:path}", openapi_extra=takes("state", "ends_at", "for", "seen", needed=("state",))
    )
    def decide(group: str, body: Body) -> JsonAnswer:
        """Resolve a group, mute it (until `ends_at`, `for` a duration such as `7d`, else for
        ever), or open it again. `seen` is the `at` of the decision that is known, `null` for
        none: where there is another one by now, nothing is done."""
        bodies.only(body, "state", "ends_at", "for", "seen")
        now = to_ms(web.clock.now())
        word = bodies.text(body, "state")
        if word not in set(Decided):
            known_words = ", ".join(Decided)
            raise bodies.bad("state", f"state cannot be {word[:64]!r}.", f"One of {known_words}.")
        with reading(web.ledger) as connection:
            known = _known(connection, now, group)
        before = known.decisions.get(group)
        at = None if before is None else before.at
        known.decisions[group] = Decision(word, now, _until(body, word, now), OPERATOR)
        fits = "seen" not in body or body["seen"] == (None if at is None else iso(at))
        seen = (at,) if "seen" in body else ()
        if not (fits and ledger.decide(web.ledger, group, known.decisions[group], *seen)):
            raise AppError(
                "conflict",
                "Somebody else has decided about these breaks meanwhile.",
                "What stands now is shown; decide again if it is still wanted.",
                status=409,
            )
        return JsonAnswer({"id": group} | known.shown(group))

    return api


SORTS: dict[str, Callable[[Sums], tuple[int, int]]] = {
    "missed": lambda one: (-one.missed, -one.turns),
    "turns": lambda one: (-one.turns, -one.missed),
    "recent": lambda one: (-one.last_at, -one.turns),
}


def _known(connection: Connection, now: int, group: str) -> _Known:
    known = _Known.read(connection, now, group)
    if group not in known.whole:
        raise AppError(
            "not_found",
            "There is no such group of breaks.",
            "Its rows may be older than what is kept.",
            status=404,
        )
    return known


def _whole(sums: Iterable[Sums], costs: Iterable[Waste]) -> Waste:
    """All breaks of a view; not how long they took."""
    whole = Waste()
    for one in sums:
        whole.turns += one.turns
        whole.counted += one.counted
        whole.tokens += one.missed
    for cost in costs:
        whole.priced += cost.priced
        whole.nano += cost.nano
    return whole


def _shown(one: Sums, known: _Known, more: _More, buckets: Buckets) -> Json:
    example, further, cost = more.examples[one.group], more.told[one.group], more.costs[one.group]
    told = analysis.told(one.group, example)
    whole = known.whole[one.group]
    return {
        "id": one.group,
        "by": told.by,
        **known.shown(one.group),
        "sentence": told.sentence,
        "cause": told.cause,
        "remedy": told.remedy,
        "reason": example.reason,
        "eligible": example.eligible,
        "changed_fields": list(example.changed_field_names),
        "fallback_reason": example.fallback_reason,
        "turns": one.turns,
        "sessions": further.sessions,
        "missed_tokens": one.missed if one.counted else None,
        "cost_usd": dollars(cost.cost_usd),
        "turns_without_price": one.turns - cost.priced,
        "first_seen": iso(whole.first_at),
        "last_seen": iso(whole.last_at),
        "turns_ever": whole.turns,
        "clients": [
            {"client": client, "version": version, "turns": turns}
            for (client, version), turns in further.clients.most_common(NAMED)
        ],
        "models": [
            {"model": model, "turns": turns} for model, turns in further.models.most_common(NAMED)
        ],
        "example": example.turn_id,
        "counts": [one.buckets[number] for number in range(len(buckets.items))],
    }


def _onset(engine: Engine, view: Filter, buckets: Buckets, group: str, now: int) -> Json | None:
    """Since when a group is frequent, and what was new then; held against as long a time before the
    view as the view is long."""
    whole = view.window(view.before().start, view.end)
    earlier = cut(whole.start, view.start, zone=view.zone, now=now)
    edges = (*earlier.edges[:-1], *buckets.edges)
    turns = [one.generation for one in series.continuity(engine, whole, edges)]
    with reading(engine) as connection:
        having = ledger.sessions(connection, whole, edges, group)
        active = sessions.count(connection, view)
    found = onset.onset(having, turns, active, since=len(earlier.items))
    if found is None:
        return None
    start, end = edges[found.start], edges[found.end]
    with reading(engine) as connection:
        during, before = (
            ledger.newest(connection, span, list(onset.FIELDS), limit=COMPARED, group=of)
            for span, of in (
                (view.window(start, end), group),
                (view.window(whole.start, start), None),
            )
        )
    return {
        "from": iso(start),
        "to": None if end == view.end else iso(end),
        "sessions": len(set().union(*having[found.start : found.end])),
        "suspects": [
            {
                "field": one.field,
                "value": one.value,
                "breaks": one.breaks,
                "share": one.share,
                "before": one.before,
                "sentence": one.sentence,
            }
            for one in onset.suspects(during, before)
        ],
    }


def _until(body: Json, word: str, now: int) -> int | None:
    if all(body.get(name) in (None, "") for name in ("ends_at", "for")):
        return None
    if word != Decided.MUTED:
        raise bodies.bad("ends_at", f"{word} has no end.", "Only muted has one.")
    until = end_of(body, now)
    if until <= now:
        raise bodies.bad("ends_at", "A mute must end after now.", "Give a later end.")
    return until
