import pytest

from app.analysis.cache_life import retention_of
from tests.support.rows import make_row

FIVE_MINUTES, HALF_AN_HOUR, HOUR, DAY = 300_000, 1_800_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("changes", "soft", "hard"),
    [
        ({"model": "gpt-5.1"}, FIVE_MINUTES, HOUR),
        ({"model": "gpt-5.5"}, FIVE_MINUTES, HOUR),
        ({"model": "o5"}, FIVE_MINUTES, HOUR),
        ({"model": None}, FIVE_MINUTES, HOUR),
        ({"model": "gpt-5.6-sol"}, HALF_AN_HOUR, DAY),
        ({"model": "gpt-5.10"}, HALF_AN_HOUR, DAY),
        ({"model": "gpt-6"}, HALF_AN_HOUR, DAY),
        ({"model": "claude-opus-5"}, FIVE_MINUTES, FIVE_MINUTES),
        ({"model": "anthropic/claude-opus-5"}, FIVE_MINUTES, FIVE_MINUTES),
        ({"model": "claude-opus-5", "cache_write_long_tokens": 100}, HOUR, HOUR),
        ({"model": "gpt-5.6-sol", "cache_write_long_tokens": 100}, 12 * HOUR, DAY),
    ],
)
def test_how_long_a_cache_lives_follows_from_the_model_and_its_writes(changes, soft, hard):
    found = retention_of(make_row(**changes))
    assert (soft, hard) == (found.soft, found.hard)
