from app.ledger.rollups import tables
from app.ledger.rollups.contribution import SESSION_SUMS, SUMS, Key


def test_the_tables_hold_what_contributions_are_made_of():
    assert ("id", "shape", *Key._fields) == tuple(tables.keys.c.keys())
    assert ("detail", "level", "start", "key", *SUMS) == tuple(tables.cells.c.keys())
    place = ("level", "start", "session_key", "key", "session", "first_at", "last_at")
    assert (*place, *SESSION_SUMS) == tuple(tables.sessions.c.keys())
