"""A row as the API shows it: every column, and why the turn went the way it did.

``WHY`` are the keys that are no columns: the sentence, its kind, and the usual cause and remedy.
"""

from __future__ import annotations

from typing import Any

from app.analysis.explain import explain
from app.ledger.rows import TurnRow

WHY = ("why", "why_kind", "why_cause", "why_remedy")


def shown(row: TurnRow) -> dict[str, Any]:
    why = explain(row)
    told = (why.sentence, why.kind.value, why.cause, why.remedy)
    return row.as_dict() | dict(zip(WHY, told, strict=True))
