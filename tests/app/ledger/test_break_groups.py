import random
from collections import Counter

import pytest
from sqlalchemy import Engine, select

from app.analysis.verdicts import LOSSES as VERDICTS
from app.ledger.break_groups import broken, group, group_of
from app.ledger.models import LOSSES, turns
from app.ledger.writer import write_rows
from engine.model import Mode, Reason
from tests.support.rows import START_MS, make_row

PARTED = {"mode": "ws_full", "reason": "prefix_mismatch"}
LOGGED = {"mode": None, "reason": None, "eligible": False}
LOST = {"cache_verdict": "one_off_full", "missed_tokens": 5_000}


def test_the_losses_are_those_of_the_verdicts():
    assert set(VERDICTS) == set(LOSSES)


@pytest.mark.parametrize(
    ("group", "row"),
    [
        ("f1", PARTED | {"fingerprint": "f1"}),
        ("reason:prefix_mismatch", PARTED),
        ("reason:connection_lost:closed",
         {"mode": "http_full", "reason": "connection_lost", "fallback_reason": "closed"}),
        ("reason:non_input_fields_changed:model,tools",
         {"mode": "ws_full", "reason": "non_input_fields_changed",
          "changed_fields": "model,tools"}),
        ("reason:unknown", {"mode": "ws_full", "reason": None}),
        ("verdict:one_off_full", LOGGED | LOST),
        # Observed: by what was found, where it missed anything.
        ("f1", {"mode": "http_full", "reason": "continuation_off", "eligible": False,
                "shadow_reason": "prefix_mismatch", "fingerprint": "f1", **LOST}),
        (None, {"mode": "http_full", "reason": "continuation_off", "eligible": False,
                "shadow_reason": "prefix_mismatch", "fingerprint": "f1"}),
        (None, {}),
        (None, PARTED | {"status": "failed"}),
        (None, PARTED | {"kind": "warmup"}),
        (None, PARTED | {"mode": None}),
        (None, LOGGED | {"cache_verdict": "hit"}),
        # The witnesses tell of it: nothing was to be decided otherwise.
        (None, LOST),
        (None, LOST | {"mode": "ws_full", "reason": "epoch_reset", "eligible": False}),
    ],
)  # fmt: skip
def test_a_break_belongs_to_the_group_of_its_cause(group, row):
    assert group == group_of(make_row(**row))


def test_the_database_tells_the_groups_that_rows_say_they_belong_to(engine: Engine):
    one = random.Random(5).choice
    rows = [
        make_row(
            kind=one(["generation", "generation", "warmup"]),
            status=one(["completed", "incomplete", "failed"]),
            mode=one([*map(str, Mode), None]),
            reason=one([*map(str, Reason), None, "their_own"]),
            eligible=one([True, False]),
            fallback_reason=one([None, "", "closed"]),
            changed_fields=one([None, "", "model,tools"]),
            fingerprint=one([None, None, "f1"]),
            cache_verdict=one([*sorted(LOSSES), "hit", None]),
        )
        for _ in range(1_000)
    ]
    write_rows(engine, rows)
    with engine.connect() as connection:
        found = dict(connection.execute(select(turns.c.turn_id, group).where(broken)).all())
    expected = {row.turn_id: name for row in rows if (name := group_of(row)) is not None}
    assert expected == found
    assert len(set(expected.values())) > 30


def test_three_faults_among_ten_thousand_rows_are_three_groups():
    faults = {
        7: PARTED | {"fingerprint": "f1"},
        11: {"mode": "http_full", "reason": "connection_lost", "fallback_reason": "closed"},
        13: LOGGED | {"cache_verdict": "persistent"},
    }
    found: Counter = Counter()
    for number in range(10_000):
        fault = next((known for each, known in faults.items() if number % each == 0), {})
        found[group_of(make_row(started_at=START_MS + number, **fault))] += 1
    assert set(found) == {"f1", "reason:connection_lost:closed", "verdict:persistent", None}
    assert found["f1"] == 1_429
