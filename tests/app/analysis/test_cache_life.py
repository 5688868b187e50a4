import pytest

from app.analysis.cache_life import HOUR, MINUTE, retention_of
from tests.support.rows import make_row


@pytest.mark.parametrize(
    ("changes", "hard"),
    [
        ({"model": "gpt-5.1"}, HOUR),
        ({"model": "gpt-5.6-sol"}, 24 * HOUR),
        ({"model": "gpt-6"}, 24 * HOUR),
        ({"model": "o5"}, HOUR),
        ({"model": None}, HOUR),
        ({"model": "claude-opus-5"}, 5 * MINUTE),
        ({"model": "claude-opus-5", "cache_write_long_tokens": 100}, HOUR),
    ],
)
def test_how_long_a_cache_lives_follows_from_the_model_and_its_writes(changes, hard):
    assert hard == retention_of(make_row(**changes)).hard
