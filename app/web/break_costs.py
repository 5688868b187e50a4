"""What the misses of groups of breaks cost, from their sums where all of a sum have one price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import Connection

from app.analysis.waste import Sellers, Waste, cost_of, loss_of
from app.ledger import breaks as ledger
from app.ledger.break_groups import group_of
from app.ledger.filters import Filter
from app.ledger.rollups.broken import Key, Part, key_of
from app.ledger.rollups.contribution import DAY, HOUR


def costs(
    connection: Connection, view: Filter, of: Iterable[Part], sellers: Sellers
) -> defaultdict[str, Waste]:
    """By group, of parts of a view. Where a price changed within the view, days are priced, or
    hours; and where that will not do either, each break by itself."""
    found: defaultdict[str, Waste] = defaultdict(Waste)
    unsure = _add(found, of, sellers)
    for length in (DAY, HOUR):
        if not unsure:
            return found
        groups = {key.break_group for key in unsure}
        parts = ledger.parts(connection, view, groups, by=length, only=unsure)
        unsure = _add(found, parts, sellers)
    if unsure:
        for row in ledger.counted(connection, view, {key.break_group for key in unsure}):
            group = str(group_of(row))
            if key_of(row, group) in unsure:
                found[group].add(loss_of(row, None, sellers))
    return found


def _add(found: defaultdict[str, Waste], parts: Iterable[Part], sellers: Sellers) -> set[Key]:
    """Add what parts cost; the keys of which not all have one price are left."""
    by_key: defaultdict[Key, list[Part]] = defaultdict(list)
    for part in parts:
        by_key[part.key].append(part)
    unsure = set()
    for key, some in by_key.items():
        known = [cost_of(part, sellers) for part in some]
        if None in known:
            unsure.add(key)
            continue
        for part, cost in zip(some, known, strict=True):
            if cost is not None:
                found[key.break_group].add_sum(part, *cost)
    return unsure
