"""The error envelopes."""

from app.demo.provider.errors import ApiError, connection_limit_reached, previous_response_not_found


def test_the_body_and_the_frame_of_one_error():
    error = ApiError("m", status=404, code="c", param="p", kind="k")
    assert error.body() == {"error": {"message": "m", "type": "k", "param": "p", "code": "c"}}
    assert error.frame() == {
        "type": "error",
        "status": 404,
        "error": {"type": "k", "code": "c", "message": "m", "param": "p"},
    }


def test_only_the_age_limit_closes_the_connection():
    assert connection_limit_reached().closes
    assert not previous_response_not_found("resp_1").closes
