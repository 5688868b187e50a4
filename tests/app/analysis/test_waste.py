"""Money is computed by hand from the list: a million tokens of input of gpt-5.6-sol cost 4 dollars,
0.40 when read, 5 when written and 10 when written for longer."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.analysis.prices import Rates
from app.analysis.warm import Warm
from app.analysis.waste import Delay, Loss, Waste, loss_of, not_read, usd
from tests.support.reported import judged

AT = 1_793_577_600_000
RATES = Rates(*(Decimal(n) for n in (4_000, 400, 5_000, 10_000, 20_000)))


@pytest.mark.parametrize(
    ("nano", "written", "long"),
    [
        (36_000_000, 0, 0),  # 10 000 × (4 000 - 400)
        (46_000_000, 10_000, 0),  # 10 000 × (5 000 - 400)
        (46_000_000, 60_000, 0),  # more was written than was missed
        (96_000_000, 10_000, 10_000),  # 10 000 × (10 000 - 400)
        (43_000_000, 7_000, 0),  # 7 000 × 5 000 + 3 000 × 4 000 - 10 000 × 400
        (58_000_000, 7_000, 3_000),  # the same, 3 000 of them at 10 000
    ],
)
def test_missed_tokens_cost_what_was_paid_less_what_reading_them_costs(nano, written, long):
    assert nano == not_read(RATES, 10_000, written, long)


def test_a_list_that_lacks_a_price_that_is_needed_gives_none():
    assert not_read(RATES._replace(input=None), 1, 0, 0) is None
    assert not_read(RATES._replace(write_long=None), 1, 1, 1) is None
    # Without a price for reading, reading costs what input does; so with writing.
    assert not_read(RATES._replace(cached=None), 10, 0, 0) == 0
    assert not_read(RATES._replace(write=None, write_long=None), 10, 10, 0) == 36_000


def test_a_turn_lost_tokens_money_and_time():
    row = judged("idle", "likely", 10_000, 0, started_at=AT, ttft_ms=1_000.4)
    assert Loss(10_000, Decimal(36_000_000), Delay(600, 500, 700)) == loss_of(
        row, Warm(400.0, 300.0, 500.0)
    )


def test_what_is_not_known_is_none_and_never_zero():
    known = Warm(400.0, 300.0, 500.0)
    row = judged("idle", "likely", 10_000, 0, started_at=AT, model="nobody-lists-it", ttft_ms=None)
    assert Loss(10_000, None, None) == loss_of(row, known)
    row = judged("prefix_changed", "proven", None, 0, started_at=AT, ttft_ms=9.0)
    assert Loss(None, None, None) == loss_of(row, None)


def test_a_sum_of_what_nobody_knows_is_unknown():
    waste = Waste()
    for _ in range(3):
        waste.add(Loss(None, None, None))
    assert (3, None, None, 3, None) == (
        waste.turns, waste.missed, waste.cost_usd, waste.unpriced, waste.delay,
    )  # fmt: skip


def test_money_is_told_to_the_nano_dollar():
    assert Decimal("0.000000037") == usd(Decimal("36.5004"))
    assert usd(None) is None


MAYBE = st.integers(0, 10**7)
LOSSES = st.builds(
    Loss,
    st.none() | MAYBE,
    st.none() | st.decimals(0, 10**9, places=3),
    st.none() | st.builds(Delay, MAYBE, MAYBE, MAYBE),
)


@settings(max_examples=40)
@given(st.lists(LOSSES, max_size=20).flatmap(lambda x: st.tuples(st.just(x), st.permutations(x))))
def test_a_sum_is_that_of_what_is_known_in_whatever_order(both):
    one, other = Waste(), Waste()
    for waste, losses in zip((one, other), both, strict=True):
        for loss in losses:
            waste.add(loss)
    assert one == other
    losses = both[0]
    assert sum(loss.missed or 0 for loss in losses) == one.tokens
    assert sum(loss.cost or 0 for loss in losses) == one.nano
    assert [loss.cost for loss in losses].count(None) == one.unpriced
    assert sum(loss.delay.expected for loss in losses if loss.delay) == one.ms


def test_the_prices_are_those_of_who_sells_to_this_gateway_but_not_to_a_log():
    local = {"main": "vllm"}  # nobody asks a list price for what runs on one's own machine
    for source, cost in (("gateway", None), ("import:codex", Decimal(36_000_000))):
        row = judged("idle", "likely", 10_000, 0, started_at=AT, upstream="main", source=source)
        assert cost == loss_of(row, None, local).cost
