"""What a remedy is said to save is what it saves: faults are planted, and once more with the remedy.

Each fault runs through the real engine against the built-in provider. What the rows of the first
time say would have been kept warm is held against what was continued the second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from app.analysis.remedies import Policy, Remedy, sentence
from app.ledger.rows import TurnRow
from tests.support import planted
from tests.support.planted import INSTRUCTIONS, MESSAGE, OUT, POLICY, REASONING, ROWS, TOOLS, after
from tests.support.remedies import added

Body = dict[str, Any]
Plant = Callable[[Body], None]


def output(value: Any) -> Plant:
    def plant(body: Body) -> None:
        body["input"][OUT]["output"] = value if isinstance(value, str) else json.dumps(value)

    return plant


def both(*plants: Plant) -> Plant:
    def plant(body: Body) -> None:
        for one in plants:
            one(body)

    return plant


def shuffled(body: Body) -> None:
    body["tools"] = [TOOLS[0], TOOLS[2], TOOLS[1]]


def other_model(body: Body) -> None:
    body["model"] = "gpt-5.5-mini"


def later(body: Body) -> None:
    body["instructions"] = INSTRUCTIONS.replace("08:39:22", "08:41:07")


def dropped(body: Body) -> None:
    del body["input"][REASONING]


def trimmed(body: Body) -> None:
    body["input"][MESSAGE]["content"][0]["text"] = "There are three rows."


GONE = output({"rows": ROWS})
META: list[Plant] = [
    GONE,
    output({"_meta": {"tokens_left": 9}, "rows": ROWS}),
    output({"rows": ROWS, "_meta": {"tokens_left": 9, "more": 1}}),
    output({"_meta": {"tokens_left": 9}, "rows": [*ROWS, "delta"]}),
    both(GONE, trimmed),
    both(GONE, other_model),
]


async def rows_of(plants: list[Plant]) -> list[TurnRow]:
    return [(await after(plant))[0] for plant in plants]


async def test_freezing_a_key_keeps_as_many_breaks_warm_as_was_said(monkeypatch):
    found = added(await rows_of(META))
    freeze = Remedy(Policy.FREEZE, "_meta")
    assert "Freezing `_meta` would have kept 3, at most 5, of 6 breaks warm." == sentence(
        freeze, found.by_remedy[freeze]
    )
    monkeypatch.setattr(planted, "POLICY", replace(POLICY, freeze=("_meta",)))
    frozen = await rows_of(META)
    assert 3 == sum(row.mode == "ws_incremental" for row in frozen)


async def test_other_remedies_keep_as_many_breaks_warm_as_was_said():
    def in_order(body: Body) -> None:
        body["tools"] = sorted(body["tools"], key=lambda tool: tool["name"])

    def no_clock(body: Body) -> None:
        body["instructions"] = INSTRUCTIONS

    def one_model(body: Body) -> None:
        body["model"] = planted.MODEL

    faults = [shuffled, other_model, later, both(shuffled, later), both(shuffled, other_model),
              both(shuffled, dropped)]  # fmt: skip
    found = added(await rows_of(faults))
    for policy, mended, kept in (
        (Policy.SORT_TOOLS, in_order, 1),
        (Policy.NO_CLOCK, no_clock, 1),
        (Policy.ONE_IDENTITY, one_model, 1),
    ):
        saved = found.by_remedy[Remedy(policy)]
        assert (kept, kept) == (saved.kept.turns, saved.possible.turns)
        with_it = await rows_of([both(fault, mended) for fault in faults])
        assert kept == sum(row.mode == "ws_incremental" for row in with_it)
    assert [4, 2, 2, 1] == [
        found.by_remedy[Remedy(policy)].breaks
        for policy in (
            Policy.SORT_TOOLS, Policy.NO_CLOCK, Policy.ONE_IDENTITY, Policy.KEEP_HISTORY,
        )
    ]  # fmt: skip
