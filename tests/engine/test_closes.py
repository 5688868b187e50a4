import json

import pytest

from engine.closes import refusal


def test_a_provider_that_closes_for_want_of_credits_has_refused_the_turn():
    refused = refusal(4402)
    assert refused is not None
    error = json.loads(refused.body)["error"]
    assert (402, "insufficient_credits", "invalid_request_error") == (
        refused.status,
        error["code"],
        error["type"],
    )


@pytest.mark.parametrize("code", [None, 1000, 1001, 1006, 1008, 1009, 1011, 4000])
def test_any_other_close_says_only_that_the_connection_is_gone(code):
    assert refusal(code) is None
