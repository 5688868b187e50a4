"""What purging needs of the sums; ``test_purging`` holds it against ledgers that never had them."""

from sqlalchemy import Engine, select

from app.ledger.database import WRITES
from app.ledger.rollups import forget, tables
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY
from app.ledger.writer import write_rows
from tests.support.rollups import Model
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY


def test_only_keys_that_no_sum_needs_are_forgotten(engine: Engine):
    write_rows(engine, [make_row(tenant="a", model="x"), make_row(tenant="b")])
    before = Model(engine).stored()
    with engine.execution_options(**WRITES).begin() as connection:
        connection.execute(
            tables.keys.insert().from_select(
                tables.keys.c.keys(),
                select(
                    *((column + 1 if column.name == "id" else column) for column in tables.keys.c)
                ),
            )
        )
        forget.unused_keys(connection)
        left = set(connection.execute(select(tables.keys.c.id)).scalars())
        used = [
            connection.execute(select(table.c.key)).scalars()
            for table in (tables.cells, tables.times, tables.sessions)
        ]
    assert before == Model(engine).stored()
    assert set().union(*used) == left


def test_stretches_from_the_instant_on_stay(engine: Engine):
    write_rows(engine, [make_row(tenant="a", started_at=DAWN + n * DAY) for n in range(3)])
    with engine.execution_options(**WRITES).begin() as connection:
        state = states.hold(connection, change=True)
        assert 1 == forget.turns_of(connection, forget.of_tenant("a"), DAWN + DAY)
        forget.tenant(connection, "a", DAWN + DAY, state)
        assert 0 == forget.turns_of(connection, forget.of_tenant("a"), DAWN + DAY)
        assert 2 == forget.turns_of(connection, forget.of_tenant("a"), DAWN + 9 * DAY)
        cells = tables.cells.c
        starts = connection.execute(select(cells.start)).scalars()
        assert min(starts) >= DAWN + DAY
