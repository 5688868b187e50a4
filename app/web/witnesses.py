"""Who tells what of the prompt cache, counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Request

from app.analysis import witnesses
from app.analysis.witnesses import Accord, Layer
from app.ledger import witnesses as counts
from app.ledger.database import reading
from app.ledger.newest import newest
from app.web.answers import JsonAnswer
from app.web.api import newest_frame, parameters
from app.web.web import Web

_CELL = ("client", "provider", "tokens", "accord", "layer")


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api", tags=["api"])

    @api.get("/witnesses", openapi_extra=parameters())
    def matrix(request: Request) -> JsonAnswer:
        """Judged turns by what client, provider and tokens say of them."""
        view = web.view(request)
        turns: Counter[tuple[str, ...]] = Counter()
        missed: Counter[tuple[str, ...]] = Counter()
        said: dict[tuple[str, ...], str] = {}
        cold = {"turns": 0, "missed_tokens": 0}
        with reading(web.ledger) as connection:
            told = newest(connection, view)
            found = counts.counted(connection, told.view, witnesses.COLUMNS)
        for row, number, tokens in found:
            seen = witnesses.witnessed(row)
            cell = (*witnesses.says(row), seen.accord, seen.layer)
            turns[cell] += number
            missed[cell] += tokens
            said[cell] = seen.sentence
            if witnesses.is_stable_but_cold(row):
                cold["turns"] += number
                cold["missed_tokens"] += tokens
        cells = sorted(turns, key=lambda cell: (-missed[cell], -turns[cell], cell))
        return JsonAnswer(
            newest_frame(web, told)
            | {
                "turns": turns.total(),
                "accord": _summed(cells, turns, missed, Accord, 3),
                "layer": _summed(cells, turns, missed, Layer, 4),
                "cells": [
                    dict(zip(_CELL, cell, strict=True))
                    | {
                        "turns": turns[cell],
                        "missed_tokens": missed[cell],
                        "sentence": said[cell],
                    }
                    for cell in cells
                ],
                "stable_but_cold": cold,
            }
        )

    return api


def _summed(
    cells: list[tuple[str, ...]],
    turns: Counter[tuple[str, ...]],
    missed: Counter[tuple[str, ...]],
    words: type[Accord | Layer],
    place: int,
) -> dict[str, Any]:
    """The cells by one of what tells them apart."""
    whole = {word.value: {"turns": 0, "missed_tokens": 0} for word in words}
    for cell in cells:
        whole[cell[place]]["turns"] += turns[cell]
        whole[cell[place]]["missed_tokens"] += missed[cell]
    return whole
