"""All of it under ``/api/alerts``."""

from __future__ import annotations

from fastapi import APIRouter

from app.web.alerts import backtest, deliveries, history, receivers, rules, silences
from app.web.web import Web


def router(web: Web) -> APIRouter:
    """The routes of a rule's, receiver's or delivery's id come after those with fixed names."""
    api = APIRouter()
    for part in (history, backtest, rules, receivers, deliveries, silences):
        api.include_router(part.router(web))
    return api
