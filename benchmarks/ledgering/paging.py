"""The list of requests: its first page, one deep inside, and one of each filter alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Engine, select

from app.ledger import cursors, queries
from app.ledger.conditions import COLUMN_OF
from app.ledger.filters import DIMENSIONS, Filter
from app.ledger.models import turns
from app.ledger.rollups.contribution import DAY
from benchmarks.ledgering.month import DAYS, END
from benchmarks.ledgering.reading import views
from benchmarks.ledgering.result import Result, best_ms

MS = 50.0
UNSERVED = frozenset({"root", "chain", "q"})
"""No index leads to these: where few rows match, the rows of the window are read."""
c = turns.c


def results(engine: Engine, rows: int) -> Iterator[Result]:
    view = views()["30 d"]
    middle = _middle(engine)
    name = f"{engine.dialect.name}, {rows:,} rows, requests"
    deep = cursors.write(middle["started_at"], middle["id"])
    yield Result(f"{name}, first page", _ms(engine, view), "ms", MS)
    yield Result(f"{name}, a page deep inside", _ms(engine, view, deep), "ms", MS)
    recorded = replace(view, by="recorded")
    yield Result(f"{name}, by recorded, deep inside", _ms(engine, recorded, deep), "ms", MS)
    for dimension in DIMENSIONS:
        value = _value(dimension, middle)
        for title, one in (
            (f"{dimension}={value}", replace(view, include={dimension: (value,)})),
            (f"{dimension}=!{value}", replace(view, exclude={dimension: (value,)})),
        ):
            target = None if dimension in UNSERVED and one.include else MS
            yield Result(f"{name}, {title}"[:66], _ms(engine, one), "ms", target)
    search = replace(view, q=middle["turn_id"])
    yield Result(f"{name}, q of a turn's id", _ms(engine, search), "ms")


def _ms(engine: Engine, view: Filter, cursor: str | None = None) -> float:
    return best_ms(partial(queries.page, engine, view, cursor=cursor), 3)


def _middle(engine: Engine) -> dict[str, Any]:
    """A turn from the middle of the month that came apart from its baseline."""
    query = (
        select(turns)
        .where(c.started_at >= END - DAYS * DAY // 2, c.reason == "prefix_mismatch")
        .order_by(c.started_at)
        .limit(1)
    )
    with engine.connect() as connection:
        return dict(connection.execute(query).mappings().one())


def _value(dimension: str, row: dict[str, Any]) -> str:
    if dimension == "session":
        return str(row["session_key"])
    if dimension == "eligible":
        return "false"
    if dimension == "cache":
        return "miss"
    return str(row[COLUMN_OF[dimension]])
