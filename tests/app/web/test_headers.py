from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.web.headers import CONTENT_SECURITY_POLICY, SecurityHeaders


def headers(own=None):
    inner = Starlette(routes=[Route("/", lambda _request: PlainTextResponse("x", headers=own))])
    return TestClient(SecurityHeaders(inner)).get("/").headers


def test_nothing_is_sniffed_framed_referred_or_kept():
    found = headers()
    assert found["x-content-type-options"] == "nosniff"
    assert found["x-frame-options"] == "DENY"
    assert found["referrer-policy"] == "no-referrer"
    assert found["cache-control"] == "no-store"


def test_scripts_come_from_here_only_and_never_from_strings():
    rules = dict(
        rule.strip().split(" ", 1) for rule in headers()["content-security-policy"].split(";")
    )
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe-eval" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY


def test_what_an_answer_sets_itself_is_kept():
    assert headers({"Cache-Control": "public"}).get_list("cache-control") == ["public"]
