import json
from pathlib import Path

import pytest

from app.analysis import witnesses
from app.analysis.witnesses import TABLE, evidence, is_stable_but_cold, layer_of, says, witnessed
from app.ledger.rows import COLUMNS, TurnRow
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


LOGGED = {"source": "import:codex", "mode": None, "reason": None, "eligible": False}
CLIENT = {"same": SAME, "changed": CHANGED, "nothing": SILENT}
PROVIDER = {"same": "cache_hit", "changed": "input_changed", "nothing": None}
TOKENS = {
    "read": WARM,
    "missed": COLD,
    "missed_after_pause": COLD | {"cache_verdict": "idle"},
    "unknown": {"cache_verdict": "unusable", "missed_tokens": None},
}


def row_of(client: str, provider: str, tokens: str, **changes) -> TurnRow:
    known = {**CLIENT[client], "provider_miss_reason": PROVIDER[provider], **TOKENS[tokens]}
    return make_row(**(known | changes))


def test_each_combination_has_a_line_and_a_row_that_it_is_read_from():
    combinations = {
        (client, provider, tokens)
        for client in CLIENT
        for provider in PROVIDER
        for tokens in TOKENS
        if client == "same" or tokens != "missed_after_pause"
    }
    assert combinations == set(TABLE)
    for each in combinations:
        assert each == says(row_of(*each))
        assert TABLE[each] == witnessed(row_of(*each))


def test_another_cache_key_without_a_miss_is_no_contradiction():
    row = row_of("same", "changed", "read", provider_miss_reason="prompt_cache_key_changed")
    assert ("unknown", "unknown") == (witnessed(row).accord, witnessed(row).layer)


def test_a_log_without_reasons_tells_of_its_client_what_its_columns_do():
    told = {**LOGGED, **COLD, "cache_verdict": "identity_change"}
    likely = make_row(**(told | {"cache_grade": "likely"}))
    assert ("changed", "nothing", "missed") == says(likely)
    # The same verdict by the provider's word is the provider's.
    reported = {"cache_grade": "reported", "provider_miss_reason": "model_changed"}
    assert ("nothing", "changed", "missed") == says(make_row(**(told | reported)))
    assert ("nothing", "nothing", "missed") == says(make_row(**LOGGED, **COLD))


def test_an_unchanged_prefix_that_met_another_cache_went_astray_between():
    row = row_of("same", "nothing", "missed", cache_verdict="identity_change", cache_grade="likely")
    assert ("agree", "between") == (witnessed(row).accord, witnessed(row).layer)


def test_a_pause_that_the_cache_may_have_outlived_is_put_down_to_nobody():
    told = {"cache_verdict": "idle", "cache_grade": "possible"}
    for provider in ("nothing", "same"):
        row = row_of("same", provider, "missed_after_pause", **told)
        assert ("unknown", "unknown") == (witnessed(row).accord, witnessed(row).layer)
        assert "may" in witnessed(row).sentence
        assert not is_stable_but_cold(row)
    assert "between" == layer_of(row_of("same", "changed", "missed_after_pause", **told))


def test_what_they_say_is_read_from_these_columns_alone():
    for each in TABLE:
        row = row_of(*each)
        bare = dict.fromkeys(COLUMNS) | {n: getattr(row, n) for n in witnesses.COLUMNS}
        assert witnessed(row) == witnessed(TurnRow(**bare))


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
        # Where the provider names a change, nobody has looked at the pause.
        {**SAME, **COLD, "provider_miss_reason": "input_changed"},
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


def test_the_table_of_the_documentation_is_that_of_the_code():
    text = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()
    lines = (
        text.split("| requests | provider | tokens |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    )
    client = {"same": "same", "changed": "changed", "not compared": "nothing"}
    provider = {"silent": "nothing", "found": "same", "changed": "changed"}
    found = {}
    for line in lines:
        requests, words, tokens, accord, layer = (part.strip() for part in line.split("|")[1:-1])
        for word in words.split(", "):
            key = (client[requests], provider[word], tokens.replace(" a ", " ").replace(" ", "_"))
            assert key not in found
            found[key] = (accord, layer or "unknown")
    assert found == {key: (each.accord, each.layer) for key, each in TABLE.items()}
