from app.analysis import compaction
from app.analysis.verdicts import LOSSES
from tests.support.reported import some_turns
from tests.support.rows import START_MS, make_row


def test_causes_add_up_to_what_was_missed_and_the_benign_stand_apart(site):
    site.write(some_turns(started_at=START_MS - 1))
    found = site.get("/api/causes")
    assert ["one_off_partial", "prefix_changed", "idle"] == [
        one["verdict"] for one in found["causes"]
    ]
    assert (3, 10_000, "0.036") == tuple(
        found["total"][name] for name in ("turns", "missed_tokens", "cost_usd")
    )
    for name in ("turns", "missed_tokens", "turns_without_price", "turns_without_delay"):
        assert found["total"][name] == sum(one[name] for one in found["causes"])
    assert {"cold_start", "hit", "shortfall", "history_rewrite", "unusable"} == {
        one["verdict"] for one in found["benign"]
    }
    assert not LOSSES & {one["verdict"] for one in found["benign"]}
    assert (0, 2) == (found["turns_not_judged"], found["breaks"])
    assert "Freezing `_meta` would have kept at most 1 of 1 break warm." in [
        one["sentence"] for one in found["remedies"]
    ]


def test_a_filter_narrows_them(site):
    site.write(some_turns(started_at=START_MS - 1))
    found = site.get("/api/causes", verdict="idle")
    assert ([("idle", 1_000)], [], 1) == (
        [(one["verdict"], one["missed_tokens"]) for one in found["causes"]],
        found["benign"],
        found["breaks"],
    )


def test_resets_are_told_with_their_break_even_and_of_nothing_all_is_unknown(site):
    assert None is site.get("/api/causes")["total"]["cost_usd"]
    assert (0, None) == tuple(site.get("/api/resets")[name] for name in ("resets", "paid_usd"))

    def turn(at, given, cached, **more):
        return make_row(
            started_at=START_MS - 9_000 + at, ended_at=START_MS - 9_000 + at, input_tokens=given, cached_tokens=cached,
            cache_write_tokens=0, **more,
        )  # fmt: skip

    site.write([
        turn(1, 100_000, 99_000),
        turn(2, 20_000, 5_000, cache_verdict="history_rewrite", epoch_reset_reason="summarize"),
        turn(3, 21_000, 20_000),
    ])  # fmt: skip
    found = site.get("/api/resets")
    (one,) = found["listed"]
    # 15 000 × 3 600 paid; 80 000 × 400 saved by each turn: 1.69 turns.
    assert ("0.054", "0.032", 2, 2, True, "summarize") == tuple(
        one[name]
        for name in (
            "paid_usd", "saves_usd_per_turn", "breaks_even", "turns", "reached",
            "epoch_reset_reason",
        )
    )  # fmt: skip
    assert {"turn_id": [one["turn_id"]]} == found["filters"]
    assert (1, 1, "0.054", "0.064", None) == tuple(
        found[name] for name in ("resets", "reached", "paid_usd", "saved_usd", "advice")
    )


def test_resets_of_which_some_are_not_listed_have_no_filter(site, monkeypatch):
    monkeypatch.setattr(compaction, "LISTED", 2)
    for key in "abc":
        before = make_row(session_key=key, started_at=START_MS - 9, input_tokens=100_000)
        condensed = {"cache_verdict": "history_rewrite", "input_tokens": 20_000}
        site.write([before, make_row(session_key=key, started_at=START_MS - 8, **condensed)])
    found = site.get("/api/resets")
    assert (3, 2, None) == (found["resets"], len(found["listed"]), found["filters"])
