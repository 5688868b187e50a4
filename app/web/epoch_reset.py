"""Resetting the epoch of a session: its next turn goes in full, and says why."""

from __future__ import annotations

import asyncio
import re

from fastapi import APIRouter

from app.errors import AppError
from app.ledger import sessions as ledger
from app.ledger.database import reading
from app.web.alerts import bodies
from app.web.alerts.bodies import Body, takes
from app.web.answers import JsonAnswer
from app.web.web import Web
from engine.model import EpochReason

_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/sessions", tags=["api"])

    # On the event loop, as everything that touches what the gateway holds.

    @api.post("/{session_key}/epoch-reset", openapi_extra=takes("reason"))
    async def reset(session_key: str, body: Body) -> JsonAnswer:
        """Reset the epoch of a session that is live in this process: its next turn goes in full,
        with `epoch_reset_reason` `manual` or the word given as `reason`."""
        bodies.only(body, "reason")
        reason = bodies.optional_text(body, "reason", most=64) or EpochReason.MANUAL
        if not _WORD.fullmatch(reason):
            raise bodies.bad(
                "reason", "reason is one word.", "It has letters, digits, dots, - and _ only."
            )
        if web.reset_epoch is None:
            raise AppError("not_ready", "The gateway is not at work.", "Try again.", status=503)
        done = web.reset_epoch(session_key, reason)
        if done is None:
            raise await asyncio.to_thread(_refusal, web, session_key)
        return JsonAnswer({"session_key": session_key, "reason": reason} | done._asdict())

    return api


def _refusal(web: Web, session_key: str) -> AppError:
    """Why there is nothing to reset."""
    with reading(web.ledger) as connection:
        if ledger.life(connection, session_key) is None:
            return AppError(
                "not_found", "There is no such session.", "/api/sessions lists them.", status=404
            )
    return AppError(
        "no_live_chain",
        "This session has no live chain in this process: its next turn goes in full anyway.",
        "Where several gateways write to this ledger, ask the one that serves the session.",
        status=409,
    )
