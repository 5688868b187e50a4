"""What it cost to condense a history, what that saves, and when it has paid for itself.

Let the history have ``before`` tokens at the last turn before a reset, and ``after`` at the first
one after it. Without the reset each later turn would have read ``before`` tokens from the cache
where it now reads ``after``; what the conversation grows by is the same either way. So, with r the
price of a token that is read and p the price that the tokens not read at the first turn were paid
at (as writes or as input):

    paid   = the requests that made the summary + not read × (p - r)
    saved  = before × r - after × r, by each turn, the first one included
    breaks even with turn  ⌈paid ÷ saved⌉

Where ``after`` is no shorter, nothing is saved and it never does. A reset whose turns end before
that turn cost more than it saved; if another reset is why they end, one at that time would have
done for both. All of it is an estimate at list prices; without a price nothing is said of money.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from itertools import groupby
from typing import Any, Protocol

from app.analysis import prices
from app.analysis.chains import Before, Link
from app.analysis.verdicts import MINIMUM, Verdict, rewrites
from app.analysis.waste import NOBODY, Sellers, not_read, seller_of, usd
from app.ledger.conditions import SUCCEEDED
from engine.model import Kind, UsageState

LISTED = 50
"""Resets, and pairs of resets, that are listed."""


class Passing(Link, Protocol):
    """What is read of each turn of a session that has resets."""

    turn_id: str
    session_key: str
    session: str | None
    source: str
    kind: str
    status: str
    model: str | None
    upstream: str
    service_tier: str | None
    epoch_reset_reason: str | None
    cache_verdict: str | None
    usage_state: str
    cached_tokens: int | None
    cache_write_tokens: int | None
    cache_write_long_tokens: int | None
    output_tokens: int | None
    selected: bool
    """It is in the view; the turns around it are read to tell of it."""


@dataclass(slots=True)
class Reset:
    """Money in nano-dollars. Unknown is None."""

    turn_id: str
    """The first turn after it."""
    session_key: str
    session: str | None
    started_at: int
    word: str | None
    """Why, where that is recorded."""
    before: int | None
    after: int
    not_read: int
    """Tokens of the first turn after it that were not in the cache."""
    requests: int
    """Requests that made the summary, as far as they are rows."""
    paid: Decimal | None
    saves: Decimal | None
    """By each turn after it."""
    selected: bool = True
    turns: int = 1
    """After it, until the next reset or the last turn that is known."""
    followed: bool = False
    """By another reset."""
    earlier: Reset | None = None
    """The reset before it in its chain."""

    @property
    def never(self) -> bool:
        """It saves nothing, however long the conversation goes on."""
        return self.saves is not None and self.saves <= 0

    @property
    def breaks_even(self) -> int | None:
        """The turn with which it has paid for itself, 1 being the first after it; None if never,
        or not known."""
        if self.paid is None or self.saves is None or self.saves <= 0:
            return None
        return max(1, int((self.paid / self.saves).to_integral_value(ROUND_CEILING)))

    @property
    def net(self) -> Decimal | None:
        """What it has saved so far beyond what it cost; below zero where it cost more."""
        if self.paid is None or self.saves is None:
            return None
        return self.saves * self.turns - self.paid

    @property
    def reached(self) -> bool | None:
        """Whether it has paid for itself."""
        return None if self.net is None else self.net >= 0

    @property
    def too_soon(self) -> bool:
        """Another one came before it had paid for itself, and it would have."""
        return self.followed and self.breaks_even is not None and self.reached is False


@dataclass(slots=True)
class _Chain:
    """A chain as far as it has come."""

    last: Passing | None = None
    current: Reset | None = None
    requests: list[Passing] = field(default_factory=list)
    told: bool = False
    """A request or a word told since that the history is rewritten."""
    short: Passing | None = None
    """A turn that is much shorter than the last, without a word: the next one shows whether the
    history was condensed."""

    def begin(self, row: Passing, requests: list[Passing], sellers: Sellers) -> Reset | None:
        """A reset begins with this turn; the one before it has ended."""
        ended = self.current
        self.current = _reset(self.last, row, requests, sellers)
        self.current.earlier = ended
        if ended is not None:
            ended.followed = True
        self.last = row
        return ended


def resets(rows: Iterable[Passing], sellers: Sellers = NOBODY) -> Iterator[Reset]:
    """The resets that rewrote a history, each when its last turn is known. ``rows`` are the turns
    of sessions, one session after the other, as they ended."""
    for _, session in groupby(rows, key=lambda row: row.session_key):
        yield from _of_session(session, sellers)


def _of_session(rows: Iterable[Passing], sellers: Sellers) -> Iterator[Reset]:
    before: Before[_Chain] = Before()
    open_: dict[int, _Chain] = {}
    beside: list[Passing] = []
    """Requests for summaries, of chains that hold nothing else: of the next reset."""
    for row in rows:
        chain = before.of(row) or _Chain()
        before.push(row, chain)
        if row.status not in SUCCEEDED:
            continue
        if row.kind == Kind.COMPACTION:
            (beside if chain.last is None else chain.requests).append(row)
            continue
        if row.kind != Kind.GENERATION:
            continue
        chain.told = chain.told or bool(chain.requests) or rewrites(row.epoch_reset_reason)
        rewritten = chain.told or row.cache_verdict == Verdict.HISTORY_REWRITE
        if not _counted(row):
            if chain.current is not None and not rewritten:
                chain.current.turns += 1
            continue
        short, chain.short = chain.short, None
        if short is not None and not _is_long_again(chain, row):
            ended = chain.begin(short, [], sellers)
            yield from _closed(ended)
        if rewritten:
            open_[id(chain)] = chain
        if rewritten and not chain.told:
            chain.short = row
            continue
        if rewritten:
            ended = chain.begin(row, beside + chain.requests, sellers)
            beside, chain.requests, chain.told = [], [], False
            yield from _closed(ended)
        elif chain.current is not None:
            chain.current.turns += 1
        chain.last = row
    for chain in open_.values():
        if chain.short is not None:
            yield from _closed(chain.begin(chain.short, [], sellers))
        if chain.current is not None:
            yield chain.current


def _closed(ended: Reset | None) -> Iterator[Reset]:
    if ended is not None:
        yield ended
        ended.earlier = None


def _is_long_again(chain: _Chain, row: Passing) -> bool:
    """A request that was short and nothing more: a title, a question beside."""
    before = None if chain.last is None else chain.last.input_tokens
    return before is not None and 2 * (row.input_tokens or 0) >= before


def _counted(row: Passing) -> bool:
    return (
        row.usage_state == UsageState.REPORTED
        and row.cached_tokens is not None
        and row.input_tokens is not None
        and row.input_tokens >= MINIMUM
    )


def _reset(last: Passing | None, row: Passing, requests: list[Passing], sellers: Sellers) -> Reset:
    assert row.input_tokens is not None
    assert row.cached_tokens is not None
    before = None if last is None else last.input_tokens
    missing = row.input_tokens - row.cached_tokens
    return Reset(
        turn_id=row.turn_id,
        session_key=row.session_key,
        session=row.session,
        started_at=row.started_at,
        word=row.epoch_reset_reason,
        before=before,
        after=row.input_tokens,
        not_read=missing,
        requests=len(requests),
        paid=_paid(row, missing, requests, sellers),
        saves=None if before is None else _saves(row, before, sellers),
        selected=row.selected,
    )


def _paid(row: Passing, missing: int, requests: list[Passing], sellers: Sellers) -> Decimal | None:
    rates = _rates(row, row.input_tokens or 0, sellers)
    if rates is None:
        return None
    paid = not_read(rates, missing, row.cache_write_tokens or 0, row.cache_write_long_tokens or 0)
    for one in requests:
        seller = seller_of(one, sellers)
        found = prices.price(one.model, seller, one.service_tier, one.started_at, one)
        is_known = one.usage_state == UsageState.REPORTED
        if paid is None or not is_known or isinstance(found, prices.Unpriced):
            return None
        paid += found.usd
    return paid


def _saves(row: Passing, before: int, sellers: Sellers) -> Decimal | None:
    """Both at the prices of their own length: long inputs may cost more a token."""
    assert row.input_tokens is not None
    read = [_read(row, tokens, sellers) for tokens in (before, row.input_tokens)]
    return None if read[0] is None or read[1] is None else read[0] - read[1]


def _read(row: Passing, tokens: int, sellers: Sellers) -> Decimal | None:
    rates = _rates(row, tokens, sellers)
    inputs = None if rates is None else rates.inputs
    return None if inputs is None else inputs.read * tokens


def _rates(row: Passing, tokens: int, sellers: Sellers) -> prices.Rates | None:
    seller = seller_of(row, sellers)
    return prices.rates(row.model, seller, row.service_tier, row.started_at, tokens)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two resets of one chain, the first of which had not paid for itself."""

    first: Reset
    second: Reset

    @property
    def saved(self) -> Decimal:
        """What the second alone would have saved."""
        assert self.first.net is not None
        return -self.first.net


@dataclass(slots=True)
class Resets:
    """Adds up resets of a view; keeps no more of them than are listed."""

    number: int = 0
    priced: int = 0
    """Of which both is known, what they cost and what they save."""
    reached: int = 0
    not_reached: int = 0
    """Not yet, or not before the next one."""
    never: int = 0
    """That save nothing."""
    paid: Decimal = Decimal(0)
    saved: Decimal = Decimal(0)
    pairs: int = 0
    batched: Decimal = Decimal(0)
    """What batching each pair would have saved."""
    _listed: list[tuple[Decimal, int, str, Reset]] = field(default_factory=list)
    _pairs: list[tuple[Decimal, str, Pair]] = field(default_factory=list)

    @classmethod
    def of(cls, found: Iterable[Reset]) -> Resets:
        """``found`` as ``resets`` gives them."""
        made = cls()
        for one in found:
            made._add(one)
        return made

    def _add(self, one: Reset) -> None:
        if not one.selected:
            return
        self._count(one)
        last = one.earlier
        if last is not None and last.selected and last.too_soon:
            pair = Pair(last, one)
            self.pairs += 1
            self.batched += pair.saved
            _keep(self._pairs, (pair.saved, last.turn_id, pair))

    def _count(self, one: Reset) -> None:
        self.number += 1
        net = one.net
        _keep(
            self._listed,
            (Decimal("-Inf") if net is None else -net, one.started_at, one.turn_id, one),
        )
        if net is None or one.paid is None:
            return
        self.priced += 1
        self.paid += one.paid
        self.saved += net + one.paid
        self.never += one.never
        if not one.never:
            self.reached += bool(one.reached)
            self.not_reached += not one.reached

    @property
    def listed(self) -> list[Reset]:
        """Those that cost most beyond what they saved; the ones without a price last."""
        return [one[-1] for one in sorted(self._listed, key=lambda one: one[:-1], reverse=True)]

    @property
    def to_batch(self) -> list[Pair]:
        """The pairs whose batching would have saved most."""
        return [one[-1] for one in sorted(self._pairs, key=lambda one: one[:-1], reverse=True)]


def _keep(heap: list[Any], item: tuple[Any, ...]) -> None:
    heapq.heappush(heap, item)
    if len(heap) > LISTED:
        heapq.heappop(heap)


def advice(found: Resets) -> str | None:
    """What to do about resets, in a sentence; None where there is nothing to do."""
    if not found.pairs:
        return None
    what = "1 reset" if found.pairs == 1 else f"{found.pairs:,} resets"
    return (
        f"{what} came before the one before had paid for itself: one at that time instead of two "
        f"would have saved about ${usd(found.batched):,.2f}."
    )
