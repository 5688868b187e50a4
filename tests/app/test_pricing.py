from decimal import Decimal

import pytest
from sqlalchemy import Engine

from app import pricing
from app.analysis.prices import list_version
from app.ledger.database import WRITES
from app.ledger.filters import Filter
from app.ledger.store import update_rows
from app.ledger.summary import summarize
from app.ledger.writer import write_rows
from app.settings import load
from tests.support.importing import stored
from tests.support.rows import START_MS, make_row, unknown_usage

LISTED = f"@{list_version()}"
# 100 × 4 + 900 × 0.40 + 50 × 20 dollars per million: nobody said what was written to the cache.
ROW, COST = make_row(), Decimal("0.00176")


def test_turns_of_any_kind_get_the_price_of_their_day_with_the_version_of_the_list(
    engine: Engine,
):
    before = make_row(started_at=START_MS - 200 * 86_400_000, kind="compaction")
    write_rows(engine, [ROW, before, unknown_usage(), make_row(model="a-model-of-nobody")])
    assert 4 == pricing.price_all(engine)
    assert 0 == pricing.price_all(engine)
    found = [(row.cost_usd, row.price_note) for row in stored(engine)]
    assert [
        (COST, "list_price:writes_unknown" + LISTED),
        (Decimal("0.00245"), "list_price:writes_unknown" + LISTED),  # 5, 0.50 and 30
        (None, "no_usage" + LISTED),
        (None, "no_price:model" + LISTED),
    ] == found
    cost = summarize(engine, Filter(start=0, end=2 * START_MS)).cost
    assert (4_210_000, 2, 2) == (cost.nano_usd, cost.priced, cost.unpriced)


def test_a_turn_that_turns_out_to_be_another_is_priced_anew(engine: Engine):
    write_rows(engine, [ROW])
    pricing.price_all(engine)
    (known,) = stored(engine)
    with engine.execution_options(**WRITES).begin() as connection:
        update_rows(
            connection,
            [
                make_row(
                    turn_id=known.turn_id,
                    output_tokens=100,
                    cost_usd=known.cost_usd,
                    price_note=known.price_note,
                )
            ],
        )
    assert 1 == pricing.price_all(engine)
    assert [COST + Decimal("0.001")] == [row.cost_usd for row in stored(engine)]


@pytest.mark.parametrize("state", ["estimated", "missing", "inconsistent"])
def test_what_no_provider_reported_has_no_price(state):
    assert pricing.price_of(make_row(usage_state=state)).usd is None


def test_an_upstream_is_known_by_its_preset_or_its_address(tmp_path):
    config = tmp_path / "warmline.toml"
    config.write_text(
        'upstream = "https://api.openai.com/v1"\n'
        '[upstreams.mine]\nbase_url = "http://127.0.0.1:8000/v1"\npreset = "vllm"\n'
    )
    known = pricing.sellers(load(config=config, environ={"HOME": str(tmp_path)}))
    assert {"default": "https://api.openai.com/v1", "mine": "vllm"} == known
    row = make_row(upstream="mine", model="gpt-oss-20b")
    assert ("no_price:upstream" + LISTED) == pricing.price_of(row, known).note
    # What a log calls so is another one.
    logged = make_row(upstream="mine", model="gpt-oss-20b", source="import:codex")
    assert pricing.price_of(logged, known).usd is not None
