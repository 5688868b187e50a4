"""The JSON API (docs/api.md). Endpoints are plain functions: they run in the thread pool, so that
a slow query holds up no stream of the gateway."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request

from app.analysis import prices
from app.analysis.funnel import funnel
from app.analysis.latency import by_mode
from app.charts import chart as charts
from app.charts.marks import marked
from app.charts.registry import CHARTS
from app.errors import AppError
from app.ledger import offered, queries, retention
from app.ledger.before import before
from app.ledger.cells import Cost, TokenTotals
from app.ledger.database import reading
from app.ledger.filters import PARAMETERS
from app.ledger.newest import Newest
from app.ledger.rows import iso, money, to_ms
from app.ledger.summary import Summary, summarize
from app.web.answers import JsonAnswer
from app.web.figures import LedgerSource
from app.web.marks import alert_marks
from app.web.shown import shown, witness
from app.web.trends import previous
from app.web.web import Web

DEFAULT_LIMIT = 50
_ONCE = frozenset({"from", "to", "tz", "by", "q"})


def parameters(*own: str) -> dict[str, Any]:
    """The filter grammar for OpenAPI, and the names of a route's own parameters.

    It is read by ``app.ledger.filters``, not by the framework, so that a page, an export and an
    alert cannot understand it differently.
    """
    text = {"type": "string"}
    several = {"type": "array", "items": text}
    return {
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": schema}
            for name, schema in [
                *((name, text if name in _ONCE else several) for name in PARAMETERS),
                *((name, text) for name in own),
            ]
        ]
    }


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api", tags=["api"])

    @api.get("/summary", openapi_extra=parameters())
    def summary(request: Request) -> JsonAnswer:
        """The figures of a filtered view."""
        view = web.view(request)
        figures = summarize(web.ledger, view)
        rows_from = retention.kept_from(web.ledger).rows_from
        ledger = {
            "empty": not figures.total and queries.is_empty(web.ledger),
            "rows_from": None if rows_from is None else iso(rows_from),
        }
        earlier = before(web.ledger, view, to_ms(web.clock.now()))
        return JsonAnswer(
            web.frame(view)
            | {"ledger": ledger}
            | _summary(figures)
            | {"previous": previous(figures, earlier)}
        )

    @api.get("/requests", openapi_extra=parameters("limit", "cursor"))
    def requests(request: Request) -> JsonAnswer:
        """The ledger, newest first, by pages. Own parameters: `limit`, `cursor`."""
        view = web.view(request, also=("limit", "cursor"))
        limit = limit_of(request.query_params.get("limit"))
        cursor = request.query_params.get("cursor") or None
        page = queries.page(web.ledger, view, limit=limit, cursor=cursor)
        return JsonAnswer(
            web.frame(view)
            | {
                "count": queries.count(web.ledger, view),
                "rows": [shown(row) for row in page.rows],
                "next_cursor": page.next_cursor,
            }
        )

    @api.get("/dimensions", openapi_extra=parameters())
    def dimensions(request: Request) -> JsonAnswer:
        """What the filter form can offer."""
        view = web.view(request)
        with reading(web.ledger) as connection:
            found = offered.dimensions(connection, view)
        return JsonAnswer(web.frame(view) | {"dimensions": _dimensions(found)})

    @api.get("/charts")
    def list_charts() -> JsonAnswer:
        """All charts, in the order of the page."""
        return JsonAnswer(
            {"charts": [{"slug": entry.slug, "title": entry.title} for entry in CHARTS.values()]}
        )

    @api.get("/charts/{slug}", openapi_extra=parameters())
    def one_chart(slug: str, request: Request) -> JsonAnswer:
        """One chart: figure, table and a sentence."""
        entry = CHARTS.get(slug)
        if entry is None:
            raise AppError(
                "not_found", "There is no such chart.", "/api/charts lists them.", status=404
            )
        view = web.view(request)
        source = LedgerSource(web.ledger, view, to_ms(web.clock.now()))
        marks = alert_marks(web.ledger, view)
        built: charts.Chart = marked(entry.build(source), source.buckets, marks)
        return JsonAnswer(
            {"slug": entry.slug, "title": entry.title} | web.frame(view) | built.as_dict()
        )

    return api


def by_id(web: Web) -> APIRouter:
    """The route whose last part is any turn id; it comes after those with fixed names."""
    api = APIRouter(prefix="/api", tags=["api"])

    @api.get("/requests/{turn_id:path}")
    def one_request(turn_id: str) -> JsonAnswer:
        """One row of the ledger."""
        row = queries.one(web.ledger, turn_id)
        if row is None:
            raise AppError(
                "not_found",
                "There is no row of this turn.",
                "It may not be written yet, or be older than what is kept.",
                status=404,
            )
        return JsonAnswer({"row": shown(row)} | witness(row))

    return api


def limit_of(text: str | None) -> int:
    """The parameter ``limit``."""
    if not text:
        return DEFAULT_LIMIT
    try:
        limit = int(text)
    except ValueError:
        raise AppError(
            "invalid_parameter",
            "limit is not a number.",
            f"It is a number from 1 to {queries.PAGE_LIMIT}.",
            status=422,
        ) from None
    queries.check_limit(limit)
    return limit


def newest_frame(web: Web, told: Newest) -> dict[str, Any]:
    """``Web.frame`` of what is told of the newest rows of a view; ``newest`` is how many they are,
    None where the view is whole."""
    return web.frame(told.view) | {"newest": told.rows}


def one_of(name: str, word: str, words: Iterable[str]) -> str:
    """The parameter ``name``, which is one of the words."""
    known = list(words)
    if word not in known:
        raise AppError(
            "invalid_parameter",
            f"{name} cannot be {word[:64]!r}.",
            f"It is one of {', '.join(known)}.",
            status=422,
        )
    return word


def _summary(figures: Summary) -> dict[str, Any]:
    continuity = figures.continuity
    latencies = by_mode(figures.ttft)
    return {
        "turns": {
            "total": figures.total,
            "generation": continuity.generation,
            "by_kind": figures.by_kind,
            "by_status": figures.by_status,
            "sessions": figures.sessions,
            "errors": figures.errors,
            "client_closed": figures.client_closed,
            "error_rate": figures.error_rate,
        },
        "modes": [{"mode": mode, "turns": turns} for mode, turns in figures.modes],
        "reasons": [
            {"reason": entry.reason, "turns": entry.turns, "eligible": entry.eligible}
            for entry in figures.reasons
        ],
        "continuation": {
            "known": continuity.known,
            "incremental": continuity.incremental,
            "incremental_rate": continuity.incremental_rate,
            "eligible": continuity.eligible,
            "breaks": continuity.breaks,
            "break_rate": continuity.break_rate,
            "mismatches": continuity.mismatches,
            "mismatch_rate": continuity.mismatch_rate,
        },
        "tokens": _tokens(figures.tokens),
        "cost": _cost(figures.cost),
        "cache_by_wire": [
            {"wire": wire} | dict(classes) for wire, classes in figures.cache_by_wire.items()
        ],
        "ttft": [
            {
                "mode": mode,
                "samples": latencies[mode].samples,
                "median_ms": latencies[mode].median_ms,
                "p95_ms": latencies[mode].p95_ms,
                "p99_ms": latencies[mode].p99_ms,
            }
            for mode in charts.modes_in(set(latencies))
        ],
        "funnel": [
            {
                "step": reached.step,
                "turns": reached.turns,
                "filters": reached.filters,
                "lost": [
                    {"what": drop.what, "turns": drop.turns, "filters": drop.filters}
                    for drop in reached.lost
                ],
            }
            for reached in funnel(figures.cells)
        ],
    }


def _tokens(tokens: TokenTotals) -> dict[str, Any]:
    """Sums over nothing are unknown, not zero."""
    known = bool(tokens.turns)
    return {
        "rows_with_usage": tokens.turns,
        "rows_without_usage": tokens.unknown,
        "rows_inconsistent": tokens.inconsistent,
        "input": tokens.input if known else None,
        "cached": tokens.cached if known else None,
        "cache_write": tokens.cache_write,
        "non_cached": tokens.non_cached if known else None,
        "uncached": tokens.uncached,
        "cached_ratio": tokens.cached_ratio,
        "output": tokens.output if known else tokens.output or None,
        "reasoning": tokens.reasoning if known else tokens.reasoning or None,
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {
        "cost_usd": None if cost.usd is None else money(cost.usd),
        "turns": cost.priced,
        "turns_without_price": cost.unpriced,
        "price_list": prices.list_name(),
    }


def _dimensions(found: dict[str, tuple[offered.DimensionValue, ...]]) -> dict[str, Any]:
    shown_values: dict[str, Any] = {}
    for name, values in found.items():
        shown_values[name] = [
            {"value": value.value, "turns": value.turns}
            | ({"label": value.label} if name == "session" else {})
            for value in values
        ]
    return shown_values
