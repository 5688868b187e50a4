import pytest

from app.gateway.upstreams import Route, Upstreams
from app.gateway.wire import Refusal
from engine.driver import Upstream
from engine.model import Policy

DEFAULT = Upstream("default", "https://one.example/v1")
AZURE = Upstream("azure", "https://two.example/openai/v1", Policy(continuation="off"))
UPSTREAMS = Upstreams(DEFAULT, {"azure": AZURE})


@pytest.mark.parametrize("prefix", ["/v1", "/codex", "/backend-api/codex"])
def test_the_aliases_of_the_codex_backend_lead_to_the_same_routes(prefix):
    target = UPSTREAMS.find(f"{prefix}/responses")
    assert (target.upstream, target.path, target.route) == (DEFAULT, "/responses", Route.RESPONSES)
    assert UPSTREAMS.find(f"{prefix}/responses/compact").route is Route.COMPACT
    assert UPSTREAMS.find(f"{prefix}/models").route is Route.OTHER


@pytest.mark.parametrize("prefix", ["/u/azure/v1", "/u/azure/codex", "/u/azure/backend-api/codex"])
def test_a_named_upstream_has_the_same_routes(prefix):
    assert UPSTREAMS.find(f"{prefix}/responses").upstream is AZURE
    assert UPSTREAMS.find("/u/default/v1/responses").upstream is DEFAULT


@pytest.mark.parametrize("path", ["/responses/", "/responses/r1", "/responses/compact/x", "", "/"])
def test_only_the_exact_paths_are_turns(path):
    assert UPSTREAMS.find(f"/v1{path}").route is Route.OTHER


def test_an_unknown_upstream_is_404_and_is_not_repeated():
    with pytest.raises(Refusal) as caught:
        UPSTREAMS.find("/u/canary/v1/responses")
    assert caught.value.status == 404
    assert b"canary" not in caught.value.body


@pytest.mark.parametrize(
    "path", ["/v1/../admin", "/v1/%2e%2e/admin", "/v1/a/%2E/b", "/v1/a\\..\\b"]
)
def test_a_path_cannot_leave_the_upstreams_base(path):
    with pytest.raises(Refusal) as caught:
        UPSTREAMS.find(path)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "path", ["/", "/v1x/responses", "/api/summary", "/u/a", "/u//v1/x", "/backend-api/x"]
)
def test_other_paths_are_not_the_gateways(path):
    assert not Upstreams.covers(path)
    with pytest.raises(Refusal):
        UPSTREAMS.find(path)


def test_websockets_are_off_where_continuation_is():
    assert UPSTREAMS.find("/v1/responses").takes_websockets
    assert not UPSTREAMS.find("/u/azure/v1/responses").takes_websockets


def test_a_turn_takes_the_clients_query_along():
    upstream = UPSTREAMS.find("/u/azure/v1/responses", "api-version=preview").queried
    assert upstream.http_url == "https://two.example/openai/v1/responses?api-version=preview"
    assert upstream.ws_url == "wss://two.example/openai/v1/responses?api-version=preview"
    assert (upstream.name, upstream.policy) == (AZURE.name, AZURE.policy)
    assert UPSTREAMS.find("/v1/responses").queried is DEFAULT
