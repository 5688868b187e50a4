from dataclasses import replace
from decimal import Decimal

from app.ledger.grounds import moved, shaken, with_ground
from tests.support.rows import make_row

VERDICT = {"cache_verdict": "hit", "cache_grade": "proven", "missed_tokens": 0}
PRICE = {"cost_usd": Decimal(1), "price_note": "list_price"}
BARE = dict.fromkeys((*VERDICT, *PRICE))
ROW = make_row(**VERDICT, **PRICE)


def test_a_row_keeps_its_verdict_and_its_price_as_long_as_they_stand_on_something():
    told = replace(ROW, http_status=200)
    assert told == with_ground(ROW, told)
    read = replace(ROW, cached_tokens=800)
    assert replace(read, **BARE) == with_ground(ROW, read)
    answered = replace(ROW, output_tokens=51)
    assert replace(answered, **dict.fromkeys(PRICE)) == with_ground(ROW, answered)
    moved = replace(ROW, session_key="another")
    assert replace(moved, **dict.fromkeys(VERDICT)) == with_ground(ROW, moved)


def test_a_verdict_and_a_price_that_come_along_stand():
    other = replace(ROW, cached_tokens=800, cache_verdict="idle", cost_usd=Decimal(2))
    assert other == with_ground(ROW, other)


def test_sessions_are_shaken_by_what_waits_for_no_verdict_itself():
    reset = make_row(kind="compaction")
    assert set() == shaken([(ROW, replace(ROW, cached_tokens=800)), (reset, reset)])
    assert {"key-session-a"} == shaken([(ROW, replace(ROW, session_key="b"))])
    assert {"key-session-a"} == shaken([(ROW, replace(ROW, kind="compaction"))])
    assert {"key-session-a"} == shaken([(reset, replace(reset, status="failed"))])


def test_sessions_are_moved_in_by_whatever_verdicts_stand_on():
    assert set() == moved([(ROW, replace(ROW, http_status=200, output_tokens=51))])
    assert {"key-session-a"} == moved([(ROW, replace(ROW, ended_at=ROW.ended_at + 1))])
    assert {"key-session-a", "b"} == moved([(ROW, replace(ROW, session_key="b"))])
