from app.analysis import prices
from app.analysis.waste import Waste, cost_of, loss_of
from app.ledger import breaks
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rollups.contribution import DAY, HOUR
from app.web.break_costs import costs
from tests.support.rows import START_MS, make_row

FIRST = START_MS - START_MS % DAY


def test_a_price_that_is_another_one_for_some_hours_is_that_of_each_break(site):
    rows = [
        make_row(
            started_at=FIRST + hour * HOUR + 1,
            model="deepseek-v4-pro",
            mode="ws_full",
            reason="prefix_mismatch",
            fingerprint="f1",
            missed_tokens=1_000_000,
            input_tokens=1_000_000,
            cached_tokens=0,
        )
        for hour in range(30)
    ]
    site.write(rows)
    wanted = Waste()
    for row in rows:
        wanted.add(loss_of(row, None))
    assert len({loss_of(row, None).cost for row in rows} - {None}) == 2
    view = Filter(start=FIRST, end=FIRST + 2 * DAY)
    with reading(site.engine) as connection:
        parts = list(breaks.parts(connection, view, ["f1"]))
        assert [None] == [cost_of(part) for part in parts]
        hours = breaks.parts(connection, view, ["f1"], by=HOUR)
        assert {(1, loss_of(row, None).cost) for row in rows} == {cost_of(part) for part in hours}
        found = costs(connection, view, parts, {})["f1"]
    assert (wanted.priced, wanted.nano) == (found.priced, found.nano)
    assert 30 == found.priced
    assert not prices.steady("deepseek-v4-pro", "default", rows[0].started_at, rows[-1].started_at)
