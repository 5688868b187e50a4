"""What remedies are said to save of rows."""

from __future__ import annotations

from app.analysis.remedies import Remedies, needed
from app.analysis.waste import Loss
from app.ledger.rows import TurnRow


def added(rows: list[TurnRow]) -> Remedies:
    found = Remedies()
    for row in rows:
        needs = needed(row)
        assert needs is not None
        found.add(needs, Loss(row.missed_tokens, None, None), row.turn_id)
    return found
