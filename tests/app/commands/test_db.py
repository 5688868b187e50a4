from decimal import Decimal
from pathlib import Path

from sqlalchemy import delete, func, select

from app.ledger import database, retention
from app.ledger.database import prepare
from app.ledger.models import turns
from app.ledger.rollups import tables
from app.ledger.rollups.contribution import DAY, LEVELS
from app.ledger.writer import write_rows
from tests.support.commands import run
from tests.support.rows import START_MS, make_row


def test_db_upgrade_makes_the_ledger_and_says_where_it_stands(tmp_path: Path):
    result = run("db", "upgrade", "--database", "new.sqlite3")
    assert (0, f"new.sqlite3 is at schema {database._head()}.\n") == (
        result.exit_code,
        result.output,
    )
    assert (tmp_path / "new.sqlite3").is_file()


def test_db_price_asks_again_where_there_was_none(ledger):
    engine = prepare("ledger.sqlite3")
    had = [
        make_row(turn_id="known", cost_usd=Decimal(1), price_note="list_price@0.1"),
        make_row(turn_id="unknown", price_note="no_price:model@0.1"),
    ]
    write_rows(engine, had)
    result = run("db", "price", "--database", "ledger.sqlite3")
    assert "Looked up: 1 row without a price" in result.output
    query = select(turns.c.cost_usd).where(turns.c.turn_id.in_(["known", "unknown"]))
    with engine.connect() as connection:
        found = connection.execute(query.order_by(turns.c.turn_id)).scalars().all()
    # 100 × 4 + 900 × 0.40 + 50 × 20 dollars per million.
    assert [Decimal(1), Decimal("0.00176")] == found
    engine.dispose()


def test_db_rollup_counts_the_rows_anew(ledger):
    engine = prepare("ledger.sqlite3")
    with engine.begin() as connection:
        connection.execute(delete(tables.cells))
    result = run("db", "rollup", "--database", "ledger.sqlite3")
    assert (0, "3 rows counted.\n") == (result.exit_code, result.output)
    counted = select(func.sum(tables.cells.c.turns)).where(
        tables.cells.c.level == LEVELS[0], tables.cells.c.detail == 0
    )
    with engine.connect() as connection:
        assert 3 == connection.execute(counted).scalar_one()
    engine.dispose()


def test_db_rollup_says_what_it_leaves_alone(ledger):
    engine = prepare("ledger.sqlite3")
    write_rows(engine, [make_row(started_at=START_MS - 2 * DAY)])
    retention.prune(engine, START_MS, row_days=1, rollup_days=0)
    engine.dispose()
    result = run("db", "rollup", "--database", "ledger.sqlite3")
    assert result.output == (
        "3 rows counted. Sums of time before 2027-01-14T00:00:00.000Z are left as they are.\n"
    )
