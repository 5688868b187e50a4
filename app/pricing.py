"""Gives the turns of the ledger their list prices, those that have none yet (docs/ledger.md).

Rows of a gateway get theirs from its writer, by ``price_of``; the rest beside the service, after
the turns are judged, and once after an import. The price list is loaded in the thread that first
needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlalchemy import Engine

from app.analysis import prices
from app.analysis.waste import NOBODY, Sellers, seller_of
from app.ledger.database import WRITES
from app.ledger.rows import TurnRow
from app.ledger.store import Price, put_prices, waits_for_price
from app.settings import Settings
from engine.model import UsageState

_NAMED = frozenset({"azure", "ollama", "openrouter", "vllm", "xai"})
"""Presets that tell whose prices they are; else the address does."""


def price_all(
    engine: Engine,
    upstreams: Sellers = NOBODY,
    *,
    stop: Callable[[], bool] = lambda: False,
    between: Callable[[], None] = lambda: None,
) -> int:
    """Price all turns that wait for it, the newest first; returns how many.

    ``upstreams``: of ``sellers``. ``between`` is called after each transaction.
    """
    writing, done = engine.execution_options(**WRITES), 0
    while not stop():
        with engine.connect() as connection:
            if not waits_for_price(connection):
                break  # nearly always: nobody else is kept from writing for that
        with writing.begin() as connection:
            some = put_prices(connection, lambda row: price_of(row, upstreams))
        if not some:
            break
        done += some
        between()
    return done


def sellers(settings: Settings) -> Sellers:
    """What tells whose prices the upstreams of a gateway have, by their names."""
    return {
        name: upstream.preset if upstream.preset in _NAMED else upstream.base_url
        for name, upstream in settings.upstreams.items()
    }


def price_of(row: TurnRow, upstreams: Sellers = NOBODY) -> Price:
    """The price of a row, with a note that names the version of the list."""
    if row.usage_state == UsageState.INCONSISTENT:
        return _unpriced(prices.BAD_USAGE)
    if row.usage_state != UsageState.REPORTED:
        return _unpriced(prices.NO_USAGE)
    seller = seller_of(row, upstreams)
    found = prices.price(row.model, seller, row.service_tier, row.started_at, row)
    if isinstance(found, prices.Unpriced):
        return _unpriced(found.note)
    return Price(Decimal(found.usd).scaleb(-9), f"{found.note}@{prices.list_version()}")


def _unpriced(note: str) -> Price:
    return Price(None, f"{note}@{prices.list_version()}")
