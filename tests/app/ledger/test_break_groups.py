from collections import Counter

import pytest

from app.analysis.verdicts import LOSSES as VERDICTS
from app.ledger.break_groups import group_of
from app.ledger.models import LOSSES
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
