import pytest
from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from app.version import VERSION
from tests.support.rows import make_row

SOCKET = "ws://127.0.0.1:8787/api/live"


@pytest.fixture
def live(site):
    """The site with its lifespan running."""
    with site.client:
        yield site


def test_hello_comes_first_and_says_when(live):
    with live.client.websocket_connect(SOCKET) as socket:
        assert socket.receive_json() == {
            "seq": 0,
            "type": "hello",
            "as_of": "2027-01-15T08:00:00.000Z",
            "version": VERSION,
        }


def test_rows_are_those_of_the_api(live):
    with live.client.websocket_connect(SOCKET) as socket:
        socket.receive_json()
        live.write([make_row(turn_id="a")])
        message = socket.receive_json()
        assert (message["seq"], message["type"]) == (1, "rows")
        assert message["rows"] == [live.get("/api/requests/a")["row"]]


def test_the_query_is_the_filter_and_its_window_does_not_count(live):
    url = f"{SOCKET}?mode=ws_full&from=2020-01-01&to=2020-01-02"
    with live.client.websocket_connect(url) as socket:
        socket.receive_json()
        live.write([make_row(turn_id="a"), make_row(turn_id="b", mode="ws_full")])
        assert [row["turn_id"] for row in socket.receive_json()["rows"]] == ["b"]


def test_a_filter_that_cannot_be_read_is_refused_before_the_socket_opens(live):
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        live.client.websocket_connect(f"{SOCKET}?mod=x"),
    ):
        pass
    assert refused.value.status_code == 400
    assert refused.value.json()["error"]["code"] == "bad_parameter"
    assert len(live.web.hub) == 0


def test_what_a_browser_says_is_ignored(live):
    with live.client.websocket_connect(SOCKET) as socket:
        socket.receive_json()
        socket.send_text("hello?")
        socket.send_bytes(b"\x00")
        live.write([make_row(turn_id="a")])
        assert socket.receive_json()["rows"][0]["turn_id"] == "a"


def test_several_browsers_get_the_same_rows_each_with_its_own_numbers(live):
    with live.client.websocket_connect(SOCKET) as first:
        first.receive_json()
        live.write([make_row(turn_id="a")])
        first.receive_json()
        with live.client.websocket_connect(SOCKET) as second:
            second.receive_json()
            live.write([make_row(turn_id="b")])
            one, two = first.receive_json(), second.receive_json()
            assert one["rows"] == two["rows"]
            assert (one["seq"], two["seq"]) == (2, 1)


def test_a_browser_that_leaves_is_forgotten(live):
    with live.client.websocket_connect(SOCKET) as socket:
        socket.receive_json()
        assert len(live.web.hub) == 1
    live.write([make_row()])
    assert len(live.web.hub) == 0


def test_the_end_of_the_service_closes_the_sockets(live):
    with live.client.websocket_connect(SOCKET) as socket:
        socket.receive_json()
        live.client.portal.call(live.web.hub.close)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == 1001
