"""What a rule, saved or not, would have done over the stored rows."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from app.alerts import backtest, report, rules, store
from app.alerts.rules import Rule
from app.charts.signal import signal
from app.ledger import filters
from app.ledger.filters import Filter
from app.ledger.rows import iso
from app.web.alerts import bodies
from app.web.alerts.bench import Bench, Progress
from app.web.alerts.bodies import Body, Json, takes
from app.web.answers import JsonAnswer
from app.web.web import Web

FIELDS = ("rule", "id", "from", "to", "tz")
NAMELESS = "Without a name"


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/alerts", tags=["alerts"])

    bench = Bench()

    @api.post("/backtest", openapi_extra=takes(*FIELDS))
    async def run(request: Request, body: Body) -> JsonAnswer:
        """Evaluate `rule` (a definition) or the rule with this `id` at every instant of a time."""
        bodies.only(body, *FIELDS)

        def work(progress: Progress) -> JsonAnswer:
            now = web.clock.now()
            view = _view(body, now)
            rule = _rule(web, body)
            end = min(view.end, int(now * 1_000))
            found = backtest.run(web.ledger, rule, view.start, end, progress=progress)
            return JsonAnswer(answer(rule, found, view))

        return await bench.run(request, work)

    return api


def answer(rule: Rule, found: backtest.Backtest, view: Filter) -> dict[str, Any]:
    return {
        "range": {"from": iso(view.start), "to": iso(view.end), "tz": view.tz, "by": "recorded"},
        "chart": signal(report.picture(rule, found, view.zone)).as_dict(),
        **report.as_dict(rule, found),
    }


def _view(body: Json, now: float) -> Filter:
    names = ("from", "to", "tz")
    pairs = [(name, bodies.optional_text(body, name, most=64) or "") for name in names]
    return filters.parse(pairs, now=now)


def _rule(web: Web, body: Json) -> Rule:
    if ("rule" in body) == ("id" in body):
        raise bodies.bad("rule", "A backtest needs a rule.", "Give either rule or id.")
    if "id" in body:
        return store.get_rule(web.ledger, bodies.text(body, "id")).rule()
    given = bodies.table(body, "rule")
    if not given.get("name"):  # a rule is tried before it has got a name
        given = given | {"name": NAMELESS}
    return rules.parse(given, id="draft")
