"""What a turn costs at list prices: an estimate, by the prices of the day of the request.

The list is the package ``genai-prices``. Loading it takes a third of a second and some memory, so
that it is loaded when the first price is asked for; ask off the event loop. Tokens only: searches,
audio and the like are not in it, and a subscription has no such bill (docs/decisions).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

LIST = "genai-prices"
"""The name of the price list."""

# Why a turn has this price, or none: all that ``price_note`` may say.
LIST_PRICE = "list_price"
WRITES_UNKNOWN = "list_price:writes_unknown"
"""The list asks more for tokens that are written to the cache, and nobody said how many were: all
that were not read are priced as ordinary input. The cost is at least that."""
NO_MODEL = "no_price:model"
"""The list does not know the model, or has no price for its tokens."""
NO_UPSTREAM = "no_price:upstream"
"""A server that runs models itself: nobody asks a list price for them."""
NO_TIER = "no_price:tier"
"""The list has no price for this service tier, at that time."""
NO_WRITE_LONG = "no_price:write_long"
"""The list has no price for writes with the longer lifetime, and there are some."""
NO_USAGE = "no_usage"
"""Input or output are not known."""
NO_CACHED = "no_usage:cached"
"""What was read from the cache costs less, and nobody said how much of the input was."""
BAD_USAGE = "no_usage:inconsistent"
"""The numbers contradict each other."""

NOTES = (
    LIST_PRICE, WRITES_UNKNOWN, NO_MODEL, NO_UPSTREAM, NO_TIER, NO_WRITE_LONG, NO_USAGE, NO_CACHED,
    BAD_USAGE,
)  # fmt: skip

_STANDARD = frozenset({None, "", "default", "auto", "standard", "on_demand"})
"""Service tiers that are the price itself."""
_HOUR = 3_600_000
_OWN_SERVERS = frozenset({"ollama", "vllm", "sglang", "lmstudio", "llama.cpp", "llamacpp"})
_SNAPSHOT = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")
_OPENAI_LONG_WRITE = 2
"""OpenAI's writes for 12 hours cost 2.5 times the input, those for 30 minutes 1.25 times (its price
list, September 2026); the package knows only the latter."""


class Tokens(Protocol):
    """Usage as a row has it: input includes what was read and written, the writes the long ones."""

    @property
    def input_tokens(self) -> int | None: ...
    @property
    def cached_tokens(self) -> int | None: ...
    @property
    def cache_write_tokens(self) -> int | None: ...
    @property
    def cache_write_long_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int | None: ...


class Inputs(NamedTuple):
    """What tokens of input cost, each price known."""

    plain: Decimal
    read: Decimal
    write: Decimal
    write_long: Decimal


class Rates(NamedTuple):
    """Nano-dollars a token (1 is a dollar per thousand million). None: the list has no such price;
    tokens that are read or written then cost what ``input`` does."""

    input: Decimal | None
    cached: Decimal | None
    write: Decimal | None
    write_long: Decimal | None
    output: Decimal | None

    @property
    def inputs(self) -> Inputs | None:
        """None where even ``input`` has no price."""
        plain = self.input
        if plain is None:
            return None
        read = plain if self.cached is None else self.cached
        write = plain if self.write is None else self.write
        return Inputs(plain, read, write, write if self.write_long is None else self.write_long)

    @property
    def lacks_write_long(self) -> bool:
        """Writes have a price of their own, and those with the longer lifetime have not."""
        return self.write is not None and self.write_long is None


class Priced(NamedTuple):
    usd: int
    """Nano-dollars."""
    note: str


class Unpriced(NamedTuple):
    note: str


@cache
def list_version() -> str:
    """The version of the list, which says what it knows; it has no date of its own."""
    return version(LIST)


def list_name() -> str:
    """The list as it is told, with its version."""
    return f"{LIST} {list_version()}"


def price(
    model: str | None, upstream: str | None, service_tier: str | None, at: int, usage: Tokens
) -> Priced | Unpriced:
    """What a turn costs that began ``at`` (epoch milliseconds).

    ``upstream`` is whatever tells whose prices these are: a name, a host or an address. Where it
    tells nobody who is in the list, or who has no price for the model, the model's maker's count.
    """
    total, output = usage.input_tokens, usage.output_tokens
    if total is None or output is None:
        return Unpriced(NO_USAGE)
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    long = usage.cache_write_long_tokens or 0
    counts = (total, cached or 0, written or 0, long, output)
    if min(counts) < 0 or (cached or 0) + (written or 0) > total or long > (written or 0):
        return Unpriced(BAD_USAGE)
    found = _rates(model, upstream, service_tier, at, total)
    if isinstance(found, Unpriced):
        return found
    inputs = found.inputs
    if inputs is None or (found.output is None and output):
        return Unpriced(NO_MODEL)
    if cached is None and found.cached not in {None, found.input}:
        return Unpriced(NO_CACHED)
    if long and found.lacks_write_long:
        return Unpriced(NO_WRITE_LONG)
    plain, read, write, write_long = inputs
    usd = (
        plain * (total - (cached or 0) - (written or 0))
        + read * (cached or 0)
        + write * ((written or 0) - long)
        + write_long * long
        + (found.output or 0) * output
    )
    unsure = written is None and write > plain and total > (cached or 0)
    return Priced(round(usd), WRITES_UNKNOWN if unsure else LIST_PRICE)


def rates(
    model: str | None, upstream: str | None, service_tier: str | None, at: int, input_tokens: int
) -> Rates | None:
    """The prices of a turn with so many tokens of input (which may have tiers by its length); None
    where the list has none. For the rest see ``price``."""
    found = _rates(model, upstream, service_tier, at, input_tokens)
    return found if isinstance(found, Rates) else None


def steady(model: str | None, upstream: str | None, first: int, last: int) -> bool:
    """Whether no price of a model changes between two instants (epoch milliseconds)."""
    entry = None if not model else _entry(model, upstream)
    if entry is None:
        return True
    info = entry[1]
    listed = info.prices if isinstance(info.prices, list) else []
    start, end = (datetime.fromtimestamp(at / 1000, UTC) for at in (first, last))
    for priced in (*listed, *(info.price_variants or ())):
        limit = priced.constraint
        if limit is None:
            continue
        if limit.active(start) != limit.active(end):
            return False
        # What is active at both may not be so in between, where it is of some hours of each day.
        if not hasattr(limit, "start_date") and first // _HOUR != last // _HOUR:
            return False
    return True


def _rates(
    model: str | None, upstream: str | None, service_tier: str | None, at: int, input_tokens: int
) -> Rates | Unpriced:
    if upstream is not None and upstream.lower() in _OWN_SERVERS:
        return Unpriced(NO_UPSTREAM)
    entry = None if not model else _entry(model, upstream)
    if entry is None:
        return Unpriced(NO_MODEL)
    provider, info = entry
    prices = _prices(info, service_tier, datetime.fromtimestamp(at / 1000, UTC))
    if prices is None:
        return Unpriced(NO_TIER)

    def of(price: Decimal | TieredPrices | None) -> Decimal | None:
        if price is None:
            return None
        if not isinstance(price, Decimal):
            tiers = (tier.price for tier in reversed(price.tiers) if input_tokens > tier.start)
            price = next(tiers, price.base)
        return price * 1000  # from dollars per million

    plain = of(prices.input_mtok)
    write, long = of(prices.cache_write_mtok), of(prices.cache_write_1h_mtok)
    if write is not None and plain is not None and write < plain:
        write += plain  # it is what storing costs: OpenRouter's prices of Gemini
    if long is None and write is not None and provider.id == "openai":
        long = write * _OPENAI_LONG_WRITE
    return Rates(plain, of(prices.cache_read_mtok), write, long, of(prices.output_mtok))


def _prices(info: ModelInfo, service_tier: str | None, at: datetime) -> ModelPrice | None:
    if service_tier in _STANDARD:
        return info.get_prices(at)
    tier = str(service_tier)
    context = {"processing" if tier == "batch" else "service_tier": tier}
    for variant in info.price_variants or ():
        if variant.when == context and (
            variant.constraint is None or variant.constraint.active(at)
        ):
            return info.get_prices(at, context)
    return None


@lru_cache(maxsize=1024)
def _entry(model: str, upstream: str | None) -> tuple[Provider, ModelInfo] | None:
    """Who asks a price for the model, and its entry in the list."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    listed = get_snapshot()
    for provider, name in _guesses(model.lower(), upstream):
        for spelling in dict.fromkeys((name, _SNAPSHOT.sub("", name))):
            try:
                return listed.find_provider_model(spelling, None, provider[0], provider[1])
            except LookupError:
                continue
    return None


def _guesses(
    model: str, upstream: str | None
) -> Iterator[tuple[tuple[str | None, str | None], str]]:
    """Providers, by name or by address, with the name of the model there; the surest first."""
    if upstream:
        if "://" in upstream:
            yield (None, upstream), model
        elif "." in upstream:
            yield (None, f"https://{upstream}"), model
        yield (upstream, None), model
    yield (None, None), model
    maker, _, name = model.rpartition("/")
    if maker:
        yield (maker.rpartition("/")[2], None), name
        yield (None, None), name
