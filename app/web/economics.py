"""What misses and resets cost, and what would have saved it."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app.analysis import compaction, prices
from app.analysis.compaction import Resets
from app.analysis.economics import (
    LOST,
    Losses,
    cause_as_dict,
    remedies_as_dict,
    resets_as_dict,
    told,
    waste_as_dict,
)
from app.analysis.lookup import COMPARED
from app.analysis.verdict_words import WORDS
from app.analysis.verdicts import LOSSES, NO_REWRITE, Verdict
from app.analysis.waste import NOBODY, Sellers
from app.ledger import economics as rows
from app.ledger import verdict_sums
from app.ledger.database import reading
from app.ledger.filters import only
from app.ledger.newest import followed, newest
from app.pricing import sellers
from app.web.answers import JsonAnswer
from app.web.api import newest_frame, parameters
from app.web.web import Web
from engine.model import Kind


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api", tags=["api"])

    @api.get("/causes", openapi_extra=parameters())
    def causes(request: Request) -> JsonAnswer:
        """What misses cost by cause, and what would have saved it. An estimate."""
        view = web.view(request)
        found = Losses()
        with reading(web.ledger) as connection:
            of = newest(connection, view)
            sums = verdict_sums.sums(connection, of.view)
            warm = rows.warm(connection, of.view, LOSSES)
            lost = rows.lost(connection, of.view, LOSSES, COMPARED)
            for turn in told(warm, lost, sellers_of(web)):
                found.add(*turn)
        benign: dict[str | None, int] = {}
        for one in sums:
            if one.verdict not in LOSSES:
                benign[one.verdict] = benign.get(one.verdict, 0) + one.turns
        unjudged = benign.pop(None, 0)
        return JsonAnswer(
            newest_frame(web, of)
            | {
                "price_list": prices.list_name(),
                "total": waste_as_dict(found.total) | {"filters": LOST},
                "causes": [
                    cause_as_dict(*one) | {"filters": found.filters(one[0])}
                    for one in found.causes()
                ],
                "benign": [
                    {
                        "verdict": verdict,
                        "title": WORDS[verdict].title if verdict in WORDS else verdict,
                        "turns": turns,
                        "filters": {"kind": [Kind.GENERATION.value], "verdict": [verdict]},
                    }
                    for verdict, turns in benign.items()
                    if verdict is not None
                ],
                "turns_not_judged": unjudged,
            }
            | remedies_as_dict(found.remedies)
        )

    @api.get("/resets", openapi_extra=parameters())
    def of_resets(request: Request) -> JsonAnswer:
        """What condensing a history cost and saved. An estimate."""
        view = web.view(request)
        with reading(web.ledger) as connection:
            of = followed(connection, view)
            passing = rows.passing(connection, of.view, Verdict.HISTORY_REWRITE, NO_REWRITE)
            found = Resets.of(compaction.resets(passing, sellers_of(web)))
        return JsonAnswer(
            newest_frame(web, of)
            | {"price_list": prices.list_name()}
            | resets_as_dict(found)
            | {"filters": _filters(found)}
        )

    return api


def _filters(found: Resets) -> dict[str, list[str]] | None:
    """What selects just these resets; None where not all of them are listed, too."""
    names = [one.turn_id for one in found.listed]
    return only(names) if len(names) == found.number else None


def sellers_of(web: Web) -> Sellers:
    """Who sells what goes to this gateway's upstreams."""
    return NOBODY if web.settings is None else sellers(web.settings)
