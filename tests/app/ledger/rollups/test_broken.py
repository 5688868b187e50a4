import pytest

from app.ledger.rollups.broken import LADDER, UNKNOWN, Broken, size_of, sums_of, tokens_of
from tests.support.rows import START_MS, make_row

PARTED = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}


@pytest.mark.parametrize("tokens", [0, 1, *LADDER, *(step + 1 for step in LADDER), 10_000_000])
def test_the_tokens_of_a_size_are_on_no_two_sides_of_a_step(tokens):
    least, most = tokens_of(size_of(tokens))
    assert least <= tokens
    assert tokens <= most or most > LADDER[-1]
    assert not any(least <= step < most for step in LADDER)


def test_input_that_is_not_known_has_a_size_of_its_own():
    assert UNKNOWN == size_of(None)


def test_every_step_of_the_price_list_is_on_the_ladder():
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    found = set()
    for provider in get_snapshot().providers:
        for model in provider.models:
            listed = model.prices if isinstance(model.prices, list) else [model]
            for priced in (*listed, *(model.price_variants or ())):
                for price in vars(priced.prices).values():
                    found |= {tier.start for tier in getattr(price, "tiers", ())}
    assert found
    assert set() == found - set(LADDER)


def test_what_was_written_is_counted_first():
    row = make_row(missed_tokens=700, cache_write_tokens=500, cache_write_long_tokens=100)
    assert (1, 1, 700, 400, 100) == sums_of(row)
    assert (1, 0, 0, 0, 0) == sums_of(make_row())


def test_what_is_taken_away_leaves_nothing():
    rows = [make_row(started_at=START_MS + n, missed_tokens=n, **PARTED) for n in range(3)]
    made = Broken()
    made.add([*rows, make_row()])
    assert [3, 3, 3, 0, 0] == next(iter(made.sums.values()))
    assert 1 == len(made.sums) == len(made.sessions)
    made.add(rows, -1)
    assert not any(any(sums) for sums in made.sums.values())
    assert not any(made.sessions.values())
