"""Sessions of a view, one session with its turns, and how a turn differs from the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import add
from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy import Connection

from app.analysis import lanes, runs
from app.analysis.continuity import Share
from app.analysis.difference import differences
from app.analysis.lanes import letter
from app.errors import AppError
from app.ledger import cursors, queries
from app.ledger import sessions as ledger
from app.ledger.cells import Continuity, Cost, TokenTotals
from app.ledger.database import reading
from app.ledger.families import SORTS, Families, Family, Place, families, head_of
from app.ledger.filters import Filter
from app.ledger.rollups import sessions as sums
from app.ledger.rollups.contribution import COUNTS, SESSION_SUMS
from app.ledger.rollups.sessions import SessionSums
from app.ledger.rows import TurnRow, iso, money
from app.ledger.sessions import Stripe, Turns
from app.web.answers import JsonAnswer
from app.web.api import limit_of, one_of, parameters
from app.web.shown import shown, witness
from app.web.web import Web

STRIP = 200
"""Turns of a session that a list shows."""
LANES = 1_500
"""Turns of a page of lanes: less than 200 kB."""
MOST = 10_000
"""Turns of a session that its residency is told from, the last ones."""
AGENTS = 50
"""Sub-agents that a session names."""
CONTEXT = 200
"""Turns that one may go on from, before those that are shown."""

Json = dict[str, Any]
_LIST, _LANES = ("sort", "limit", "cursor"), ("limit", "cursor")


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/sessions", tags=["api"])

    @api.get("", openapi_extra=parameters(*_LIST))
    def listed(request: Request) -> JsonAnswer:
        """The sessions of a view, sub-agents rolled up under their roots, by pages. Own
        parameters: `sort` (`recent`, `missed`, `mismatches`, `turns`, `cost`), `limit`,
        `cursor`."""
        view = web.view(request, also=_LIST)
        limit = limit_of(request.query_params.get("limit"))
        sort = one_of("sort", request.query_params.get("sort") or "recent", SORTS)
        after = _place(request.query_params.get("cursor"))
        with reading(web.ledger) as connection:
            found = families(connection, view, sort, limit=limit, after=after)
            rows = _listed(connection, view, found)
        return JsonAnswer(
            web.frame(view)
            | {
                "sort": sort,
                "count": found.count,
                "sessions_in_view": found.sessions,
                "idle": len(found.idle),
                "letters": lanes.LETTERS,
                "sessions": rows,
                "next_cursor": None if found.next is None else _cursor(found.next),
            }
        )

    @api.get("/{session_key}", openapi_extra=parameters())
    def one(session_key: str, request: Request) -> JsonAnswer:
        """A session: who it is, its figures in the view, its residency and its sub-agents."""
        view = web.view(request)
        with reading(web.ledger) as connection:
            life = _life(connection, session_key)
            own = ledger.of_session(view, session_key)
            figures = sums.of(connection, view, [session_key])
            missed = ledger.missed(connection, own)
            found = ledger.strips(connection, own, [session_key], limit=MOST)[session_key]
            related = _related(connection, view, life[0])
        latest, first, last = life
        return JsonAnswer(
            web.frame(view)
            | {
                "session": _who(latest)
                | {"first_seen": iso(first), "last_seen": iso(last)}
                | related,
                "figures": _figures(figures, missed),
                "residency": _residency(found),
            }
        )

    @api.get("/{session_key}/turns", openapi_extra=parameters(*_LANES))
    def turns(session_key: str, request: Request) -> JsonAnswer:
        """The turns of a session as its lanes draw them, the last ones first by pages, each page
        in the order in which they began. Own parameters: `limit`, `cursor`."""
        view = web.view(request, also=_LANES)
        given = request.query_params.get("limit")
        limit = min(LANES, limit_of(given)) if given else LANES
        cursor = request.query_params.get("cursor") or None
        with reading(web.ledger) as connection:
            own = ledger.of_session(view, session_key)
            found = ledger.turns_of(
                connection, own, session_key, limit=limit, context=CONTEXT, cursor=cursor
            )
        return JsonAnswer(web.frame(view) | {"letters": lanes.LETTERS} | _lanes(found))

    @api.get("/{session_key}/turns/{turn_id}")
    def turn(session_key: str, turn_id: str) -> JsonAnswer:
        """A turn, the one that it goes on from, and what differs between them."""
        row = queries.one(web.ledger, turn_id)
        if row is None or row.session_key != session_key:
            raise AppError(
                "not_found",
                "This session has no such turn.",
                "It may be older than what is kept.",
                status=404,
            )
        with reading(web.ledger) as connection:
            rows = ledger.around(connection, row, limit=CONTEXT)
        before = lanes.before_each([*rows, row])[turn_id]
        told = [] if before is None else differences(before, row)
        return JsonAnswer(
            {
                "row": shown(row) | witness(row),
                "before": None if before is None else shown(before),
                "named": before is not None
                and before.response_id is not None
                and before.response_id == row.previous_response_id,
                "differences": [
                    {"about": one.about, "sentence": one.sentence, "notable": one.notable}
                    for one in told
                ],
            }
        )

    return api


def _cursor(place: Place) -> str:
    number, key = place
    return f"{cursors.write(-number)}.{key}"


def _place(cursor: str | None) -> Place | None:
    if not cursor:
        return None
    number, _, key = cursor.partition(".")
    (place,) = cursors.read(number, 1)
    return -place, key


def _life(connection: Connection, key: str) -> tuple[TurnRow, int, int]:
    found = ledger.life(connection, key)
    if found is None:
        raise AppError(
            "not_found",
            "There is no such session.",
            "Its rows may be older than what is kept.",
            status=404,
        )
    return found


def _listed(connection: Connection, view: Filter, found: Families) -> list[Json]:
    keys = [
        member.session_key for family in found.page for member in family.members if member.turns
    ]
    known = {one.session_key: one for one in sums.of(connection, view, keys)} if keys else {}
    missed = ledger.missed(connection, view, keys) if keys else {}
    # Of a root that has no turn here, its sub-agent that was seen last is shown.
    shown_of = {family.key: _shown_of(family) for family in found.page}
    strips = ledger.strips(connection, view, list(shown_of.values()), limit=STRIP)
    rows = []
    for family in found.page:
        key = shown_of[family.key]
        own, idle = strips[key], found.idle.get(key)
        # None where only sums are kept.
        last = own[-1] if own else (ledger.life(connection, key) or (None,))[0] if idle else None
        of = [known[member.session_key] for member in family.members if member.turns]
        named = known[key] if idle is None else idle
        rows.append(
            {
                "session_key": family.key,
                "session": named.session if family.root is None else family.root[1],
                "tenant": last and last.tenant if family.root is None else family.root[0],
                "root": None if family.root is None else family.root[1],
                "client": last and last.client,
                "model": last and last.model,
                "sub_agents": family.sub_agents,
                "figures": _figures(of, {key: missed[key] for key, *_ in of if key in missed}),
                "strip": _strip(
                    own,
                    0 if idle else known[key].sums[0],
                    of_root=key == family.key,
                ),
                "idle": None
                if idle is None
                else {"before": iso(idle.before), "after": iso(idle.after)},
            }
        )
    return rows


def _shown_of(family: Family) -> str:
    with_turns = [member for member in family.members if member.turns]
    own = [member for member in with_turns if member.session_key == family.key]
    some = own or with_turns or family.members
    return max(some, key=lambda one: (one.last_at, one.session_key)).session_key


def _strip(rows: Sequence[Stripe], turns: int, *, of_root: bool) -> Json:
    told = runs.residency(rows)
    return {
        "turns": "".join(map(_letter, rows)),
        "left_out": max(0, turns - len(rows)),
        "of_root": of_root,
        "runs": told.runs,
        "mean_run": told.mean_run,
        "longest_run": told.longest_run,
    }


def _letter(row: TurnRow | Stripe) -> str:
    return letter(row.kind, row.status, row.mode, row.eligible)


def _who(row: TurnRow) -> Json:
    names = ("session_key", "session", "tenant", "client", "client_version", "model", "upstream")
    return {name: getattr(row, name) for name in (*names, "source", "reasoning_effort")}


def _related(connection: Connection, view: Filter, latest: TurnRow) -> Json:
    """The session's root, or its own sub-agents."""
    root = latest.root_session
    own = latest.session
    of = None if root in (None, own) else head_of(connection, (latest.tenant, root or ""))
    agents = (
        []
        if own is None
        else ledger.agents_of(connection, view, (latest.tenant, own), limit=AGENTS + 1)
    )
    return {
        "root": None if root in (None, own) else {"session_key": of, "session": root},
        "sub_agents": [
            {
                "session_key": one.session_key,
                "session": one.session,
                "model": one.model,
                "last_seen": iso(one.started_at),
            }
            for one in agents[:AGENTS]
        ],
        "further_sub_agents": len(agents) > AGENTS,
    }


def _figures(some: Sequence[SessionSums], missed: dict[str, int]) -> Json:
    """As ``/api/summary`` has them. Sums over nothing are unknown, not zero."""
    added = [0] * len(SESSION_SUMS)
    for one in some:
        added = list(map(add, added, one.sums))
    known = dict(zip(SESSION_SUMS, added, strict=True))
    continuity = Continuity(*(known[name] for name in COUNTS))
    tokens = TokenTotals(
        turns=known["usage_turns"],
        unknown=known["generation"] - known["usage_turns"],
        inconsistent=known["inconsistent"],
        input=known["input"],
        cached=known["cached"],
        cache_write=known["cache_write"] if known["write_turns"] else None,
        output=known["output"],
        reasoning=known["reasoning"],
    )
    cost = Cost(known["cost"], known["priced"])
    reported = bool(tokens.turns)
    return {
        "turns": known["turns"],
        "first_seen": iso(min(one.first_at for one in some)) if some else None,
        "last_seen": iso(max(one.last_at for one in some)) if some else None,
        "continuation": {name: known[name] for name in COUNTS}
        | {
            "incremental_rate": continuity.incremental_rate,
            "break_rate": continuity.break_rate,
            "mismatch_rate": continuity.mismatch_rate,
        },
        "tokens": {
            "rows_with_usage": tokens.turns,
            "rows_without_usage": tokens.unknown,
            "input": tokens.input if reported else None,
            "cached": tokens.cached if reported else None,
            "cache_write": tokens.cache_write,
            "non_cached": tokens.non_cached if reported else None,
            "cached_ratio": tokens.cached_ratio,
            "output": tokens.output if reported else tokens.output or None,
        },
        "missed_tokens": sum(missed.values()) if missed else None,
        "cost_usd": None if cost.usd is None else money(cost.usd),
        "turns_with_price": cost.priced,
    }


def _residency(rows: Sequence[Stripe]) -> Json:
    told = runs.residency(rows)
    return {
        "turns": _share(told.turns),
        "input_tokens": _share(told.input),
        "time_ms": _share(told.time),
        "runs": told.runs,
        "mean_run": told.mean_run,
        "longest_run": told.longest_run,
        "first_break_ms": told.first_break,
        "breaks": told.breaks,
        "returned": told.returned,
        "mean_return_ms": told.mean_return,
        "told_from": len(rows),
        "cut": len(rows) >= MOST,
    }


def _share(share: Share) -> Json:
    return {"incremental": share.part, "of": share.whole, "share": share.rate}


COLUMNS = (
    "turn_id", "at", "duration", "letter", "chain", "epoch", "connection", "reason", "reset",
    "input", "cached", "missed", "gap", "life", "fallback",
)  # fmt: skip


def _lanes(found: Turns) -> Json:
    """Rows of numbers, and lists of the words that they stand for: ten thousand turns are many."""
    before = lanes.before_each([*found.context, *found.rows])
    base = found.rows[0].started_at if found.rows else 0
    words: dict[str, _Words] = {
        name: _Words()
        for name in ("chain", "connection", "reason", "epoch_reset_reason", "fallback_reason")
    }
    rows = []
    for row in found.rows:
        gap = lanes.gap(before[row.turn_id], row)
        chain, connection, reason, reset, fallback = (
            of.number(getattr(row, name)) for name, of in words.items()
        )
        rows.append(
            [
                row.turn_id,
                row.started_at - base,
                None if row.duration_ms is None else round(row.duration_ms),
                _letter(row),
                chain,
                row.epoch,
                connection,
                reason,
                reset,
                row.input_tokens,
                row.cached_tokens,
                row.missed_tokens,
                None if gap is None else gap.length,
                None if gap is None else gap.life,
                fallback,
            ]
        )
    return {
        "base": iso(base) if rows else None,
        "columns": COLUMNS,
        "turns": rows,
        "chains": words["chain"].listed,
        "connections": words["connection"].listed,
        "reasons": words["reason"].listed,
        "resets": words["epoch_reset_reason"].listed,
        "fallbacks": words["fallback_reason"].listed,
        "counts": Counter(row[3] for row in rows),
        "next_cursor": found.next_cursor,
    }


class _Words:
    """Numbers for words, in the order in which they first come."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def number(self, word: str | None) -> int | None:
        return None if word is None else self._known.setdefault(word, len(self._known))

    @property
    def listed(self) -> list[str]:
        return list(self._known)
