import random
from collections import Counter

from app.ledger.rollups.break_sessions import Stored, linked
from app.ledger.rollups.contribution import HOUR


def test_each_hour_knows_the_one_before_it():
    found = linked({}, {5 * HOUR: 2, 6 * HOUR: 1})
    assert {5 * HOUR: Stored(2, None, None, None), 6 * HOUR: Stored(1, 5 * HOUR, 2, 1)} == found
    assert {6 * HOUR: Stored(1, None, None, None)} == linked(found, {5 * HOUR: -2})


def test_whatever_came_when_the_hours_are_those_of_all_at_once():
    randomly = random.Random(3)
    for _ in range(50):
        known, whole = {}, Counter()
        for _ in range(10):
            hour = randomly.randrange(6) * HOUR
            change = randomly.choice([1, 2, -min(1, whole[hour])])
            whole[hour] += change
            known = linked(known, {hour: change})
        assert known == linked({}, whole)
