import json

import pytest

from app.analysis.witnesses import evidence, is_stable_but_cold, layer_of
from tests.support.rows import make_row

COLD = {"cache_verdict": "one_off_full", "cache_grade": "proven", "missed_tokens": 13_952}
WARM = {"cache_verdict": "hit", "cache_grade": "proven", "missed_tokens": 0}
SAME = {"mode": "ws_incremental", "reason": "ok"}
CHANGED = {"mode": "ws_full", "reason": "prefix_mismatch"}
SILENT = {"mode": "ws_full", "reason": "connection_lost"}


@pytest.mark.parametrize(
    ("client", "word", "tokens", "layer"),
    [
        (SAME, None, WARM, "unknown"),
        (SAME, "cache_hit", WARM, "unknown"),
        (SILENT, None, WARM, "unknown"),
        # A change behind what was read: sent in full, and read from the cache.
        (CHANGED, None, WARM, "unknown"),
        (SAME, "tools_changed", WARM, "unknown"),
        (SAME, None, COLD, "provider"),
        (SAME, "cache_hit", COLD, "provider"),
        (SAME, "unavailable", COLD, "provider"),
        (SAME, "input_changed", COLD, "between"),
        (CHANGED, None, COLD, "client"),
        (CHANGED, "input_changed", COLD, "client"),
        (CHANGED, "cache_hit", COLD, "unknown"),
        (SILENT, "model_changed", COLD, "client"),
        (SILENT, None, COLD, "unknown"),
        (SAME, None, {}, "unknown"),
        (SAME, None, COLD | {"cache_verdict": "idle"}, "client"),
    ],
)
def test_what_the_three_say_tells_whose_layer_it_was(client, word, tokens, layer):
    assert layer == layer_of(make_row(provider_miss_reason=word, **client, **tokens))


def test_a_changed_field_counts_where_a_cache_depends_on_it():
    fields = {"mode": "ws_full", "reason": "non_input_fields_changed"}
    assert "client" == layer_of(make_row(changed_fields="tools", **fields, **COLD))
    assert "unknown" == layer_of(make_row(changed_fields="metadata", **fields, **COLD))


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
