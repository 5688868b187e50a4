"""What changed inside sessions that decides whose cache a turn meets, and what it cost."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app.analysis import drift as analysis
from app.analysis.drift import KINDS, Drift
from app.ledger import drift as ledger
from app.ledger.database import reading
from app.ledger.filters import only
from app.ledger.newest import followed
from app.ledger.rows import iso
from app.web.alerts.bodies import Json
from app.web.answers import JsonAnswer
from app.web.api import limit_of, newest_frame, parameters
from app.web.web import Web


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api", tags=["api"])

    @api.get("/drift", openapi_extra=parameters("limit"))
    def drift(request: Request) -> JsonAnswer:
        """Changes inside the sessions of a view. Own parameter: `limit`, of sessions."""
        view = web.view(request, also=("limit",))
        limit = limit_of(request.query_params.get("limit"))
        found: list[Drift] = []
        with reading(web.ledger) as connection:
            told = followed(connection, view)
            changed = ledger.changed(connection, told.view, tuple(KINDS), limit=limit)
            for name in changed.names:
                found += analysis.drifts(
                    ledger.rows_of(connection, told.view, name, analysis.COLUMNS)
                )
        found.sort(key=lambda one: (-one.missed, -one.changes, one.session_key, one.kind))
        return JsonAnswer(
            newest_frame(web, told)
            | {
                "further": changed.further,
                "kinds": {kind: _sum(found, kind) for kind in KINDS},
                "findings": [_shown(one) for one in found],
            }
        )

    return api


def _sum(found: list[Drift], kind: str) -> Json:
    own = [one for one in found if one.kind == kind]
    return {
        "sessions": len(own),
        "changes": sum(one.changes for one in own),
        "missed_tokens": sum(one.missed for one in own),
        "filters": only([turn for one in own for turn in one.turns]),
    }


def _shown(one: Drift) -> Json:
    return {
        "kind": one.kind,
        "session": one.session,
        "session_key": one.session_key,
        "sentence": one.sentence,
        "changes": one.changes,
        "missed_tokens": one.missed,
        "first_at": iso(one.first_at),
        "last_at": iso(one.last_at),
        "example": one.example,
        "before": one.before,
        "now": one.now,
        "filters": only(one.turns),
    }
