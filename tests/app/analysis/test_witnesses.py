import json

import pytest

from app.analysis.witnesses import (
    Accord,
    Drift,
    Layer,
    drifts,
    evidence,
    hear,
    is_stable_but_cold,
)
from app.ledger.rows import TurnRow
from tests.support.rows import START_MS, make_row

COLD = {"cache_verdict": "one_off_full", "cache_grade": "proven", "missed_tokens": 13_952}
WARM = {"cache_verdict": "hit", "cache_grade": "proven", "missed_tokens": 0}
SAME = {"mode": "ws_incremental", "reason": "ok"}
CHANGED = {"mode": "ws_full", "reason": "prefix_mismatch"}
SILENT = {"mode": "ws_full", "reason": "connection_lost"}


def told(client: dict, word: str | None, tokens: dict) -> tuple[str, str]:
    found = hear(make_row(provider_miss_reason=word, **client, **tokens))
    return found.accord.value, found.layer.value


@pytest.mark.parametrize(
    ("client", "word", "tokens", "accord", "layer"),
    [
        (SAME, None, WARM, "agree", "unknown"),
        (SAME, "cache_hit", WARM, "agree", "unknown"),
        (SILENT, None, WARM, "unknown", "unknown"),
        # A change behind what was read: sent in full, and read from the cache.
        (CHANGED, None, WARM, "agree", "unknown"),
        (SAME, "tools_changed", WARM, "contradict", "unknown"),
        (SAME, None, COLD, "contradict", "provider"),
        (SAME, "cache_hit", COLD, "contradict", "provider"),
        (SAME, "unavailable", COLD, "contradict", "provider"),
        (SAME, "input_changed", COLD, "contradict", "between"),
        (CHANGED, None, COLD, "agree", "client"),
        (CHANGED, "input_changed", COLD, "agree", "client"),
        (CHANGED, "cache_hit", COLD, "contradict", "unknown"),
        (SILENT, "model_changed", COLD, "agree", "client"),
        (SILENT, None, COLD, "unknown", "unknown"),
        (SAME, None, {}, "unknown", "unknown"),
        (SAME, None, COLD | {"cache_verdict": "idle"}, "contradict", "client"),
    ],
)
def test_what_the_three_say_tells_whose_layer_it_was(client, word, tokens, accord, layer):
    assert (accord, layer) == told(client, word, tokens)


def test_a_changed_field_counts_where_a_cache_depends_on_it():
    fields = {"mode": "ws_full", "reason": "non_input_fields_changed"}
    assert Layer.CLIENT == hear(make_row(changed_fields="tools", **fields, **COLD)).layer
    assert Accord.UNKNOWN == hear(make_row(changed_fields="metadata", **fields, **COLD)).accord


def test_a_prefix_is_stable_and_yet_cold_where_nothing_else_accounts_for_it():
    assert is_stable_but_cold(make_row(**SAME, **COLD))
    seen = {"mode": "http_full", "reason": "continuation_off", "shadow_reason": "ok"}
    assert is_stable_but_cold(make_row(**seen, **COLD))
    for other in (
        {**SAME, **WARM},
        {**SILENT, **COLD},
        {**SAME, **COLD, "cache_verdict": "idle"},
        {**SAME, **COLD, "cache_verdict": "identity_change"},
        {**SAME},
    ):
        assert not is_stable_but_cold(make_row(**other))


def test_evidence_holds_ids_digests_times_and_counts_and_no_names():
    names = {
        "session": "the-session",
        "root_session": "the-root",
        "turn_group": "the-group",
        "prompt_cache_key": "the-key",
        "tenant": "the-tenant",
        "evidence": '{"path": "/the/path"}',
    }
    row = make_row(response_id="resp_2", previous_response_id="resp_1", **names, **SAME, **COLD)
    found = evidence(row)
    assert "the-" not in json.dumps(found)
    assert "/the/path" not in json.dumps(found)
    wanted = {
        "started_at": "2027-01-15T08:00:00.000Z",
        "response_id": "resp_2",
        "previous_response_id": "resp_1",
        "missed_tokens": 13_952,
    }
    assert wanted.items() <= found.items()
    assert None not in found.values()


def turn(number: int, **changes) -> TurnRow:
    known = {"connection": "c1", "prompt_cache_key": "k", "service_tier": "default", **WARM}
    return make_row(started_at=START_MS + number * 9_000, **(known | changes))


def test_a_session_that_keeps_all_does_not_drift():
    assert [] == drifts([turn(n) for n in range(3)])
    assert [] == drifts([turn(0), turn(1, connection=None), turn(2)]), "unknown is no change"


def test_what_changed_within_a_session_is_told_with_what_was_missed_then():
    rows = [
        turn(0),
        turn(1, connection="c2"),
        turn(2, connection="c3", **COLD),
        turn(3, connection="c3", service_tier="flex", prompt_cache_key="other", **COLD),
        turn(4, connection="c3", service_tier="flex", prompt_cache_key="other", **COLD),
    ]
    assert [
        Drift("connection", 2, 1, 13_952),
        Drift("prompt_cache_key", 1, 1, 13_952),
        Drift("service_tier", 1, 1, 13_952),
    ] == drifts(rows)


def test_chains_that_run_beside_each_other_have_connections_of_their_own():
    rows = [turn(n, chain=f"chain-{n % 2}", connection=f"c{n % 2}") for n in range(6)]
    assert [Drift("connection", 1, 0, 0)] == drifts(rows), "where the second chain begins"


def test_what_no_loss_missed_is_no_cost():
    rows = [turn(0), turn(1, connection="c2", cache_verdict="history_rewrite", missed_tokens=None)]
    assert [Drift("connection", 1, 0, 0)] == drifts(rows)
