"""The figures below were computed by hand from the list's prices of those days."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest
from genai_prices import Usage, calc_price
from hypothesis import given
from hypothesis import strategies as st

from app.analysis import prices
from app.analysis.prices import Priced, Rates, Unpriced, price, rates, steady


class Tokens(NamedTuple):
    input_tokens: int | None = 100_000
    cached_tokens: int | None = 90_000
    cache_write_tokens: int | None = 8_000
    cache_write_long_tokens: int | None = 0
    output_tokens: int | None = 500


def ms(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)


AT = ms(2026, 11, 2)
HOUR = 3_600_000


def usd(text: str) -> int:
    return int(Decimal(text) * 10**9)


@pytest.mark.parametrize(
    ("cost", "model", "at", "usage"),
    [
        # 90 000 × 0.40 + 2 000 × 4 + 8 000 × 5 + 500 × 20 dollars per million.
        ("0.094", "gpt-5.6-sol", AT, Tokens()),
        # Before the 21st of August 2026: 0.50, 5, 6.25 and 30.
        ("0.120", "gpt-5.6-sol", ms(2026, 8, 20), Tokens()),
        # Written for 12 hours, at 10 dollars per million.
        ("0.134", "gpt-5.6-sol", AT, Tokens(cache_write_long_tokens=8_000)),
        # No price for writes, which are input like any other: 0.175, 1.75 and 14.
        ("0.04025", "gpt-5.3-codex", AT, Tokens()),
        # More than 272 000 tokens: all of them at 5, 0.5 and 22.5 instead of 2.5, 0.25 and 15.
        ("0.9725", "gpt-5.4", AT, Tokens(280_000, 100_000, 0, 0, 1_000)),
        # No price for what is read: it is input like any other.
        ("1.56", "gpt-5-pro", AT, Tokens()),
        # Anthropic's writes for five minutes at 3.75, for an hour at 6.
        ("0.0705", "claude-sonnet-4-5", AT, Tokens()),
        ("0.0885", "claude-sonnet-4-5", AT, Tokens(cache_write_long_tokens=8_000)),
    ],
)
def test_costs_are_those_of_the_list_on_the_day_of_the_request(cost, model, at, usage):
    assert Priced(usd(cost), prices.LIST_PRICE) == price(model, "litellm", None, at, usage)


@pytest.mark.parametrize("tier", [None, "default", "auto", "standard"])
def test_standard_tiers_have_the_standard_price(tier):
    assert Priced(usd("0.094"), prices.LIST_PRICE) == price(
        "gpt-5.6-sol", "openai", tier, AT, Tokens()
    )


@pytest.mark.parametrize(("tier", "at"), [("flex", AT), ("batch", AT)])
def test_a_tier_in_the_list_has_its_own_price(tier, at):
    assert Priced(usd("0.047"), prices.LIST_PRICE) == price(
        "gpt-5.6-sol", "openai", tier, at, Tokens()
    )


@pytest.mark.parametrize(("tier", "at"), [("scale", AT), ("ultra", AT), ("flex", ms(2026, 9, 1))])
def test_a_tier_that_the_list_does_not_know_at_that_time_has_no_price(tier, at):
    assert Unpriced(prices.NO_TIER) == price("gpt-5.6-sol", "openai", tier, at, Tokens())


@pytest.mark.parametrize(
    ("model", "upstream"),
    [
        ("gpt-5.6-sol", None),
        ("GPT-5.6-Sol", "openai"),
        ("gpt-5.6-sol", "api.openai.com"),
        ("gpt-5.6-sol", "https://chatgpt.com/backend-api/codex"),
        ("gpt-5.6-sol", "an upstream of ours"),
        ("gpt-5.6-sol", "azure"),
        ("openai/gpt-5.6-sol", "openrouter"),
        ("openai/gpt-5.6-sol", "litellm"),
        ("openai/gpt-5.6-sol", "an upstream of ours"),
        ("gpt-5.6-sol-2026-07-01", "openai"),
    ],
)
def test_models_are_found_however_they_are_reached(model, upstream):
    assert Priced(usd("0.094"), prices.LIST_PRICE) == price(model, upstream, None, AT, Tokens())


def test_a_snapshot_that_is_not_listed_costs_what_its_model_does():
    assert price("gpt-5.3-codex", None, None, AT, Tokens()) == price(
        "gpt-5.3-codex-2026-02-05", None, None, AT, Tokens()
    )


@pytest.mark.parametrize(
    ("note", "model", "upstream", "usage"),
    [
        (prices.NO_MODEL, None, "openai", Tokens()),
        (prices.NO_MODEL, "a-model-of-nobody", "openai", Tokens()),
        (prices.NO_MODEL, "text-embedding-3-small", "openai", Tokens()),
        (prices.NO_UPSTREAM, "gpt-oss-20b", "ollama", Tokens()),
        (prices.NO_WRITE_LONG, "gpt-5.6-sol", "azure", Tokens(cache_write_long_tokens=1)),
        (prices.NO_USAGE, "gpt-5.6-sol", "openai", Tokens(input_tokens=None)),
        (prices.NO_USAGE, "gpt-5.6-sol", "openai", Tokens(output_tokens=None)),
        (prices.NO_CACHED, "gpt-5.6-sol", "openai", Tokens(cached_tokens=None)),
        (prices.BAD_USAGE, "gpt-5.6-sol", "openai", Tokens(cached_tokens=99_000)),
        (prices.BAD_USAGE, "gpt-5.6-sol", "openai", Tokens(cache_write_long_tokens=9_000)),
        (prices.BAD_USAGE, "gpt-5.6-sol", "openai", Tokens(output_tokens=-1)),
    ],
)
def test_what_is_not_known_has_no_price_and_says_why(note, model, upstream, usage):
    assert note in prices.NOTES
    assert Unpriced(note) == price(model, upstream, None, AT, usage)


def test_unknown_reads_do_not_matter_where_they_cost_the_same():
    assert price("gpt-5-pro", None, None, AT, Tokens()) == price(
        "gpt-5-pro", None, None, AT, Tokens(cached_tokens=None, cache_write_tokens=None)
    )


def test_unknown_writes_are_input_and_said_to_be_unknown():
    unknown = Tokens(cache_write_tokens=None, cache_write_long_tokens=None)
    assert Priced(usd("0.086"), prices.WRITES_UNKNOWN) == price(
        "gpt-5.6-sol", None, None, AT, unknown
    )
    # Nothing of it can have been written.
    assert Priced(usd("0.050"), prices.LIST_PRICE) == price(
        "gpt-5.6-sol", None, None, AT, unknown._replace(input_tokens=100_000, cached_tokens=100_000)
    )


def test_rates_are_nano_dollars_a_token():
    assert Rates(*map(Decimal, (4_000, 400, 5_000, 10_000, 20_000))) == rates(
        "gpt-5.6-sol", "openai", None, AT, 272_000
    )
    assert Rates(*map(Decimal, (8_000, 800, 10_000, 20_000, 30_000))) == rates(
        "gpt-5.6-sol", "openai", None, AT, 272_001
    )
    assert Rates(Decimal(15_000), None, None, None, Decimal(120_000)) == rates(
        "gpt-5-pro", "openai", None, AT, 1
    )
    assert rates("a-model-of-nobody", "openai", None, AT, 1) is None


COUNTS = st.integers(0, 30_000)
USAGES = st.builds(
    lambda plain, read, short, long, out: Tokens(
        plain + read + short + long, read, short + long, long, out
    ),
    COUNTS, COUNTS, COUNTS, COUNTS, COUNTS,
)  # fmt: skip
MODELS = st.sampled_from(["gpt-5.6-sol", "gpt-5.4", "gpt-5.3-codex", "claude-sonnet-4-5"])


@pytest.mark.parametrize(
    ("is_steady", "model", "first", "last"),
    [
        (True, "claude-opus-4-6", ms(2026, 10, 14), ms(2026, 11, 20)),
        (False, "claude-opus-4-6", ms(2026, 10, 14) - 1, ms(2026, 11, 20)),
        # It costs more from 1 to 4 and from 6 to 10.
        (True, "deepseek-v4-pro", AT, AT + HOUR - 1),
        (False, "deepseek-v4-pro", AT, AT + HOUR),
        (False, "deepseek-v4-pro", AT + 5 * HOUR, AT + 11 * HOUR),
        (True, "no-such-model", ms(2020, 1, 1), AT),
    ],
)
def test_a_price_is_steady_between_two_changes(is_steady, model, first, last):
    assert is_steady is steady(model, None, first, last)


def test_a_write_that_costs_less_than_input_is_the_storage_beside_it():
    found = rates("google/gemini-2.5-flash", "openrouter", None, AT, 10_000)
    assert found is not None
    assert (Decimal(300), Decimal("383.333")) == (found.input, round(found.write, 3))
    # A miss that is written anew costs more than reading, whatever the list.
    assert found.write > found.input > found.cached


@given(MODELS, USAGES, USAGES)
def test_below_the_tiers_costs_add_up_and_grow_with_tokens(model, one, other):
    def cost(usage: Tokens) -> int:
        found = price(model, None, None, AT, usage)
        assert isinstance(found, Priced)
        return found.usd

    both = Tokens(*(a + b for a, b in zip(one, other, strict=True)))
    assert both.input_tokens <= 272_000
    if model != "claude-sonnet-4-5" or both.input_tokens <= 200_000:
        assert abs(cost(both) - cost(one) - cost(other)) <= 2  # each rounded to a nano-dollar
    assert 0 <= cost(one) <= cost(both)


@given(MODELS, USAGES)
def test_without_long_writes_the_package_itself_says_the_same(model, usage):
    usage = usage._replace(cache_write_long_tokens=0)
    by_package = calc_price(
        Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
        ),
        model,
        genai_request_timestamp=datetime.fromtimestamp(AT / 1000, UTC),
    )
    assert Priced(round(by_package.total_price * 10**9), prices.LIST_PRICE) == price(
        model, None, None, AT, usage
    )


def test_the_documentation_says_what_each_note_means():
    text = (Path(__file__).parents[3] / "docs" / "ledger.md").read_text()
    section = text.split("\n## Prices\n")[1].split("\n## ")[0]
    assert list(prices.NOTES) == re.findall(r"^\| `(\w+(?::\w+)?)` \|", section, re.MULTILINE)[1:]
