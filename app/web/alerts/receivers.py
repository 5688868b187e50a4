"""Receivers: list, make, change, delete, enable again, and test.

Nothing that goes out names more of an address than scheme, host and port.
"""

from __future__ import annotations

from fastapi import APIRouter, Request

from app.alerts import delivery_log, drill
from app.alerts.delivery_log import Delivery
from app.alerts.endpoints import Kind
from app.alerts.receivers import PAGE, Receiver
from app.alerts.service import Alerts
from app.alerts.states import Told
from app.web.alerts import bodies, queries, shown
from app.web.alerts.bodies import Body, Json, takes
from app.web.alerts.rules import send_test, told
from app.web.answers import JsonAnswer
from app.web.web import Web

NEW = ("name", "kind", "url", "secrets")
CHANGE = (*NEW, "add_secret", "retire_old_secret", "version")


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/alerts/receivers", tags=["alerts"])

    @api.get("")
    def list_receivers(request: Request) -> JsonAnswer:
        """All receivers, with the last delivery to each."""
        queries.read(request)
        alerts = web.alerting
        return JsonAnswer(
            {
                "receivers": [_shown(alerts, each) for each in alerts.receivers.all()],
                "private_hosts": list(alerts.guard.private_hosts),
            }
        )

    @api.post("", openapi_extra=takes(*NEW, needed=("name", "url")))
    def make_receiver(body: Body) -> JsonAnswer:
        """Make a receiver. `url` and `secrets` are texts or `env:NAME`."""
        bodies.only(body, *NEW)
        alerts = web.alerting
        made = alerts.receivers.create(
            bodies.text(body, "name"),
            bodies.optional_text(body, "kind") or Kind.WEBHOOK,
            bodies.text(body, "url", most=4_000),
            bodies.texts(body, "secrets") or [],
        )
        return JsonAnswer({"receiver": _shown(alerts, made)}, status_code=201)

    @api.get("/{receiver_id}")
    def one_receiver(receiver_id: str, request: Request) -> JsonAnswer:
        """One receiver."""
        queries.read(request)
        alerts = web.alerting
        return JsonAnswer({"receiver": _shown(alerts, alerts.receivers.require(receiver_id))})

    @api.put("/{receiver_id}", openapi_extra=takes(*CHANGE))
    def change_receiver(receiver_id: str, body: Body) -> JsonAnswer:
        """Change what is given; `add_secret` keeps the former secret until
        `retire_old_secret`."""
        bodies.only(body, *CHANGE)
        alerts = web.alerting
        name = bodies.optional_text(body, "name")
        known = alerts.receivers.require(receiver_id)
        if known.origin == PAGE and name is not None and name.strip() != known.name:
            alerts.refuse_in_use(known.name)
        changed = alerts.receivers.update(
            receiver_id,
            name=name,
            kind=bodies.optional_text(body, "kind"),
            url=bodies.optional_text(body, "url", most=4_000),
            secrets=bodies.texts(body, "secrets"),
            add_secret=bodies.optional_text(body, "add_secret"),
            retire_old_secret=bodies.flag(body, "retire_old_secret"),
            version=bodies.whole(body, "version"),
        )
        return JsonAnswer({"receiver": _shown(alerts, changed)})

    @api.delete("/{receiver_id}")
    def delete_receiver(receiver_id: str) -> JsonAnswer:
        """Delete a receiver that no rule names."""
        alerts = web.alerting
        found = alerts.receivers.require(receiver_id)
        alerts.refuse_in_use(found.name)
        alerts.receivers.delete(receiver_id)
        return JsonAnswer({"deleted": receiver_id})

    @api.post("/{receiver_id}/enable", openapi_extra=takes())
    def enable_receiver(receiver_id: str, body: Body) -> JsonAnswer:
        """Use a receiver again that was disabled."""
        bodies.only(body)
        alerts = web.alerting
        return JsonAnswer({"receiver": _shown(alerts, alerts.receivers.enable(receiver_id))})

    @api.post("/{receiver_id}/test", openapi_extra=takes("state"))
    def test_receiver(receiver_id: str, body: Body) -> JsonAnswer:
        """Send a message marked as a test."""
        bodies.only(body, "state")
        alerts = web.alerting
        name = alerts.receivers.require(receiver_id).name
        state = told(body) if "state" in body else Told.FIRING
        return JsonAnswer({"deliveries": send_test(alerts, drill.rule_for(name), state, [name])})

    return api


def _shown(alerts: Alerts, each: Receiver) -> Json:
    return shown.receiver(each, _last(alerts, each.id))


def _last(alerts: Alerts, receiver_id: str) -> Delivery | None:
    page = delivery_log.page(alerts.engine, receiver_id=receiver_id, limit=1)
    return page.deliveries[0] if page.deliveries else None
