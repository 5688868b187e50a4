"""Transitions of all alerts, and what the demo's own receiver got."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app.alerts import event_store
from app.errors import AppError
from app.web.alerts import queries, shown
from app.web.answers import JsonAnswer
from app.web.web import Web


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/alerts", tags=["alerts"])

    @api.get("/events", openapi_extra=queries.parameters("rule", "limit", "cursor"))
    def events(request: Request) -> JsonAnswer:
        """Transitions, newest first. `rule` is an id."""
        given = queries.read(request, "rule", "limit", "cursor")
        alerts = web.alerting
        page = event_store.page(
            alerts.engine,
            rule_id=given.get("rule"),
            limit=queries.limit(given, most=event_store.MOST),
            cursor=given.get("cursor"),
        )
        return JsonAnswer(
            {
                "events": [shown.event(each) for each in page.events],
                "next_cursor": page.next_cursor,
            }
        )

    @api.get("/received")
    def received(request: Request) -> JsonAnswer:
        """What the receiver of `warmline demo` got, newest first; elsewhere there is none."""
        queries.read(request)
        if web.received is None:
            raise AppError(
                "no_receiver",
                "This server receives no webhooks.",
                "Only warmline demo has a receiver of its own.",
                404,
            )
        return JsonAnswer({"received": list(web.received())})

    return api
