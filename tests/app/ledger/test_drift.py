from sqlalchemy import Engine

from app.ledger.database import reading
from app.ledger.drift import Changed, changed, rows_of
from app.ledger.writer import write_rows
from tests.support.ledger import everything
from tests.support.rows import make_row


def test_sessions_with_two_values_are_found_and_unknown_is_none(engine: Engine):
    rows = [
        make_row(session="same", service_tier="a"),
        make_row(session="same", service_tier=None),
        make_row(session="tier", service_tier="a"),
        make_row(session="tier", service_tier="b", missed_tokens=10),
        make_row(session="account", session_key="k1", tenant="a"),
        make_row(session="account", session_key="k2", tenant="b", missed_tokens=20),
        make_row(session="failed", service_tier="a"),
        make_row(session="failed", service_tier="b", status="failed"),
        make_row(session=None, session_key="k3", service_tier="a"),
        make_row(session=None, session_key="k3", service_tier="b"),
    ]
    write_rows(engine, rows)
    kinds = ("service_tier", "tenant")
    with reading(engine) as connection:
        assert Changed(("account", "tier", "k3"), False) == changed(
            connection, everything(), kinds, limit=3
        )
        assert Changed(("account",), True) == changed(connection, everything(), kinds, limit=1)
        found = {
            (name, row.session_key, row.tenant)
            for name in ("account", "k3")
            for row in rows_of(connection, everything(), name, ("session_key", "tenant"))
        }
    assert {("account", "k1", "a"), ("account", "k2", "b"), ("k3", "k3", "tenant-1")} == found
