"""What the provider saw, told so that a test can assert it."""

from app.demo.provider.log import Attempt


def attempt(**more):
    headers = (("x-a", "1"), ("x-a", "2"))
    return Attempt(0, "ws", "conn_0", 0, 0, "/v1/responses", headers, "{}", 0.0, **more)


def test_the_last_of_repeated_headers_is_the_one_that_counts():
    assert attempt().header("X-A") == "2"
    assert attempt().header("x-b") is None


def test_a_continuation_is_a_request_that_names_a_response():
    assert attempt(previous_response_id="resp_1").incremental
    assert not attempt().incremental


def test_nothing_is_known_before_the_end():
    fresh = attempt()
    assert (fresh.response_id, fresh.status, fresh.usage) == (None, None, None)
    assert (fresh.outcome, fresh.events) == ("waiting", 0)
