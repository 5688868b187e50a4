"""The figures of a real session of Codex 0.58, in a rollout of its shape."""

import re
from collections import Counter

from app.analysis.verdicts import judge
from tests.support.rollouts import Rollout, rows, skipped, usage

SESSION = (
    (0.0, 10_128, 0, 37, 0),
    (3.0, 10_334, 0, 43, 0),
    (6.3, 11_862, 10_240, 109, 64),
    (8.3, 12_496, 9_216, 52, 0),
    (11.5, 13_982, 12_416, 52, 0),
    (13.8, 15_645, 13_952, 46, 0),
    (18.5, 16_347, 15_616, 52, 0),
    (21.7, 18_325, 16_256, 52, 0),
    (25.6, 19_154, 11_136, 45, 0),
    (31.0, 20_371, 19_072, 54, 0),
    (40.6, 21_914, 19_328, 690, 640),
    (45.5, 22_825, 22_528, 175, 128),
    (47.9, 24_228, 22_912, 51, 0),
    (68.4, 24_332, 23_552, 1_456, 1_408),
    (81.7, 25_918, 25_472, 944, 896),
    (85.9, 27_050, 26_752, 50, 0),
    (90.5, 28_029, 27_008, 112, 64),
    (96.8, 28_349, 28_032, 114, 64),
    (98.9, 29_003, 27_520, 52, 0),
    (103.7, 29_196, 28_928, 102, 64),
    (107.5, 29_423, 17_280, 40, 0),
    (111.1, 29_529, 29_184, 39, 0),
    (118.9, 29_663, 29_568, 40, 0),
    (125.9, 29_765, 29_568, 180, 128),
    (129.7, 30_492, 29_824, 50, 0),
    (142.0, 32_266, 30_464, 941, 896),
    (148.0, 33_370, 33_152, 53, 0),
    (153.2, 33_492, 33_280, 46, 0),
    (158.2, 33_700, 33_408, 39, 0),
    (197.3, 35_544, 33_664, 3_255, 3_200),
    (200.9, 39_095, 37_888, 46, 0),
    (204.8, 39_454, 39_040, 113, 64),
    (209.2, 39_646, 39_424, 109, 64),
    (213.9, 39_829, 39_680, 168, 128),
    (217.3, 40_077, 39_936, 52, 0),
    (220.7, 40_406, 40_064, 188, 64),
    (224.6, 40_611, 39_936, 124, 0),
    (346.0, 40_766, 39_936, 11_803, 11_456),
    (355.1, 52_645, 52_096, 731, 192),
)
"""Seconds since the first count, input, cached, output, reasoning."""


def rollout():
    """Each count is written again when the next request has begun, with other rate limits."""
    file = Rollout().event("token_count", info=None, rate_limits={})
    for at, given, cached, out, reasoning in SESSION:
        used = usage(given, cached, out, reasoning_output_tokens=reasoning)
        file.context("gpt-5.1-codex").counted(used, at=at + 10)
        file.line("response_item", {"type": "function_call"}).sent()
        file.counted(used, total=file.total)
    return file


def test_half_of_the_counts_are_requests():
    found = rows(rollout())
    assert (39, 39) == (len(found), len(skipped(rollout())))
    assert (1_099_261, 1_027_328) == (
        sum(row.input_tokens for row in found),
        sum(row.cached_tokens for row in found),
    )
    naive = re.findall(rb'"last_token_usage": ?{"input_tokens": ?(\d+)', rollout().data)
    assert 2_198_522 == sum(map(int, naive)), "what the file would be without a rule"


def test_what_became_of_the_cache_is_what_counters_alone_can_tell():
    judged = judge(rows(rollout())).values()
    assert {
        "cold_start": 1,
        "cold_continuation": 1,
        "hit": 34,
        "shortfall": 1,
        "one_off_partial": 2,
    } == Counter(str(found.verdict) for found in judged)
    assert 19_072 == sum(found.missed or 0 for found in judged)
