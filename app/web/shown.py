"""A row as the API shows it: every column, and why the turn went the way it did."""

from __future__ import annotations

from typing import Any

from app.analysis.explain import explain
from app.ledger.rows import TurnRow


def shown(row: TurnRow) -> dict[str, Any]:
    why = explain(row)
    return row.as_dict() | {"why": why.sentence, "why_kind": why.kind.value}
