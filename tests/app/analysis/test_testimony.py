import pytest

from app.analysis.testimony import (
    Change,
    proven_change,
    proven_same,
    reported_change,
    reported_hit,
)
from tests.support.rows import make_row


@pytest.mark.parametrize(
    ("word", "change"),
    [
        ("input_changed", Change.PREFIX),
        ("messages_changed", Change.PREFIX),
        ("service_tier_changed", Change.IDENTITY),
        ("a_new_word", Change.OTHER),
        ("unavailable", None),
        ("previous_message_not_found", None),
        ("cache_hit", None),
        (None, None),
    ],
)
def test_what_the_provider_names_as_the_reason(word, change):
    assert change == reported_change(make_row(provider_miss_reason=word))
    assert (word == "cache_hit") == reported_hit(make_row(provider_miss_reason=word))


@pytest.mark.parametrize(
    ("known", "change"),
    [
        ({"reason": "prefix_mismatch"}, Change.PREFIX),
        ({"reason": "non_input_fields_changed", "changed_fields": "model,tools"}, Change.PREFIX),
        ({"reason": "non_input_fields_changed", "changed_fields": "reasoning"}, Change.IDENTITY),
        ({"reason": "non_input_fields_changed", "changed_fields": "metadata"}, None),
        ({"reason": "continuation_off", "shadow_reason": "prefix_mismatch"}, Change.PREFIX),
        ({"reason": "connection_lost"}, None),
        ({"reason": "ok"}, None),
    ],
)
def test_what_the_client_has_proven_to_be_another(known, change):
    assert change == proven_change(make_row(**known))


def test_a_prefix_is_proven_to_be_the_same_also_where_nothing_was_to_come_of_it():
    assert proven_same(make_row(reason="ok"))
    assert proven_same(make_row(reason="continuation_off", shadow_reason="ok"))
    assert not proven_same(make_row(reason="continuation_off"))
    assert not proven_same(make_row(reason="connection_lost", shadow_reason="ok"))
