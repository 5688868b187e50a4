from collections import Counter
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.cache_life import HOUR, MINUTE
from app.analysis.verdicts import LOSSES, SLACK, Grade, Judged, Verdict, judge
from app.ledger.rows import TurnRow
from tests.support.rows import START_MS, make_row

SECOND = 1_000
MODEL = "gpt-5.1-codex"


def turn(number: int, given: int | None, cached: int | None, *, gap: int = 2 * SECOND, **changes):
    """Turn ``number`` of a chain: each takes a second and begins ``gap`` after the end before it."""
    started = START_MS + number * (SECOND + gap)
    values = {
        "turn_id": f"t{number}",
        "started_at": started,
        "ended_at": started + SECOND,
        "recorded_at": started + SECOND,
        "input_tokens": given,
        "cached_tokens": cached,
        "cache_write_tokens": None,
        "usage_state": "reported",
        "model": MODEL,
        "mode": None,
        "reason": None,
        "fingerprint": None,
    }
    return make_row(**(values | changes))


def chain(*figures: tuple[int, int], **changes) -> list[TurnRow]:
    return [turn(place, *pair, **changes) for place, pair in enumerate(figures)]


def of_last(rows: list[TurnRow]) -> Judged:
    return judge(rows)[rows[-1].turn_id]


WARM = (10_000, 0), (12_000, 9_984), (14_000, 11_904)
"""A chain that has been read from the cache."""


def lost(cached: int = 0, **changes) -> list[TurnRow]:
    """The same, and a turn that should have read 13,952 tokens and read only so many."""
    return [*chain(*WARM), turn(3, 16_000, cached, **changes)]


# --- the steps, in their order ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "failed"},
        {"status": "client_closed"},
        {"usage_state": "missing", "input_tokens": None},
        {"cached_tokens": None},
        {"input_tokens": 1_023},
    ],
)
def test_a_turn_that_tells_nothing_is_not_judged(changes):
    assert Judged(Verdict.UNUSABLE, Grade.UNKNOWN, None) == of_last(lost(**changes))


def test_a_turn_that_tells_nothing_is_no_predecessor():
    rows = [*chain(*WARM), turn(3, 15_000, 0, status="failed"), turn(4, 16_000, 13_952)]
    assert Judged(Verdict.HIT, Grade.PROVEN, 0) == of_last(rows)


def test_warm_ups_and_compactions_have_no_verdict():
    rows = [turn(0, 10_000, 0, kind="warmup"), turn(1, 10_000, 0, kind="compaction")]
    assert {} == judge(rows)


def test_the_first_turn_is_a_cold_start_or_reads_what_others_share():
    assert Judged(Verdict.COLD_START, Grade.PROVEN, 0) == of_last(chain((10_000, 0)))
    assert Judged(Verdict.SHARED_PREFIX, Grade.PROVEN, 0) == of_last(chain((12_000, 11_008)))


def test_a_second_cold_read_right_after_a_cold_start_is_no_break():
    assert Verdict.COLD_CONTINUATION == of_last(chain((10_000, 0), (10_200, 0))).verdict
    assert Verdict.COLD_CONTINUATION == of_last(chain((9_000, 0), (10_000, 0), (10_200, 0))).verdict
    late = chain((10_000, 0), (10_200, 0), gap=30 * SECOND)
    assert Verdict.COLD_CONTINUATION != of_last(late).verdict


def test_a_chain_that_is_never_read_is_cold_for_longer():
    """As where something at the very front is made anew on every request."""
    found = judge(chain(*((10_000 + 500 * n, 0) for n in range(20))))
    words = [found[f"t{n}"].verdict for n in range(20)]
    lag = [Verdict.COLD_START] + [Verdict.COLD_CONTINUATION] * 10
    assert lag + [Verdict.PERSISTENT] * 8 + [Verdict.UNKNOWN] == words
    assert 18_944 == found["t19"].missed


def test_a_dip_within_the_slack_is_a_hit():
    expected = 13_952  # 14,000 in whole blocks
    assert Judged(Verdict.HIT, Grade.PROVEN, 0) == of_last(lost(expected - SLACK))
    assert Verdict.HIT != of_last(lost(expected - SLACK - 128)).verdict


def test_reading_more_than_the_input_before_is_a_hit():
    assert Verdict.HIT == of_last(lost(15_872)).verdict


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("tools_changed", Verdict.PREFIX_CHANGED),
        ("input_changed", Verdict.PREFIX_CHANGED),
        ("model_changed", Verdict.IDENTITY_CHANGE),
        ("service_tier_changed", Verdict.IDENTITY_CHANGE),
        ("something_new", Verdict.UNKNOWN),
    ],
)
def test_the_providers_word_comes_first(word, verdict):
    rows = lost(provider_miss_reason=word, mode="ws_full", reason="prefix_mismatch", gap=HOUR)
    assert Judged(verdict, Grade.REPORTED, 13_952) == of_last(rows)


@pytest.mark.parametrize("word", ["unavailable", "comparison_response_not_found", "cache_hit"])
def test_a_provider_that_does_not_say_why_leaves_it_to_the_next_witness(word):
    rows = lost(provider_miss_reason=word, mode="ws_full", reason="prefix_mismatch")
    assert (Verdict.PREFIX_CHANGED, Grade.PROVEN) == _word(of_last(rows))


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        ("tools", Verdict.PREFIX_CHANGED),
        ("instructions,model", Verdict.PREFIX_CHANGED),
        ("model", Verdict.IDENTITY_CHANGE),
        ("reasoning", Verdict.IDENTITY_CHANGE),
    ],
)
def test_what_the_client_has_proven_comes_second(names, verdict):
    rows = lost(mode="ws_full", reason="non_input_fields_changed", changed_fields=names)
    assert Judged(verdict, Grade.PROVEN, 13_952) == of_last(rows)


def test_a_changed_field_that_no_cache_depends_on_is_no_cause():
    rows = lost(mode="ws_full", reason="non_input_fields_changed", changed_fields="metadata")
    assert Verdict.UNKNOWN == of_last(rows).verdict


def test_a_client_that_proves_a_mismatch_and_is_served_from_the_cache_has_a_hit():
    assert Verdict.HIT == of_last(lost(13_952, mode="ws_full", reason="prefix_mismatch")).verdict


def test_a_rewritten_history_is_told_and_never_billed():
    told = Judged(Verdict.HISTORY_REWRITE, Grade.PROVEN, None)
    assert told == of_last(lost(epoch_reset_reason="summarize"))
    between = [*chain(*WARM), turn(3, 15_000, 13_952, kind="compaction"), turn(4, 16_000, 0)]
    assert told == of_last(between)
    half = [*chain(*WARM), turn(3, 6_900, 0)]
    assert Judged(Verdict.HISTORY_REWRITE, Grade.LIKELY, None) == of_last(half)


def test_a_compaction_that_failed_has_rewritten_nothing():
    failed = turn(3, None, None, kind="compaction", status="failed", usage_state="missing")
    rows = [*chain(*WARM), failed, turn(4, 16_000, 0), turn(5, 18_000, 15_872)]
    assert Judged(Verdict.ONE_OFF_FULL, Grade.POSSIBLE, 13_952) == judge(rows)["t4"]
    assert (
        Verdict.HISTORY_REWRITE
        == of_last([*rows[:4], turn(4, 16_000, 0, epoch_reset_reason="summarize")]).verdict
    )


@pytest.mark.parametrize(
    "word",
    ["turn_count", "connection_age", "manual", "codex_token_refresh", "provider_recovery_terminal"],
)
def test_a_reset_that_leaves_the_history_alone_is_no_rewrite(word):
    assert Verdict.HISTORY_REWRITE != of_last(lost(epoch_reset_reason=word)).verdict


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "gpt-5.2"},
        {"prompt_cache_key": "other"},
        {"upstream": "other"},
        {"service_tier": "flex"},
        {"reasoning_effort": "low"},
    ],
)
def test_another_identity_has_another_cache(changes):
    verdict = Judged(Verdict.IDENTITY_CHANGE, Grade.LIKELY, 13_952)
    assert verdict == of_last(lost(**changes))
    assert verdict == of_last(lost(gap=HOUR, **changes)), "it is certain, and comes before idleness"


def test_another_account_has_another_cache_and_the_same_history():
    verdict = Judged(Verdict.IDENTITY_CHANGE, Grade.LIKELY, 13_952)
    assert verdict == of_last(lost(epoch_reset_reason="codex_account_switch"))
    failed = turn(3, 16_000, 0, status="failed", epoch_reset_reason="codex_account_switch")
    assert verdict == of_last([*chain(*WARM), failed, turn(4, 16_000, 0)])


def test_a_cache_expires_after_its_last_use():
    rows = [*chain(*WARM[:2]), turn(9, 14_000, 0)]
    for gap, grade in (
        (5 * MINUTE - 1, None),
        (5 * MINUTE, Grade.POSSIBLE),
        (HOUR - 1, Grade.POSSIBLE),
        (HOUR, Grade.LIKELY),
    ):
        started = rows[1].ended_at + gap
        late = turn(2, 14_000, 0, started_at=started, ended_at=started + SECOND)
        found = of_last([*rows[:2], late])
        assert (grade is not None) == (found.verdict == Verdict.IDLE)
        assert grade in (None, found.grade)


def test_a_cache_lives_as_long_as_it_was_written_for_and_not_as_long_as_the_miss_is_written():
    def after(minutes: int, before: int | None, now: int | None) -> Judged:
        rows = chain(*WARM, model="claude-opus-5", cache_write_tokens=0)
        rows[1] = replace(rows[1], cache_write_tokens=900, cache_write_long_tokens=before)
        began = rows[2].ended_at + minutes * MINUTE
        late = turn(
            3, 16_000, 0, model="claude-opus-5", cache_write_tokens=16_000,
            cache_write_long_tokens=now,
        )  # fmt: skip
        return judge([*rows, replace(late, started_at=began, ended_at=began)])["t3"]

    idle = Judged(Verdict.IDLE, Grade.LIKELY, 13_952)
    assert Verdict.UNKNOWN == after(59, before=900, now=0).verdict
    assert idle == after(61, before=900, now=0)
    assert Verdict.UNKNOWN == after(4, before=0, now=16_000).verdict
    assert idle == after(6, before=0, now=16_000)


def test_what_was_all_read_after_a_long_pause_had_not_expired():
    started = START_MS + 10 * HOUR
    rows = [*chain(*WARM), turn(3, 40_000, 11_904, started_at=started, ended_at=started + SECOND)]
    assert Verdict.SHORTFALL == of_last(rows).verdict


def test_a_pause_within_which_a_cache_may_run_out_may_have_been_one():
    started = START_MS + 10 * MINUTE
    rows = [*chain(*WARM), turn(3, 16_000, 0, started_at=started, ended_at=started + SECOND)]
    assert (Verdict.IDLE, Grade.POSSIBLE) == _word(of_last(rows))


def test_one_amount_again_and_again_is_a_floor():
    rows = chain((10_000, 0), (12_000, 4_608), (14_000, 4_608), (16_000, 4_608))
    found = judge(rows)
    assert [Verdict.PINNED_FLOOR] * 3 == [found[f"t{n}"].verdict for n in (1, 2, 3)]
    assert Judged(Verdict.PINNED_FLOOR, Grade.LIKELY, 13_952 - 4_608) == found["t3"]
    twice = judge(rows[:3])
    assert Verdict.PINNED_FLOOR not in [judged.verdict for judged in twice.values()]


def test_what_was_never_readable_is_a_shortfall_and_no_break():
    rows = chain((10_000, 0), (12_496, 9_216), (20_000, 8_960))
    assert Judged(Verdict.SHORTFALL, Grade.PROVEN, 0) == of_last(rows)


def test_what_was_written_is_readable():
    rows = [*chain((10_000, 0)), turn(1, 20_000, 9_984, cache_write_tokens=10_000)]
    assert Verdict.UNKNOWN == of_last([*rows, turn(2, 30_000, 9_984)]).verdict
    unwritten = [rows[0], turn(1, 20_000, 9_984), turn(2, 30_000, 9_984)]
    assert Verdict.SHORTFALL == of_last(unwritten).verdict


@pytest.mark.parametrize(
    ("cached", "verdict"), [(0, Verdict.ONE_OFF_FULL), (9_984, Verdict.ONE_OFF_PARTIAL)]
)
def test_a_dip_that_the_next_turn_does_not_have_is_a_single_one(cached, verdict):
    rows = [*lost(cached), turn(4, 18_000, 15_872)]
    assert Judged(verdict, Grade.POSSIBLE, 13_952 - cached) == judge(rows)["t3"]


def test_only_a_client_that_proves_its_prefix_lets_a_dip_be_the_providers():
    proven = {"mode": "ws_incremental", "reason": "ok"}
    rows = [*lost(**proven), turn(4, 18_000, 15_872)]
    assert Grade.PROVEN == judge(rows)["t3"].grade
    full = [*lost(mode="ws_full", reason="connection_lost"), turn(4, 18_000, 15_872)]
    assert Grade.POSSIBLE == judge(full)["t3"].grade


def test_a_proof_counts_however_the_turn_went():
    for proof in (
        {"mode": "http_full", "reason": "ok"},
        {"mode": "http_full", "reason": "continuation_off", "shadow_reason": "ok"},
    ):
        rows = [*lost(**proof), turn(4, 18_000, 15_872)]
        assert Grade.PROVEN == judge(rows)["t3"].grade
    seen = {"reason": "continuation_off", "shadow_reason": "prefix_mismatch"}
    assert (Verdict.PREFIX_CHANGED, Grade.PROVEN) == _word(of_last(lost(**seen)))


def test_back_to_what_others_share_is_a_full_dip():
    rows = chain((12_000, 11_008), (32_000, 31_488), (33_000, 11_008), (34_000, 32_512))
    assert Verdict.ONE_OFF_FULL == judge(rows)["t2"].verdict


def test_a_dip_that_stays_is_persistent_and_one_without_a_next_turn_unknown():
    rows = [*lost(0), turn(4, 18_000, 0)]
    assert Judged(Verdict.PERSISTENT, Grade.POSSIBLE, 13_952) == judge(rows)["t3"]
    assert Judged(Verdict.UNKNOWN, Grade.UNKNOWN, 13_952) == of_last(lost(0))


def test_a_chain_that_does_not_read_whole_blocks_is_not_rounded():
    rows = [turn(0, 4_020, 0), turn(1, 6_000, 4_012), turn(2, 8_000, 4_976)]
    assert Verdict.HIT == of_last(rows).verdict, "6,000 - 4,976 is the slack; 5,888 would be less"
    assert Verdict.HIT != of_last([*rows[:2], turn(2, 8_000, 4_975)]).verdict


# --- real figures ----------------------------------------------------------------------------------

# The 39 requests of one real session of Codex 0.58 with gpt-5.1-codex: seconds since the request
# before, input, cached.
SESSION = [
    (0.0, 10_128, 0),
    (3.0, 10_334, 0),
    (3.3, 11_862, 10_240),
    (2.0, 12_496, 9_216),
    (3.2, 13_982, 12_416),
    (2.3, 15_645, 13_952),
    (4.7, 16_347, 15_616),
    (3.2, 18_325, 16_256),
    (3.9, 19_154, 11_136),
    (5.5, 20_371, 19_072),
    (9.6, 21_914, 19_328),
    (4.9, 22_825, 22_528),
    (2.4, 24_228, 22_912),
    (20.5, 24_332, 23_552),
    (13.3, 25_918, 25_472),
    (4.2, 27_050, 26_752),
    (4.6, 28_029, 27_008),
    (6.3, 28_349, 28_032),
    (2.1, 29_003, 27_520),
    (4.8, 29_196, 28_928),
    (3.9, 29_423, 17_280),
    (3.6, 29_529, 29_184),
    (7.8, 29_663, 29_568),
    (7.0, 29_765, 29_568),
    (3.9, 30_492, 29_824),
    (12.3, 32_266, 30_464),
    (5.9, 33_370, 33_152),
    (5.2, 33_492, 33_280),
    (5.0, 33_700, 33_408),
    (39.1, 35_544, 33_664),
    (3.6, 39_095, 37_888),
    (3.9, 39_454, 39_040),
    (4.4, 39_646, 39_424),
    (4.7, 39_829, 39_680),
    (3.4, 40_077, 39_936),
    (3.5, 40_406, 40_064),
    (3.9, 40_611, 39_936),
    (121.4, 40_766, 39_936),
    (9.1, 52_645, 52_096),
]


def session() -> list[TurnRow]:
    times = accumulate(seconds for seconds, _, _ in SESSION)
    return [
        turn(
            place,
            given,
            cached,
            started_at=START_MS + round(at * 1_000) - 500,
            ended_at=START_MS + round(at * 1_000),
        )
        for place, (at, (_, given, cached)) in enumerate(zip(times, SESSION, strict=True))
    ]


def test_a_real_session_is_judged_to_the_token():
    sums = (sum(figures[at] for figures in SESSION) for at in (1, 2))
    assert (39, 1_099_261, 1_027_328) == (len(SESSION), *sums)
    found = judge(session())
    assert {
        Verdict.COLD_START: 1,
        Verdict.COLD_CONTINUATION: 1,
        Verdict.HIT: 34,
        Verdict.SHORTFALL: 1,
        Verdict.ONE_OFF_PARTIAL: 2,
    } == Counter(judged.verdict for judged in found.values())
    assert 19_072 == sum(judged.missed or 0 for judged in found.values())


# --- whatever the figures ---------------------------------------------------------------------------

pairs = st.lists(
    st.tuples(st.integers(0, 40_000), st.integers(0, 40_000)).map(
        lambda pair: (max(pair), min(pair))
    ),
    max_size=12,
)


@given(pairs)
def test_every_turn_has_one_verdict_and_only_losses_miss_tokens(figures):
    rows = chain(*figures)
    found = judge(rows)
    assert {row.turn_id for row in rows} == set(found)
    for row in rows:
        judged = found[row.turn_id]
        if judged.verdict in LOSSES:
            assert (
                SLACK < (judged.missed or 0) <= (row.input_tokens or 0) - (row.cached_tokens or 0)
            )
        else:
            assert judged.missed in (None, 0)


@given(pairs, st.integers(1, 12))
def test_what_comes_later_changes_only_verdicts_that_wait_for_it(figures, count):
    """A verdict may change until the next two turns are known, but not what came long before."""
    rows = chain(*figures)
    early, late = judge(rows[:count]), judge(rows)
    settled = [row.turn_id for row in rows[: max(0, count - 2)]]
    assert [late[turn_id] for turn_id in settled] == [early[turn_id] for turn_id in settled]


def _word(judged: Judged) -> tuple[Verdict, Grade]:
    return judged.verdict, judged.grade
