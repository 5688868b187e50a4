from app.analysis.continuity import Share
from app.charts.source import TokenSums
from app.ledger.filters import parse
from app.ledger.rollups.distribution import Distribution
from app.web.figures import LedgerSource
from tests.support.clock import START
from tests.support.rows import START_MS, make_row, unknown_usage

QUARTER = 15 * 60_000


def source(site, **parameters):
    view = parse({"from": "now-30m"} | parameters, now=START)
    return LedgerSource(site.engine, view, START_MS)


def last(values):
    return next(value for value in reversed(values) if value)


def test_the_ledger_answers_what_the_charts_ask(site):
    then = START_MS - 1_000
    site.write(
        [
            make_row(started_at=then, cache_write_tokens=20, ttft_ms=5.0),
            make_row(started_at=then, mode="ws_full", reason="prefix_mismatch", ttft_ms=7.0),
            unknown_usage(started_at=then, mode=None, ttft_ms=None, session="b"),
        ]
    )
    found = source(site)
    assert last(found.modes()) == {"ws_incremental": 1, "ws_full": 1, None: 1}
    assert last([s if s.whole else None for s in found.mismatches()]) == Share(1, 2)
    assert sorted(found.sessions(), key=lambda s: s.whole) == [Share(0, 0), Share(1, 2)]
    assert last([t if t.known else None for t in found.tokens()]) == TokenSums(2, 1, 2000, 1800, 20)
    assert last(found.ttft()) == {
        "ws_incremental": Distribution([5.0]),
        "ws_full": Distribution([7.0]),
    }


def test_every_answer_has_one_entry_per_bucket(site):
    found = source(site)
    length = len(found.buckets.items)
    answers = (found.modes(), found.mismatches(), found.tokens(), found.ttft())
    assert {len(answer) for answer in answers} == {length}


def test_the_filter_applies_to_every_figure(site):
    site.write([make_row(started_at=START_MS - 1, model="x")])
    found = source(site, model="y")
    assert not any(found.modes())
    assert found.sessions() == []
    assert not any(entry.known for entry in found.tokens())
