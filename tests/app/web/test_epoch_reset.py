import pytest

from app.gateway.resets import Reset
from tests.support.rows import make_row
from tests.support.site import JSON

PATH = "/api/sessions/key-session-a/epoch-reset"


def test_a_reset_has_the_reason_that_is_given_or_manual(site):
    asked = []
    site.web.reset_epoch = lambda *given: asked.append(given) or Reset(2, under_way=False)
    answer = {"session_key": "key-session-a", "chains": 2, "under_way": False}
    assert answer | {"reason": "manual"} == site.ask("POST", PATH)
    assert answer | {"reason": "summarize"} == site.ask("POST", PATH, {"reason": "summarize"})
    assert [("key-session-a", "manual"), ("key-session-a", "summarize")] == asked


def test_what_cannot_be_reset_is_said(site):
    assert "not_ready" == site.ask("POST", PATH, status=503)["error"]["code"]
    site.web.reset_epoch = lambda _key, _reason: None
    assert "not_found" == site.ask("POST", PATH, status=404)["error"]["code"]
    site.write([make_row(session="session-a")])
    assert "no_live_chain" == site.ask("POST", PATH, status=409)["error"]["code"]


@pytest.mark.parametrize("body", [{"reason": "two words"}, {"reason": 1}, {"why": "x"}])
def test_a_reason_is_one_word(site, body):
    site.web.reset_epoch = lambda _key, _reason: pytest.fail("reset all the same")
    assert "reason" in str(site.ask("POST", PATH, body, status=422)["error"])


def test_a_page_of_another_site_resets_nothing(site):
    site.web.reset_epoch = lambda _key, _reason: pytest.fail("reset all the same")
    foreign = {"origin": "https://elsewhere.example"} | JSON
    assert 403 == site.client.post(PATH, json={}, headers=foreign).status_code
    assert 403 == site.client.post(PATH, json={}, headers=JSON).status_code
