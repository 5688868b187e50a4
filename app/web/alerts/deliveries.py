"""What was sent, what became of it, and sending it again."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app.alerts import delivery_log, outbox
from app.web.alerts import bodies, queries, shown
from app.web.alerts.bodies import Body, takes
from app.web.answers import JsonAnswer
from app.web.web import Web

PARAMETERS = ("limit", "cursor", "rule", "receiver", "state")


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/alerts/deliveries", tags=["alerts"])

    @api.get("", openapi_extra=queries.parameters(*PARAMETERS))
    def list_deliveries(request: Request) -> JsonAnswer:
        """Deliveries, newest first. `rule` is an id, `receiver` an id or a name."""
        given = queries.read(request, *PARAMETERS)
        alerts = web.alerting
        asked = given.get("receiver")
        named = None if asked is None else alerts.receivers.by_name(asked)
        page = delivery_log.page(
            alerts.engine,
            rule_id=given.get("rule"),
            receiver_id=asked if named is None else named.id,
            state=given.get("state"),
            limit=queries.limit(given, most=delivery_log.PAGE_LIMIT),
            cursor=given.get("cursor"),
        )
        return JsonAnswer(
            {
                "deliveries": [shown.delivery(each) for each in page.deliveries],
                "next_cursor": page.next_cursor,
            }
        )

    @api.get("/{delivery_id}")
    def one_delivery(delivery_id: str, request: Request) -> JsonAnswer:
        """One delivery with its body and its attempts."""
        queries.read(request)
        return JsonAnswer(shown.detail(delivery_log.get(web.alerting.engine, delivery_id)))

    @api.post("/{delivery_id}/replay", openapi_extra=takes())
    def replay(delivery_id: str, body: Body) -> JsonAnswer:
        """Send a settled delivery again: the same message under the same id."""
        bodies.only(body)
        alerts = web.alerting
        outbox.replay(alerts.engine, delivery_id, alerts.now())
        alerts.wake()
        found = delivery_log.get(alerts.engine, delivery_id)
        return JsonAnswer({"delivery": shown.delivery(found.delivery)})

    return api
