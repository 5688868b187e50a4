import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from app.ledger.database import WRITES
from app.ledger.refusals import may_pass, sift
from tests.support.importing import stored
from tests.support.rows import make_row

GOOD, BAD, ODD = (make_row(turn_id=name) for name in ("good", "bad", "odd"))
BAD.attempts = 2**70


def test_what_the_table_takes_is_kept_and_what_it_refuses_is_not(engine: Engine):
    writing, error = engine.execution_options(**WRITES), KeyError("sums")

    def insert(rows):
        if rows != [GOOD]:
            raise error
        return rows

    found = sift(writing, [GOOD, BAD, ODD], insert)
    assert ([GOOD], [BAD], [ODD], error) == found
    assert [] == stored(engine), "it was only tried"


def test_what_may_pass_by_itself_is_said_at_once(engine: Engine):
    def insert(_rows):
        raise OSError("gone")

    with pytest.raises(OSError):
        sift(engine, [GOOD, BAD], insert)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_table_that_is_missing_may_come_and_a_value_that_none_takes_may_not(engine: Engine):
    with pytest.raises(OperationalError) as raised, engine.connect() as connection:
        connection.execute(text("SELECT 1 FROM nowhere"))
    assert may_pass(raised.value)
    assert not may_pass(OverflowError())
