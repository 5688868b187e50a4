from collections import Counter

from app.analysis.witnesses import is_stable_but_cold, says, witnessed
from tests.support.rows import START_MS, make_row

COLD = {"cache_verdict": "one_off_full", "cache_grade": "proven", "missed_tokens": 13_952}
WARM = {"cache_verdict": "hit", "cache_grade": "proven", "missed_tokens": 0}


def test_the_matrix_counts_each_judged_turn_once_where_its_witnesses_put_it(site):
    rows = [
        make_row(started_at=START_MS - 5, **(known | told))
        for known in (COLD, WARM, {})
        for told in (
            {},
            {"mode": "ws_full", "reason": "prefix_mismatch"},
            {"mode": "http_full", "reason": "continuation_off", "shadow_reason": "ok"},
            {"mode": "ws_full", "reason": "non_input_fields_changed", "changed_fields": "tools"},
            {"provider_miss_reason": "input_changed"},
            {"provider_miss_reason": "prompt_cache_key_changed"},
        )
    ]
    site.write(rows)
    found = site.get("/api/witnesses")
    judged = [row for row in rows if row.cache_verdict is not None]
    expected = Counter((*says(row), witnessed(row).accord, witnessed(row).layer) for row in judged)
    shown = {
        tuple(cell[name] for name in ("client", "provider", "tokens", "accord", "layer")): cell
        for cell in found["cells"]
    }
    assert expected == {key: cell["turns"] for key, cell in shown.items()}
    assert found["turns"] == len(judged)
    cold = [row for row in judged if is_stable_but_cold(row)]
    assert found["stable_but_cold"] == {
        "turns": len(cold),
        "missed_tokens": sum(row.missed_tokens for row in cold),
    }
    assert sum(each["turns"] for each in found["accord"].values()) == len(judged)
    assert sum(each["missed_tokens"] for each in found["layer"].values()) == 6 * 13_952


def test_a_turn_says_what_its_witnesses_say_together(site):
    row = make_row(**COLD)
    site.write([row])
    found = site.get(f"/api/requests/{row.turn_id}")
    assert ("contradict", "provider") == (found["accord"], found["layer"])
    assert witnessed(row).sentence == found["accord_why"]
