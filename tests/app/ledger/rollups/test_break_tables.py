from app.ledger.rollups import break_tables
from app.ledger.rollups.broken import SUMS


def test_the_tables_hold_what_breaks_add_up_to():
    place, ends = ("level", "key", "start"), ("first_at", "last_at")
    assert (*place, *SUMS, "sessions", "firsts", *ends) == tuple(break_tables.sums.c.keys())
