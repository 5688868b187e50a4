import pytest

from app.errors import AppError
from app.ledger.probe import NO_ANSWER, Reading
from tests.support.rows import START_MS


def test_before_the_ledger_is_open_it_is_not_ready(site):
    engine, site.web.engine = site.web.engine, None
    with pytest.raises(AppError) as caught:
        _ = site.web.ledger
    assert (caught.value.code, caught.value.status) == ("not_ready", 503)
    answer = site.client.get("/api/summary")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
    site.web.engine = engine
    assert site.client.get("/api/summary").status_code == 200


def test_an_error_is_made_anew_each_time_and_keeps_no_frames_of_the_times_before(site):
    site.web.reading = lambda: Reading(readable=False, since=START_MS, error=NO_ANSWER)
    with pytest.raises(AppError, match="cannot be read") as first:
        _ = site.web.ledger
    with pytest.raises(AppError, match="cannot be read") as second:
        _ = site.web.ledger
    site.web.reading = None
    assert first.value is not second.value
