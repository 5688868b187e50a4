import json
from dataclasses import replace

import anyio.to_thread
import pytest
from sqlalchemy import event

from app.ledger.probe import NO_ANSWER, Reading
from app.ledger.rows import iso, to_ms
from app.web.service import list_of_endpoints
from tests.support.clock import START
from tests.support.rows import START_MS, make_row
from tests.support.site import open_site


def test_health_is_that_the_process_answers(site):
    assert site.get("/healthz") == {"status": "ok"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_load_balancer_may_ask_for_the_head_alone(site, path: str):
    answer = site.client.head(path)
    assert (200, b"") == (answer.status_code, answer.content)


def test_ready_tells_of_the_writer(site):
    site.write([make_row()])
    assert site.get("/readyz") == {
        "status": "ok",
        "since": None,
        "ledger": {
            "readable": True,
            "read_error": None,
            "queued": 0,
            "waiting_since": None,
            "written": 1,
            "dropped": 0,
            "rejected": 0,
            "kept": 0,
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
    state = replace(site.writer.state(), retrying=True, last_error="OperationalError")
    site.web.writer_state = lambda: state
    answer = site.client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "ledger_unwritable")
    assert answer.json()["ledger"]["last_error"] == "OperationalError"


def test_the_status_is_readiness_for_pages_and_no_error(site):
    site.write([make_row()])
    as_of = {"as_of": iso(to_ms(START))}
    assert as_of | site.get("/readyz") == site.get("/api/status")
    site.web.reading = lambda: Reading(readable=False, since=START_MS, error="OperationalError")
    told = site.get("/api/status")
    assert ("ledger_unreadable", iso(START_MS)) == (told["status"], told["since"])
    answer = site.client.get("/readyz")
    assert (503, told) == (answer.status_code, as_of | answer.json())
    site.web.writer_state = None
    assert as_of | {"status": "starting", "since": None, "ledger": None} == site.get("/api/status")


def test_a_database_that_is_silent_is_not_asked(site, monkeypatch):
    asked = []
    event.listen(site.engine, "do_execute", lambda *_: asked.append(1))
    silent = Reading(readable=False, since=START_MS, error=NO_ANSWER)
    monkeypatch.setattr(site.web, "reading", lambda: silent)
    for path in ("/api/summary", "/api/charts/modes", "/api/requests.csv", "/api/alerts/rules"):
        answer = site.client.get(path)
        assert (503, "ledger_unavailable") == (answer.status_code, answer.json()["error"]["code"])
    assert b"warmline_requests" in site.client.get("/metrics").content
    assert [] == asked
    silent = Reading(readable=True, since=None, error=None)
    assert site.get("/api/summary")["turns"]["total"] == 0
    assert asked


def test_pages_and_states_come_although_every_thread_waits(site):
    with site.client:
        limiter = site.client.portal.call(anyio.to_thread.current_default_thread_limiter)
        free, limiter.total_tokens = limiter.total_tokens, 1
        site.client.portal.call(limiter.acquire_on_behalf_of, "somebody")
        for path in (
            "/",
            "/requests",
            "/alerts",
            "/settings",
            "/healthz",
            "/readyz",
            "/api/status",
            "/metrics",
        ):
            assert 200 == site.client.get(path).status_code
        limiter.total_tokens = free


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
