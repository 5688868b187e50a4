import random

import pytest

from app.analysis.breaks import DAY, Decided, Seen, State, escalates, state_of, told
from app.ledger.breaks import Decision
from tests.support.rows import START_MS, make_row

PARTED = {"mode": "ws_full", "reason": "prefix_mismatch"}
LOGGED = {"mode": None, "reason": None, "eligible": False}
LOST = {"cache_verdict": "one_off_full", "missed_tokens": 5_000}
NOW = START_MS
STEADY = [5] * 8


def seen(first=30, last=0.5, days=STEADY) -> Seen:
    return Seen(NOW - round(first * DAY), NOW - round(last * DAY), days)


def decision(state, ago=1.0, until=None) -> Decision:
    return Decision(Decided(state), NOW - round(ago * DAY), until, "operator")


@pytest.mark.parametrize(
    ("state", "known", "decided"),
    [
        ("new", seen(first=0.9), None),
        ("ongoing", seen(first=1), None),
        ("ongoing", seen(), None),
        ("ongoing", seen(last=20, days=[0] * 8), None),
        ("escalating", seen(days=[40, *STEADY[1:]]), None),
        ("resolved", seen(last=2), decision("resolved")),
        ("resolved", seen(last=1), decision("resolved")),
        ("regressed", seen(last=0.9), decision("resolved")),
        ("regressed", seen(days=[40, *STEADY[1:]]), decision("resolved")),
        ("muted", seen(), decision("muted")),
        ("muted", seen(), decision("muted", until=NOW + 1)),
        ("ongoing", seen(), decision("muted", until=NOW)),
        ("escalating", seen(days=[40, *STEADY[1:]]), decision("muted", until=NOW)),
        ("ongoing", seen(), decision("open")),
        ("new", seen(first=0.9), decision("open", ago=0.1)),
    ],
)
def test_a_state_follows_from_what_was_seen_and_decided(state, known, decided):
    assert State(state) == state_of(known, decided, NOW)


@pytest.mark.parametrize(
    ("days", "first"),
    [
        ([4, 0, 0, 0, 0, 0, 0, 0], 30),  # too few to care
        ([19, 10, 10, 10, 10, 10, 10, 10], 30),  # not twice what is usual
        ([30, 0, 0, 31, 0, 0, 0, 0], 30),  # it was as bad this week
        ([12, 6, 6, 6, 0, 0, 0, 0], 4),  # chance may explain it
        ([90, 10, 0, 0, 0, 0, 0, 0], 1.9),  # less than a day to hold it against
    ],
)
def test_what_is_usual_or_may_be_chance_is_no_escalation(days, first):
    assert not escalates(seen(days=days, first=first), NOW)


def test_one_that_comes_back_after_a_quiet_week_escalates():
    assert escalates(seen(days=[12, 0, 0, 0, 0, 0, 0, 0]), NOW)


def poisson(chance: random.Random, mean: float) -> int:
    number, at = -1, 0.0
    while at < mean:
        number, at = number + 1, at + chance.expovariate(1)
    return number


@pytest.mark.parametrize("mean", [1, 5, 20])
def test_noise_does_not_escalate(mean):
    chance = random.Random(mean)
    noise = [[poisson(chance, mean) for _ in range(8)] for _ in range(1_000)]
    assert not any(escalates(seen(days=days), NOW) for days in noise)


def test_four_times_the_usual_escalates():
    chance = random.Random(2)
    found = 0
    for _ in range(200):
        days = [poisson(chance, 40), *(poisson(chance, 10) for _ in range(7))]
        found += escalates(seen(days=days), NOW)
    assert found > 180


def test_a_group_is_told_by_what_its_breaks_have_in_common():
    row = make_row(**LOGGED, **LOST)
    assert ("verdict", "Lost once, by routing, eviction or an edit.") == (
        told("verdict:one_off_full", row).by,
        told("verdict:one_off_full", row).sentence,
    )
    lost = make_row(mode="http_full", reason="connection_lost", fallback_reason="closed")
    found = told("reason:connection_lost:closed", lost)
    assert "reason" == found.by
    assert "closed" in found.sentence
    assert found.cause is not None
    assert found.remedy is not None
    assert "fingerprint" == told("0123abcd", make_row(**PARTED, fingerprint="0123abcd")).by
