import pytest
from sqlalchemy import Engine, delete, update

from app.ledger.database import WRITES
from app.ledger.retention import prune
from app.ledger.rollups import state as states
from app.ledger.rollups import tables
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.rollups.rebuild import build_missing, rebuild
from app.ledger.writer import write_rows
from tests.support.rollups import Model
from tests.support.rows import START_MS, make_row


@pytest.fixture
def model(engine: Engine) -> Model:
    made = Model(engine)
    made.insert(
        [make_row(started_at=START_MS + n * DAY // 3, session=f"s{n % 4}") for n in range(20)]
    )
    return made


def test_whatever_became_of_the_rollups_they_are_those_of_the_rows_again(model: Model):
    wanted = model.stored()
    with model.engine.begin() as connection:
        connection.execute(update(tables.cells).values(turns=99))
        connection.execute(delete(tables.times))
        for name, start in (("ghost", 0), ("later", START_MS - START_MS % DAY + 99 * DAY)):
            whose = {"session_key": name, "session": None}
            for table in (tables.sessions, tables.lives):
                known = {"level": HOUR, "start": start, "size": 1, "block": 1} | whose
                values = {column: known.get(column, 1) for column in table.c.keys()}  # noqa: SIM118
                connection.execute(table.insert().values(values))
    told: list[tuple[int, int]] = []
    assert 20 == rebuild(model.engine, lambda done, of: told.append((done, of)))
    assert wanted == model.stored()
    assert ((0, 20), (20, 20)) == (told[0], told[-1])


def test_rows_from_before_there_were_rollups_are_counted_once(model: Model):
    wanted = model.stored()
    with model.engine.begin() as connection:
        for table in (tables.cells, tables.times, tables.sessions, tables.keys):
            connection.execute(delete(table))
        states.put(connection, states.COARSE_UNTIL, 0)
        states.put(connection, states.MISSING, 1)
    build_missing(model.engine)
    assert wanted == model.stored()
    told: list[int] = []
    build_missing(model.engine, lambda done, _of: told.append(done))
    assert [] == told


def test_rows_that_are_written_before_they_are_counted_count_once(model: Model):
    with model.engine.begin() as connection:
        states.put(connection, states.MISSING, 1)
    write_rows(model.engine, [make_row(started_at=START_MS)])
    build_missing(model.engine)
    before = model.stored()
    rebuild(model.engine)
    assert before == model.stored()


def test_an_empty_ledger_has_nothing_to_count(engine: Engine):
    assert 0 == rebuild(engine)


def test_sums_whose_rows_are_deleted_between_two_of_its_days_stay(engine: Engine):
    first = START_MS - START_MS % DAY
    write_rows(engine, [make_row(started_at=first + n * DAY // 2) for n in range(12)])
    before = Model(engine).stored()
    writing = engine.execution_options(**WRITES)

    class PrunedMeanwhile:
        """The ledger, whose oldest rows are deleted once two of its days are counted."""

        begun = 0

        def execution_options(self, **_options):
            return self

        def begin(self):
            self.begun += 1
            if self.begun == 4:
                prune(engine, first + 5 * DAY, row_days=1, rollup_days=0)
            return writing.begin()

    rebuild(PrunedMeanwhile())
    assert before == Model(engine).stored()
