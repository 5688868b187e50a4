"""What both databases have to write is in ``test_exporting``."""

from decimal import Decimal

import pytest
from hypothesis import assume, given
from sqlalchemy import Engine, event

from app.ledger import exporting_sqlite
from app.ledger.exporting_sqlite import csv_lines, joined
from app.ledger.filters import Filter
from app.ledger.queries import selection, snapshot
from app.ledger.rows import COLUMNS, INT_COLUMNS, TEXT_COLUMNS
from app.ledger.writer import write_rows
from tests.support.ledger import everything, filters
from tests.support.rows import make_row

on_sqlite = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


def statements(engine: Engine, rows) -> list[str]:
    """What is asked of the database for an export of these rows, after its beginning."""
    write_rows(engine, rows)
    asked = []
    with snapshot(engine) as connection:
        event.listen(connection, "before_cursor_execute", lambda *args: asked.append(args[2]))
        list(csv_lines(connection, everything(), ("session", "ttft_ms", "cost_usd"), raw=False))
    return asked


@on_sqlite
def test_ordinary_rows_are_read_once(engine: Engine):
    rows = [
        make_row(session=text, ttft_ms=1 / 3, cost_usd=Decimal(3))
        for text in ("a", '"', "a,b", "=1", "\r\n", "")
    ]
    assert 1 == len(statements(engine, rows))


@on_sqlite
def test_a_row_whose_cells_cannot_be_told_apart_is_read_again(engine: Engine):
    assert 2 == len(statements(engine, [make_row(), make_row(session="\x1f")]))


def test_one_printf_takes_no_more_values_than_every_sqlite_allows():
    texts = [name for name in COLUMNS if name in TEXT_COLUMNS | INT_COLUMNS]
    assert len(texts) > 50
    assert [51, len(texts) - 49] == [len(part.clauses) for part in joined(texts)[0]]
    assert 1 == len(joined(texts[:50])[0])


@on_sqlite
def test_what_has_to_be_sorted_may_be_longer_than_memory(engine: Engine):
    with snapshot(engine) as connection:
        assert 1 == connection.exec_driver_sql("PRAGMA temp_store").scalar_one()


@on_sqlite
@given(view=filters())
def test_rows_are_sorted_for_breaks_only_where_they_are_a_few(holding, view: Filter):
    assume(not {"break", "fingerprint", "session", "turn_id"} & set(view.include))
    with holding([]).connect() as connection:
        query = selection(view, exporting_sqlite.c.turn_id)
        compiled = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}").all()
    assert not [step for step in plan if "TEMP B-TREE" in step[-1]], plan
