import json

import pytest

from app.web.service import list_of_endpoints
from tests.support.rows import START_MS, make_row
from tests.support.site import open_site


def test_health_is_that_the_process_answers(site):
    assert site.get("/healthz") == {"status": "ok"}


def test_ready_tells_of_the_writer(site):
    site.write([make_row()])
    assert site.get("/readyz") == {
        "status": "ok",
        "ledger": {
            "queued": 0,
            "written": 1,
            "dropped": 0,
            "rejected": 0,
            "retrying": False,
            "last_error": None,
            "on_disk": 0,
            "journal": None,
        },
    }


def test_before_the_ledger_is_open_it_is_not_ready(site):
    engine, site.web.engine = site.web.engine, None
    answer = site.client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "starting")
    site.web.engine = engine


def test_a_ledger_that_cannot_be_written_is_not_ready(site):
    import dataclasses  # noqa: PLC0415

    state = dataclasses.replace(site.writer.state(), retrying=True, last_error="OperationalError")
    site.web.writer_state = lambda: state
    answer = site.client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "ledger_unwritable")
    assert answer.json()["ledger"]["last_error"] == "OperationalError"


def test_metrics_count_the_rows_that_were_written(site):
    site.write([make_row(started_at=START_MS - 1), make_row(started_at=START_MS - 2)])
    answer = site.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    line = next(
        line for line in answer.text.splitlines() if line.startswith("warmline_requests_total{")
    )
    assert line.endswith(" 2.0")


def test_the_docs_list_every_endpoint_and_load_nothing(site):
    page = site.client.get("/docs").text
    schema = site.get("/openapi.json")
    assert schema["info"]["title"] == "Warmline"
    for path in schema["paths"]:
        assert path in page
    assert "/api/live" in page
    assert "<script" not in page
    assert "src=" not in page


def test_names_in_the_docs_are_text():
    schema = {
        "info": {"title": "<b>", "version": "1"},
        "paths": {"/<i>": {"get": {"summary": "<u>"}}},
    }
    page = list_of_endpoints(schema)
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<u>" not in page


@pytest.mark.parametrize("path", ["/metrics", "/docs", "/openapi.json"])
def test_the_token_covers_what_tells_of_the_traffic(tmp_path, path):
    locked = open_site(tmp_path, token="t")
    try:
        answer = locked.client.get(path)
        assert answer.status_code == 401
        assert json.loads(answer.content)["error"]["code"] == "unauthorized"
        assert answer.headers["www-authenticate"] == "Bearer"
    finally:
        locked.close()
