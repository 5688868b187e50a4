import pytest

from app.errors import AppError


def test_before_the_ledger_is_open_it_is_not_ready(site):
    engine, site.web.engine = site.web.engine, None
    with pytest.raises(AppError) as caught:
        _ = site.web.ledger
    assert (caught.value.code, caught.value.status) == ("not_ready", 503)
    answer = site.client.get("/api/summary")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
    site.web.engine = engine
    assert site.client.get("/api/summary").status_code == 200
