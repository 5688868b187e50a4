import re

import pytest

from app.paths import STATIC
from app.web.access import COOKIE
from app.web.pages import FORM_LIMIT, local_path
from tests.support.site import BASE, open_site

OWN = {"origin": BASE}
TOKEN = "correct horse"


@pytest.fixture
def locked(tmp_path):
    opened = open_site(tmp_path, token=TOKEN)
    opened.client.follow_redirects = False
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "path",
    [
        "/", "/sessions", "/sessions/key-a", "/requests", "/breaks", "/breaks/f1", "/alerts",
        "/import", "/connect", "/settings",
    ],
)  # fmt: skip
def test_pages_are_html_with_ids_of_one_thing_each_and_versioned_files_of_its_own(site, path):
    answer = site.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert f'src="{site.web.assets.url}/js/' in answer.text
    assert "<script>" not in answer.text
    assert "://" not in answer.text.replace("http://www.w3.org", "")
    ids = re.findall(r'\sid="([^"]+)"', answer.text)
    assert sorted(set(ids)) == sorted(ids)
    assert site.client.head(path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/", "/sessions", "/sessions/key-a", "/requests", "/breaks", "/breaks/f1", "/alerts",
        "/import", "/connect", "/settings",
    ],
)  # fmt: skip
def test_every_file_that_a_page_names_is_there(site, path):
    page = site.client.get(path).text
    names = {part.split('"')[0] for part in page.split('="/static/')[1:]}
    files = {name for name in names if "." in name.rpartition("/")[2]}
    assert files
    for name in files:
        answer = site.client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


def test_the_icon_that_browsers_ask_for_by_themselves_is_there(site):
    assert (STATIC / "img" / "mark.svg").is_file()
    assert site.client.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


def test_without_a_token_there_is_nothing_to_log_in_to(site):
    answer = site.client.get("/login?next=/requests", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/requests")
    posted = site.client.post("/login", data={"token": "x"}, headers=OWN, follow_redirects=False)
    assert posted.status_code == 303
    assert "set-cookie" not in posted.headers


def test_the_token_logs_in_and_leads_back(locked):
    first = locked.client.get("/requests?mode=ws_full", headers={"accept": "text/html"})
    assert first.status_code == 303
    form = locked.client.get(first.headers["location"])
    assert form.status_code == 200
    assert 'value="/requests?mode=ws_full"' in form.text
    data = {"token": TOKEN, "next": "/requests?mode=ws_full"}
    answer = locked.client.post("/login", data=data, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/requests?mode=ws_full")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    for attribute in ("HttpOnly", "SameSite=lax", "Path=/", "Max-Age=2592000"):
        assert attribute in cookie
    assert TOKEN not in cookie
    assert locked.client.get("/requests").status_code == 200


def test_over_tls_the_cookie_is_for_tls_only(locked):
    secure = {"origin": BASE.replace("http", "https")}
    locked.client.base_url = secure["origin"]
    answer = locked.client.post("/login", data={"token": TOKEN}, headers=secure)
    assert "Secure" in answer.headers["set-cookie"]


def test_a_wrong_token_is_told_and_not_repeated(locked):
    answer = locked.client.post("/login", data={"token": "wrong-9c"}, headers=OWN)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "This is not the token of this server." in answer.text
    assert "wrong-9c" not in answer.text


def test_the_form_may_tell_its_origin(locked):
    assert locked.client.get("/login").headers["referrer-policy"] == "same-origin"


def test_logging_out_ends_the_session(locked):
    locked.client.post("/login", data={"token": TOKEN}, headers=OWN)
    assert locked.client.post("/logout", json={}, headers=OWN).json() == {"status": "ok"}
    assert locked.client.get("/api/summary").status_code == 401


def test_a_form_is_bounded(locked):
    answer = locked.client.post("/login", data={"token": "x" * FORM_LIMIT}, headers=OWN)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    "target",
    [
        None,
        "",
        "x",
        "//evil.example",
        "/\\evil.example",
        "http://evil.example",
        "/a\n/b",
        "/\t/e",
        "/a b",
        "/a\\b",
    ],
)
def test_nobody_is_led_to_another_server(target):
    assert local_path(target) == "/"


@pytest.mark.parametrize("target", ["/", "/requests", "/requests?q=a%20b&mode=!ws_full", "/ä"])
def test_places_of_this_server_are_kept(target):
    assert local_path(target) == target


def test_a_next_with_markup_stays_text(locked):
    answer = locked.client.get("/login", params={"next": '/"><script>'})
    assert "<script>" not in answer.text
