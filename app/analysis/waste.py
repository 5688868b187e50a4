"""What turns lost that need not have been lost: tokens, money and time.

- *Tokens*: ``missed_tokens``, what could have been read again and was not.
- *Money*: what these cost beyond what reading them would have. They were paid as writes as far as
  the turn wrote that much, else as input. A turn without a price has none; its cost is not 0.
- *Time*: the wait for the first token beyond the median of the session's warm turns. A turn has
  none where it had no first token, or its session too few warm turns (``app.analysis.warm``).

Both are estimates. Sums stand beside the number of turns that they are of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, Protocol, TypeAlias

from app.analysis import prices
from app.analysis.prices import Inputs, Rates
from app.analysis.warm import Warm
from app.ledger.rollups.broken import UNKNOWN, Part, tokens_of
from app.ledger.rows import TurnRow
from app.ledger.same_call import LOGGED

_NANO = 9


class Delay(NamedTuple):
    """Milliseconds; less than zero where it was faster than the median."""

    expected: int
    low: int
    high: int


class Loss(NamedTuple):
    missed: int | None
    cost: Decimal | None
    """Nano-dollars."""
    delay: Delay | None


Sellers: TypeAlias = Mapping[str, str]
"""What tells whose prices the upstreams of this gateway have, by their names."""
NOBODY: Sellers = {}


class Source(Protocol):
    @property
    def source(self) -> str: ...
    @property
    def upstream(self) -> str: ...


def seller_of(row: Source, sellers: Sellers) -> str:
    """Names in logs are not those of this gateway."""
    is_ours = not row.source.startswith(LOGGED)
    return sellers.get(row.upstream, row.upstream) if is_ours else row.upstream


def loss_of(row: TurnRow, warm: Warm | None, sellers: Sellers = NOBODY) -> Loss:
    """``warm`` is of the row's session."""
    delay = None
    if warm is not None and row.ttft_ms is not None:
        delay = Delay(*(round(row.ttft_ms - at) for at in (warm.median, warm.high, warm.low)))
    return Loss(row.missed_tokens, _cost(row, sellers), delay)


def _cost(row: TurnRow, sellers: Sellers) -> Decimal | None:
    if row.missed_tokens is None or row.input_tokens is None:
        return None
    seller = seller_of(row, sellers)
    found = prices.rates(row.model, seller, row.service_tier, row.started_at, row.input_tokens)
    if found is None:
        return None
    return not_read(
        found, row.missed_tokens, row.cache_write_tokens or 0, row.cache_write_long_tokens or 0
    )


def cost_of(part: Part, sellers: Sellers = NOBODY) -> tuple[int, Decimal] | None:
    """Of how many breaks the price is known, and the nano-dollars that these missed; None where not
    all of them need have the same prices."""
    key = part.key
    if key.size == UNKNOWN or not part.counted:
        return 0, Decimal(0)
    seller = seller_of(key, sellers)
    found, other = (
        prices.rates(key.model, seller, key.service_tier, part.first_at, tokens)
        for tokens in tokens_of(key.size)
    )
    if found != other or not prices.steady(key.model, seller, part.first_at, part.last_at):
        return None
    inputs = None if found is None or (key.long and found.lacks_write_long) else found.inputs
    if inputs is None:
        return 0, Decimal(0)
    return part.counted, _beyond(inputs, part.missed, part.written, part.written_long)


def not_read(rates: Rates, tokens: int, written: int, long: int) -> Decimal | None:
    """Nano-dollars that tokens cost beyond their price when read, of a turn that wrote so many, of
    them ``long`` for the longer time; None where the list lacks what is needed.

    Those that were written, and among them the long ones, are counted first.
    """
    inputs = rates.inputs
    if inputs is None or (long and rates.lacks_write_long):
        return None
    long = min(tokens, long)
    return _beyond(inputs, tokens, min(tokens, written) - long, long)


def _beyond(inputs: Inputs, tokens: int, written: int, long: int) -> Decimal:
    plain, read, write, write_long = inputs
    paid = plain * (tokens - written - long) + write * written + write_long * long
    return paid - read * tokens


def usd(nano: Decimal | None) -> Decimal | None:
    """Dollars of nano-dollars, to the nano-dollar."""
    return None if nano is None else Decimal(round(nano)).scaleb(-_NANO)


@dataclass(slots=True)
class Waste:
    """A sum of losses. Whatever order they are added in, it is the same."""

    turns: int = 0
    counted: int = 0
    """Turns whose missed tokens are known."""
    tokens: int = 0
    priced: int = 0
    nano: Decimal = Decimal(0)
    timed: int = 0
    ms: int = 0
    ms_low: int = 0
    ms_high: int = 0

    def add(self, loss: Loss) -> None:
        self.turns += 1
        if loss.missed is not None:
            self.counted += 1
            self.tokens += loss.missed
        if loss.cost is not None:
            self.priced += 1
            self.nano += loss.cost
        if loss.delay is not None:
            self.timed += 1
            self.ms += loss.delay.expected
            self.ms_low += loss.delay.low
            self.ms_high += loss.delay.high

    def add_sum(self, part: Part, priced: int, nano: Decimal) -> None:
        """Add breaks, of so many of which the price is known."""
        self.turns += part.turns
        self.counted += part.counted
        self.tokens += part.missed
        self.priced += priced
        self.nano += nano

    @property
    def missed(self) -> int | None:
        return self.tokens if self.counted else None

    @property
    def cost_usd(self) -> Decimal | None:
        return usd(self.nano) if self.priced else None

    @property
    def unpriced(self) -> int:
        """Turns without a price."""
        return self.turns - self.priced

    @property
    def delay(self) -> Delay | None:
        """The ends of the interval are sums of ends: of several sessions it is rather too wide."""
        return Delay(self.ms, self.ms_low, self.ms_high) if self.timed else None
