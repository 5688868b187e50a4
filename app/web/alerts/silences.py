"""Silences: begin one, see them, end one."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request

from app.alerts import rules, silences
from app.alerts.service import new_id
from app.ledger.rows import iso, to_ms
from app.web.alerts import bodies, queries, shown
from app.web.alerts.bodies import Body, Json, takes
from app.web.answers import JsonAnswer
from app.web.web import Web

FIELDS = ("rule_id", "matchers", "ends_at", "for", "comment", "author")


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/alerts/silences", tags=["alerts"])

    @api.get("")
    def list_silences(request: Request) -> JsonAnswer:
        """Those that have not ended, then the last that have."""
        queries.read(request)
        alerts = web.alerting
        now = alerts.now()
        open_, ended = silences.listing(alerts.engine, now)
        return JsonAnswer(
            {
                "as_of": iso(now),
                "silences": [shown.silence(each, now) for each in (*open_, *ended)],
            }
        )

    @api.post("", openapi_extra=takes(*FIELDS))
    def silence(body: Body) -> JsonAnswer:
        """Begin a silence, until `ends_at` or `for` a duration such as `2h`."""
        bodies.only(body, *FIELDS)
        alerts = web.alerting
        now = alerts.now()
        made = silences.create(
            alerts.engine,
            id=new_id("sil_"),
            rule_id=bodies.optional_text(body, "rule_id"),
            matchers=bodies.table(body, "matchers"),
            ends_at=end_of(body, now),
            now=now,
            comment=body.get("comment") or "",
            author=body.get("author") or "",
        )
        return JsonAnswer({"silence": shown.silence(made, now)}, status_code=201)

    @api.delete("/{silence_id}")
    def end(silence_id: str) -> JsonAnswer:
        """End a silence now."""
        alerts = web.alerting
        now = alerts.now()
        return JsonAnswer(
            {"silence": shown.silence(silences.end(alerts.engine, silence_id, now), now)}
        )

    return api


def end_of(body: Json, now: int) -> int:
    """The end that a body tells, in epoch milliseconds: ``ends_at``, or ``for`` a duration."""
    given = [name for name in ("ends_at", "for") if body.get(name) not in (None, "")]
    if len(given) != 1:
        raise bodies.bad(
            "ends_at", "A silence needs an end.", "Give either ends_at (a time) or for (as 2h)."
        )
    (name,) = given
    text = bodies.text(body, name)
    if name == "for":
        lasting = rules.read_duration(text)
        if lasting is None:
            raise bodies.bad("for", "for is no duration.", "Write it as 30m, 2h or 7d.")
        return now + 1_000 * lasting
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
        return to_ms(moment.timestamp())
    except (ValueError, OverflowError):
        raise bodies.bad(
            "ends_at", "ends_at is no time.", "Write it as 2026-11-01T12:00:00Z."
        ) from None
