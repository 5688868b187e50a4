import random
from collections import Counter

import pytest

from app.analysis.onset import Onset, Suspect, onset, suspects
from app.demo.history import MISMATCHES, generate
from app.ledger.cells import INCREMENTAL
from tests.support.rows import make_row

BUCKETS = 48


def ledger(chance, rates, *, active=12, turns=480, burst=1):
    """Sessions that last for some buckets, each with its breaks; a break may come in a burst, which
    goes on for some buckets of its session."""
    having: list[Counter] = [Counter() for _ in rates]
    for bucket, rate in enumerate(rates):
        for session in range(active):
            if chance.random() < rate:
                name = f"{session}-{bucket // 12}"
                for later in range(bucket, min(bucket + chance.randint(1, burst), len(rates))):
                    having[later][name] += chance.randint(1, 20)
    return having, [chance.randint(turns // 2, turns * 2) for _ in rates]


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.7])
def test_a_ledger_without_a_change_has_no_onset(rate):
    found = 0
    for seed in range(60):
        having, turns = ledger(random.Random(seed), [rate] * BUCKETS)
        found += onset(having, turns, 48) is not None
    assert found == 0


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.4), (0.03, 0.5), (0.1, 0.9)])
def test_a_change_is_found_within_one_bucket(low, high):
    missed = 0
    for seed in range(20):
        chance = random.Random(seed)
        at = chance.randint(10, 40)
        having, turns = ledger(chance, [low] * at + [high] * (BUCKETS - at))
        found = onset(having, turns, 48)
        missed += found is None or abs(found.start - at) > 1
    assert missed <= 1


def test_a_spike_that_is_over_is_found_with_its_end():
    having, turns = ledger(random.Random(3), [0.0] * 20 + [0.6] * 6 + [0.0] * 22)
    assert Onset(20, 26) == onset(having, turns, 48)


def test_few_sessions_with_very_much_of_it_at_any_time_are_no_onset():
    """One of seven that have it has it at most of its turns, for some buckets."""
    found = 0
    for seed in range(100):
        chance = random.Random(seed)
        having: list[Counter] = [Counter() for _ in range(96)]
        for session in range(200):
            at, left = chance.randrange(96), 1
            if chance.random() < 0.9:
                continue
            if chance.random() < 0.15:
                left = chance.randint(10, 60)
            while left > 0 and at < 96:
                having[at][f"{session}"] = min(left, chance.randint(1, 15))
                left, at = left - having[at][f"{session}"], at + 1
        found += onset(having, [chance.randint(5, 60) for _ in having], 200) is not None
    assert found <= 3


@pytest.mark.parametrize("hour", [4, 12, 17])
def test_the_planted_change_is_found_at_any_time_of_the_day(hour):
    """With the day before it is in no doubt, also where the view begins shortly before it."""
    day, quarter = 86_400_000, 900_000
    now = 20_000 * day + hour * 3_600_000
    having: list[Counter] = [Counter() for _ in range(192)]
    turns, active = [0] * 192, set()
    for row in generate(now / 1000):
        place = (row.started_at - now + 2 * day) // quarter
        if place < 0 or row.kind != "generation":
            continue
        turns[place] += 1
        if place >= 96:
            active.add(row.session_key)
        if row.reason == "prefix_mismatch" and row.mode not in INCREMENTAL:
            having[place][row.session_key] += 1
    found = onset(having, turns, len(active), since=96)
    planted = (MISMATCHES[0] - hour - (24 if hour < MISMATCHES[1] else 0)) * 4 + 192
    first = next(place for place in range(planted, 192) if having[place])
    assert planted <= first <= planted + 2
    assert abs(found.start - first) <= 1
    assert found.end > planted + 4


def test_a_lone_agent_has_onsets_and_one_of_many_has_none():
    having = [{"a": 1} if bucket >= 30 else {} for bucket in range(BUCKETS)]
    assert Onset(30, BUCKETS) == onset(having, [10] * BUCKETS, 1)
    assert onset(having, [10] * BUCKETS, 40) is None


def test_what_was_so_from_the_beginning_has_no_onset():
    three = {"a": 1, "b": 1, "c": 1}
    assert onset([three] * 10, [20] * 10, 3) is None
    # Nothing is known of before.
    assert onset([{}] * 5 + [three] * 5, [0] * 5 + [20] * 5, 3) is None
    assert onset([{}] * 5, [0] * 5, 0) is None
    assert onset([{"a": 1}], [1], 1) is None


def test_sessions_that_have_it_as_often_as_before_and_much_more_of_it_have_an_onset():
    usual = [{"a": 1}, {"b": 2}, {"c": 1}, {}] * 10
    turns = [60] * 44
    assert onset([*usual, *usual[:4]], turns, 3) is None
    worse = [{name: 20 * number for name, number in own.items()} for own in usual[:16]]
    assert Onset(80, 96) == onset([*usual, *usual, *worse], [60] * 96, 3)


def test_more_turns_of_the_same_rate_are_no_onset():
    having = [{"a": 1}] * 20 + [dict.fromkeys("abcd", 1)] * 20
    assert onset(having, [100] * 20 + [400] * 20, 4) is None
    assert onset(having, [100] * 40, 4) is not None


def test_suspects_are_what_the_turns_before_did_not_have():
    before = [make_row(client_version="0.140", model="a", tools_digest=f"{n}") for n in range(10)]
    known = {"model": "a", "service_tier": None}
    broken = [
        *(make_row(client_version="0.141", tools_digest="new", **known) for _ in range(9)),
        make_row(client_version="0.140", tools_digest="other", **known),
    ]
    assert [
        Suspect("client_version", "0.141", 9, 0.9, 0.0),
        Suspect("tools_digest", "new", 9, 0.9, 0.0),
    ] == suspects(broken, before)
    assert (
        "90 % of these breaks have the client version 0.141; before, none had it."
        == suspects(broken, before)[0].sentence
    )


def test_what_is_as_usual_or_was_never_known_before_is_no_suspect():
    before = [make_row(model="a", service_tier=None), make_row(model="b", service_tier=None)]
    assert [] == suspects([make_row(model="a", service_tier="flex")] * 3, [before[0]])
    (one,) = suspects([make_row(model="a")] * 3, before)
    assert ("model", 1.0, 0.5) == (one.field, one.share, one.before)
    assert "50 % of the turns before had it" in one.sentence
