import pytest
from sqlalchemy import Engine

from app.ledger import under_way
from app.ledger.database import WRITES


@pytest.mark.parametrize(
    ("disturbed", "left"), [([], True), (["b", "c"], True), (["c", "a"], False)]
)
def test_a_session_is_undisturbed_until_rows_of_it_change(engine: Engine, disturbed, left):
    with engine.execution_options(**WRITES).begin() as connection:
        assert not under_way.undisturbed(connection, "a"), "it has not begun"
        under_way.begin(connection, "a")
        under_way.disturb(connection, disturbed)
        assert under_way.undisturbed(connection, "a") is left
        assert not under_way.undisturbed(connection, "b")


def test_the_next_session_takes_the_place_of_one_that_was_broken_off(engine: Engine):
    with engine.execution_options(**WRITES).begin() as connection:
        under_way.begin(connection, "a")
        under_way.begin(connection, "b")
        assert not under_way.undisturbed(connection, "a")
        assert under_way.undisturbed(connection, "b")
        under_way.end(connection)
        assert not under_way.undisturbed(connection, "b")
