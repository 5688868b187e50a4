"""Rules: list, make, change, delete, and test what they would tell."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from app.alerts import drill, rules, silences, store
from app.alerts.endpoints import shown_name
from app.alerts.rules import Rule
from app.alerts.service import Alerts, new_id
from app.alerts.states import Told
from app.ledger.rows import iso
from app.web.alerts import bodies, queries, shown
from app.web.alerts.bodies import Body, Json, takes
from app.web.answers import JsonAnswer
from app.web.web import Web

FIELDS = tuple(rules.FIELDS)


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/alerts/rules", tags=["alerts"])

    @api.get("")
    def list_rules(request: Request) -> JsonAnswer:
        """All rules with their groups, and what the form can offer."""
        queries.read(request)
        alerts = web.alerting
        now = alerts.now()
        active, _ = silences.listing(alerts.engine, now)
        return JsonAnswer(
            {
                "as_of": iso(now),
                "rules": [shown.rule(each, active, now) for each in alerts.overview()],
                "signals": shown.SIGNALS,
                "limits": shown.LIMITS,
            }
        )

    @api.post("", openapi_extra=takes(*FIELDS, needed=("name", "signal", "threshold")))
    def make_rule(body: Body) -> JsonAnswer:
        """Make a rule. The body is its definition."""
        alerts = web.alerting
        rule = _read(alerts, body, new_id("rule_"))
        store.create_rule(alerts.engine, rule, alerts.now())
        return JsonAnswer({"rule": _shown(alerts, rule.id)}, status_code=201)

    @api.get("/{rule_id}")
    def one_rule(rule_id: str, request: Request) -> JsonAnswer:
        """One rule with its groups."""
        queries.read(request)
        return JsonAnswer({"rule": _shown(web.alerting, rule_id)})

    @api.put(
        "/{rule_id}",
        openapi_extra=takes(*FIELDS, "version", needed=("name", "signal", "threshold")),
    )
    def change_rule(rule_id: str, body: Body) -> JsonAnswer:
        """Replace a rule's definition; with `version` only if nobody changed it meanwhile."""
        alerts = web.alerting
        store.get_rule(alerts.engine, rule_id)  # before the body is read: is there anything at all?
        version = bodies.whole(body, "version")
        body.pop("version", None)
        store.update_rule(
            alerts.engine,
            _read(alerts, body, rule_id),
            alerts.now(),
            teller=alerts.teller,
            version=version,
        )
        alerts.wake()
        return JsonAnswer({"rule": _shown(alerts, rule_id)})

    @api.delete("/{rule_id}")
    def delete_rule(rule_id: str) -> JsonAnswer:
        """Delete a rule; those who were told that it fires are told that it ended."""
        alerts = web.alerting
        store.delete_rule(alerts.engine, rule_id, alerts.now(), teller=alerts.teller)
        alerts.wake()
        return JsonAnswer({"deleted": rule_id})

    @api.post("/{rule_id}/test", openapi_extra=takes("state", "receivers", needed=("state",)))
    def test_rule(rule_id: str, body: Body) -> JsonAnswer:
        """Send a message marked as a test to the rule's receivers, or to those that are named."""
        bodies.only(body, "state", "receivers")
        alerts = web.alerting
        rule = store.get_rule(alerts.engine, rule_id).rule()
        names = bodies.texts(body, "receivers")
        names = list(rule.receivers) if names is None else names
        if not names:
            raise bodies.bad(
                "receivers", "There is nobody to tell.", "Name receivers, or give the rule some."
            )
        return JsonAnswer({"deliveries": send_test(alerts, rule, told(body), names)})

    return api


def told(body: Json) -> Told:
    """The state that a test is of."""
    try:
        return Told(bodies.text(body, "state"))
    except ValueError:
        raise bodies.bad("state", f"state must be one of {', '.join(Told)}.") from None


def send_test(alerts: Alerts, rule: Rule, state: Told, names: list[str]) -> list[dict[str, Any]]:
    """The address of every receiver is checked before anything is written."""
    receivers = []
    for name in dict.fromkeys(names):
        found = alerts.receivers.by_name(name)
        if found is None:
            raise bodies.bad("receivers", f"There is no receiver {shown_name(name)}.")
        receivers.append(alerts.receivers.check(found.id))
    sent = drill.send(
        alerts.engine,
        rule,
        state,
        receivers,
        now=alerts.now(),
        base_url=alerts.base_url,
        new_id=new_id,
    )
    alerts.wake()
    return [{"id": each.id, "receiver": each.receiver} for each in sent]


def _read(alerts: Alerts, body: Json, rule_id: str) -> Rule:
    rule = rules.parse(body, id=rule_id)
    alerts.check_receivers(rule)
    return rule


def _shown(alerts: Alerts, rule_id: str) -> Json:
    now = alerts.now()
    active, _ = silences.listing(alerts.engine, now)
    return shown.rule(alerts.watched(rule_id), active, now)
