"""A row as the API shows it: every column, why the turn went the way it did, and what became of
the prompt cache.

``WHY`` are the keys that are no columns: the sentence, its kind, and the usual cause and remedy; of
the cache its sentence and what helps.
"""

from __future__ import annotations

from typing import Any

from app.analysis import cold, witnesses
from app.analysis.explain import explain
from app.ledger.rows import TurnRow

WHY = ("why", "why_kind", "why_cause", "why_remedy", "cache_why", "cache_remedy")


def shown(row: TurnRow) -> dict[str, Any]:
    why = explain(row)
    cache = cold.told(row)
    of_cache = (None, None) if cache is None else (cache.sentence, cache.remedy)
    told = (why.sentence, why.kind.value, why.cause, why.remedy, *of_cache)
    return row.as_dict() | dict(zip(WHY, told, strict=True))


def witness(row: TurnRow) -> dict[str, Any]:
    """What client, provider and tokens say of the turn together."""
    seen = witnesses.witnessed(row)
    return {"accord": seen.accord, "layer": seen.layer, "accord_why": seen.sentence}
