from tests.support.rows import START_MS, make_row


def test_a_key_that_flips_is_one_finding_with_its_cost(site):
    keys = ["a", "a", "b", "b"]
    site.write(
        [
            make_row(
                turn_id=f"turn-{at}",
                started_at=START_MS - 60_000 * (9 - at),
                prompt_cache_key=key,
                input_tokens=20_000,
                # A gateway that judges: the miss of the turn that flipped.
                cache_verdict="identity_change" if at == 2 else "hit",
                cache_grade="likely",
                missed_tokens=18_000 if at == 2 else 0,
            )
            for at, key in enumerate(keys)
        ]
    )
    found = site.get("/api/drift")
    (one,) = found["findings"]
    wanted = {
        "kind": "prompt_cache_key",
        "session": "session-a",
        "session_key": "key-session-a",
        "sentence": "The cache key changed once inside the session; these turns missed "
        "18,000 tokens.",
        "changes": 1,
        "missed_tokens": 18_000,
        "example": "turn-2",
        "before": "a",
        "now": "b",
    }
    assert wanted.items() <= one.items()
    assert {
        "sessions": 1,
        "changes": 1,
        "missed_tokens": 18_000,
        "filters": {"turn_id": ["turn-2"]},
    } == found["kinds"]["prompt_cache_key"]
    assert (False, 0) == (found["further"], found["kinds"]["tenant"]["changes"])
