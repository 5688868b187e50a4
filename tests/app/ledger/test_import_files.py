from sqlalchemy import Engine

from app.ledger import import_files
from app.ledger.database import WRITES


def test_the_latest_that_was_seen_of_each_place_is_remembered(engine: Engine):
    import_files.remember(engine, [(b"a", b"1")])
    import_files.remember(engine, [(b"b", b"2")])
    import_files.remember(engine, [(b"a", b"3")])
    assert {b"a": b"3", b"b": b"2"} == import_files.seen(engine, [b"a", b"b", b"c"])
    assert {} == import_files.seen(engine, [])


def test_more_places_than_a_query_takes_can_be_asked_for(engine: Engine):
    places = [f"{n}".encode() for n in range(2_500)]
    import_files.remember(engine, [(places[-1], b"1")])
    assert {places[-1]: b"1"} == import_files.seen(engine, places)


def test_each_giving_back_begins_another_age(engine: Engine):
    ages = [import_files.age(engine)]
    for _ in range(2):
        with engine.execution_options(**WRITES).begin() as connection:
            import_files.forget(connection)
        ages.append(import_files.age(engine))
    assert 3 == len(set(ages))
