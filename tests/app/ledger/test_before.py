"""What is compared with a view, and when nothing is: pure SQL is tested with the summary."""

from dataclasses import replace

from sqlalchemy import Engine

from app.ledger.before import Gap, before
from app.ledger.filters import Filter
from app.ledger.retention import prune
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.summary import summarize
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY
TODAY = Filter(start=DAWN - DAY, end=DAWN)


def write(engine: Engine) -> None:
    rows = [make_row(started_at=DAWN - n * DAY + 1, model=f"m{n % 2}") for n in range(10)]
    write_rows(engine, [*rows, make_row(started_at=DAWN - 2 * DAY, mode="ws_full")])


def test_the_time_before_is_as_long_and_ends_where_the_view_begins(engine: Engine):
    write(engine)
    found = before(engine, TODAY, DAWN)
    same = summarize(engine, Filter(start=DAWN - 2 * DAY, end=DAWN - DAY))
    assert (DAWN - 2 * DAY, DAWN - DAY, None) == (found.view.start, found.view.end, found.gap)
    assert (2, 1) == (found.continuity.known, found.continuity.incremental)
    assert same.continuity == found.continuity
    assert (same.tokens, same.cost, same.ttft) == (found.tokens, found.cost, found.ttft)
    narrowed = before(engine, TODAY.narrow("model", "m0"), DAWN)
    assert 1 == narrowed.continuity.known


def test_a_time_that_is_not_whole_is_not_compared(engine: Engine):
    assert Gap.NOT_YET == before(engine, TODAY, DAWN).gap
    write(engine)
    assert Gap.OPEN == before(engine, TODAY, DAWN - 1).gap
    week = replace(TODAY, start=DAWN - 7 * DAY)
    assert Gap.NOT_YET == before(engine, week, DAWN).gap
    assert 0 == before(engine, week, DAWN).continuity.generation
    prune(engine, START_MS, row_days=3, rollup_days=6)
    view = TODAY.window(DAWN - 4 * DAY, DAWN - 3 * DAY)
    assert (None, 1) == (
        before(engine, view, DAWN).gap,
        before(engine, view, DAWN).continuity.known,
    )
    gone = (view.narrow("session", "session-a"), view.window(view.start, view.start + HOUR), week)
    assert [Gap.DELETED] * 3 == [before(engine, one, DAWN).gap for one in gone]
