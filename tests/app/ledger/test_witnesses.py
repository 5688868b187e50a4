from sqlalchemy import Engine

from app.ledger.database import reading
from app.ledger.witnesses import counted
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import make_row


def test_judged_turns_are_counted_by_what_is_asked_of_them(engine: Engine):
    missed = {"cache_verdict": "idle", "missed_tokens": 2_000}
    rows = [
        make_row(**missed),
        make_row(**(missed | {"missed_tokens": 3_000})),
        make_row(**(missed | {"missed_tokens": None})),
        make_row(cache_verdict="hit", missed_tokens=0),
        make_row(),
        make_row(kind="warmup", **missed),
    ]
    write_rows(engine, rows)
    with reading(engine) as connection:
        found = counted(connection, everything(), ("cache_verdict", "missed_tokens"))
    assert {("idle", 1, 2, 5_000), ("idle", None, 1, 0), ("hit", 0, 1, 0)} == {
        (row.cache_verdict, row.missed_tokens, turns, tokens) for row, turns, tokens in found
    }
