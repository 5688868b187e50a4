"""The remedy for metadata that moves is one: the key that evidence names, named in ``freeze``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from app.analysis.catalogue import HISTORY
from tests.support import planted
from tests.support.planted import OUT, POLICY, ROWS, after

PLANTED: dict[str, Any] = {
    "it is gone": json.dumps({"rows": ROWS}),
    "it has another value": json.dumps({"_meta": {"tokens_left": 9}, "rows": ROWS}),
    "it stands elsewhere": json.dumps({"rows": ROWS, "_meta": {"tokens_left": 9}}),
}


@pytest.mark.parametrize("name", PLANTED)
async def test_the_key_at_the_place_that_is_told_is_the_one_to_freeze(name, monkeypatch):
    def moved(body: dict[str, Any]) -> None:
        body["input"][OUT]["output"] = PLANTED[name]

    row, why = await after(moved)
    assert ("prefix_mismatch", 0) == (row.reason, row.frozen_items)
    assert HISTORY["metadata_moved"].remedy in why.remedy
    assert "`freeze`" in why.remedy
    (key,) = row.evidence_object["freezable"]
    assert key == row.evidence_object["path"].split("/")[2]
    monkeypatch.setattr(planted, "POLICY", replace(POLICY, freeze=(key,)))
    row, _ = await after(moved)
    assert ("ws_incremental", "ok", 1) == (row.mode, row.reason, row.frozen_items)


@pytest.mark.parametrize(
    ("freeze", "path", "cause"),
    [
        ((), "/output/_meta", "Metadata moves"),
        (("_meta",), "/output/~", "after the model had seen"),
    ],
)
async def test_what_else_has_changed_is_told_all_the_same(freeze, path, cause, monkeypatch):
    def changed(body: dict[str, Any]) -> None:
        body["input"][OUT]["output"] = json.dumps({"rows": [*ROWS, "delta"]})

    monkeypatch.setattr(planted, "POLICY", replace(POLICY, freeze=freeze))
    row, why = await after(changed)
    assert row.evidence_object["path"].startswith(path)
    assert cause in why.cause
