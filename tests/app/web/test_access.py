import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse

from app.gateway.access import HostPolicy
from app.web.access import COOKIE, COOKIE_SECONDS, Guard, Tickets
from tests.support.clock import ManualClock

BASE = "http://127.0.0.1:8787"
TOKEN = "correct horse"
BEARER = {"authorization": f"Bearer {TOKEN}"}
SOCKET = "ws://127.0.0.1:8787/api/live"
OWN = {"origin": BASE}


async def _echo(websocket):
    await websocket.accept()
    await websocket.send_text("in")
    await websocket.close()


def client(token=None, *, clock=None, base=BASE):
    methods = ["GET", "POST", "DELETE"]
    inner = Starlette(
        routes=[
            WebSocketRoute("/api/live", _echo),
            Route("/{path:path}", lambda _request: PlainTextResponse("in"), methods=methods),
        ]
    )
    tickets = Tickets(token, clock or ManualClock())
    guard = Guard(inner, hosts=HostPolicy.for_bind("127.0.0.1"), tickets=tickets)
    return TestClient(guard, base_url=base, follow_redirects=False)


def code(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_without_a_token_loopback_is_open():
    assert client().get("/api/summary").text == "in"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example"])
@pytest.mark.parametrize("path", ["/", "/api/summary", "/healthz", "/static/1/x.js"])
def test_a_foreign_host_is_refused_everywhere_even_on_loopback(host, path):
    assert code(client().get(path, headers={"host": host})) == (403, "host_not_allowed")
    with_token = client(TOKEN).get(path, headers={"host": host} | BEARER)
    assert code(with_token) == (403, "host_not_allowed")


def test_two_hosts_are_none():
    raw = [("host", "127.0.0.1"), ("host", "evil.example")]
    assert client().get("/", headers=raw).status_code == 403


@pytest.mark.parametrize("path", ["/api/summary", "/metrics", "/docs", "/openapi.json", "/api/x"])
def test_the_token_covers_api_metrics_and_docs(path):
    locked = client(TOKEN)
    assert code(locked.get(path)) == (401, "unauthorized")
    assert locked.get(path, headers=BEARER).text == "in"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/login", "/static/1/x.js"])
def test_what_the_login_form_and_probes_need_is_open(path):
    assert client(TOKEN).get(path).text == "in"


@pytest.mark.parametrize("path", ["/login/x", "/Login", "/healthz/x", "/static", "/staticx"])
def test_only_the_open_paths_themselves_are_open(path):
    assert client(TOKEN).get(path).status_code == 401


def test_a_person_is_led_to_the_login_form_and_back():
    answer = client(TOKEN).get("/requests?mode=ws_full&q=a b", headers={"accept": "text/html"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Frequests%3Fmode%3Dws_full%26q%3Da%2520b"
    assert client(TOKEN).get("/api/summary", headers={"accept": "text/html"}).status_code == 401


@pytest.mark.parametrize(
    "value", ["Bearer wrong", "Bearer", "Basic correct horse", "correct horse", "Bearer é", ""]
)
def test_anything_but_the_token_is_refused(value):
    answer = client(TOKEN).get("/api/x", headers={"authorization": value.encode()})
    assert code(answer) == (401, "unauthorized")
    assert TOKEN not in answer.text


def test_the_cookie_of_the_login_form_lets_in_until_it_expires():
    clock = ManualClock()
    ticket = Tickets(TOKEN, clock).issue()
    locked = client(TOKEN, clock=clock)
    locked.cookies.set(COOKIE, ticket)
    assert locked.get("/api/x").text == "in"
    clock.advance(COOKIE_SECONDS - 1)
    assert locked.get("/api/x").text == "in"
    clock.advance(1)
    assert locked.get("/api/x").status_code == 401


def test_the_cookie_holds_no_token_and_ends_with_its_change():
    clock = ManualClock()
    ticket = Tickets(TOKEN, clock).issue()
    assert TOKEN not in ticket
    assert not Tickets("another", clock).accepts(ticket)


def test_without_a_token_nothing_is_the_token():
    assert not Tickets(None, ManualClock()).accepts_token("")
    assert not Tickets(None, ManualClock()).accepts_token("None")


@pytest.mark.parametrize("change", ["later", "cut", "empty", "foreign"])
def test_a_forged_cookie_is_refused(change):
    tickets = Tickets(TOKEN, ManualClock())
    expiry, signature = tickets.issue().split(".")
    forged = {
        "later": f"{int(expiry) + 1}.{signature}",
        "cut": expiry,
        "empty": "",
        "foreign": "é.ü",
    }[change]
    assert not tickets.accepts(forged)


def test_other_cookies_on_the_same_host_do_not_matter():
    ticket = Tickets(TOKEN, ManualClock()).issue()
    header = {"cookie": f'odd cookie; a="b; a,b=c; {COOKIE}=old; {COOKIE}={ticket}; z=[]'}
    assert client(TOKEN).get("/api/x", headers=header).text == "in"


def test_a_change_needs_the_own_origin_and_json():
    open_ = client()
    assert open_.post("/api/x", json={}, headers=OWN).text == "in"
    assert code(open_.post("/api/x", json={})) == (403, "origin_not_allowed")
    foreign = {"origin": "http://evil.example"}
    assert code(open_.post("/api/x", json={}, headers=foreign)) == (403, "origin_not_allowed")
    assert code(open_.delete("/api/x", headers=OWN)) == (415, "json_required")
    plain = {"content-type": "text/plain"}
    assert code(open_.post("/api/x", content="{}", headers=OWN | plain)) == (415, "json_required")


@pytest.mark.parametrize(
    "origin",
    ["null", "http://127.0.0.1", "http://127.0.0.1:8788", "http://[", "http://localhost:8787"],
)
def test_an_origin_that_is_not_exactly_this_one_is_foreign(origin):
    answer = client().post("/api/x", json={}, headers={"origin": origin})
    assert code(answer) == (403, "origin_not_allowed")


@pytest.mark.parametrize("path", ["/responses", "/chat/completions", "/u/azure/responses"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_client_whose_base_url_lacks_v1_is_told_so(path, token):
    key = {"authorization": "Bearer sk-of-the-provider"}
    answer = client(token).post(path, json={}, headers=key)
    assert code(answer) == (404, "not_found")
    assert "base URL lacks /v1" in answer.json()["error"]["message"]
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client(token).websocket_connect(f"ws://127.0.0.1:8787{path}", headers=key),
    ):
        pass
    assert refused.value.status_code == 404


def test_a_cookie_does_not_help_a_foreign_origin():
    locked = client(TOKEN)
    locked.cookies.set(COOKIE, Tickets(TOKEN, ManualClock()).issue())
    foreign = {"origin": "http://evil.example"}
    assert code(locked.post("/api/x", json={}, headers=foreign)) == (403, "origin_not_allowed")


def test_a_script_with_the_token_needs_no_origin():
    assert client(TOKEN).post("/api/x", json={}, headers=BEARER).text == "in"


def test_the_login_form_may_post_a_form_and_nothing_else_may():
    form = {"token": "x"}
    assert client(TOKEN).post("/login", data=form, headers=OWN).text == "in"
    assert client().post("/logout", data=form, headers=OWN).status_code == 415


def test_behind_a_proxy_that_speaks_tls_the_origin_still_matches():
    answer = client().post("/api/x", json={}, headers={"origin": "https://127.0.0.1:8787"})
    assert answer.text == "in"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        (BEARER | {"origin": "http://evil.example"}, 403),
        (BEARER | {"host": "evil.example"}, 403),
    ],
)
def test_a_websocket_is_refused_before_it_is_accepted(headers, status):
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client(TOKEN).websocket_connect(SOCKET, headers=headers),
    ):
        pass
    assert refused.value.status_code == status
    assert refused.value.json()["error"]["code"]


@pytest.mark.parametrize("headers", [BEARER, BEARER | OWN])
def test_a_websocket_with_the_token_is_let_in(headers):
    with client(TOKEN).websocket_connect(SOCKET, headers=headers) as socket:
        assert socket.receive_text() == "in"


def test_a_foreign_page_with_the_cookie_gets_no_websocket():
    locked = client(TOKEN)
    locked.cookies.set(COOKIE, Tickets(TOKEN, ManualClock()).issue())
    foreign = {"origin": "http://evil.example"}
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        locked.websocket_connect(SOCKET, headers=foreign),
    ):
        pass
    assert refused.value.status_code == 403


async def test_a_server_that_cannot_answer_upgrades_closes_them():
    guard = Guard(
        None, hosts=HostPolicy.for_bind("127.0.0.1"), tickets=Tickets(TOKEN, ManualClock())
    )
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "path": "/api/live", "headers": [(b"host", b"localhost")]}
    await guard(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
