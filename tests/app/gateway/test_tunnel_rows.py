import json

import pytest

from app.gateway.identity import Fields, identify, peek
from app.gateway.inbox import Frame
from app.gateway.rows import Receipt
from app.gateway.tunnel_rows import TunnelRows
from engine.model import Kind, Mode, Reason, Status
from tests.support.fake_driver import KEYS, Edge

LATEST = identify(KEYS, (), peek(b'{"prompt_cache_key":"latest"}'))


class Tunnel:
    def __init__(self):
        self.begun = []
        self.edge = Edge(on_begin=self.begun.append)
        self.context = self.edge.gateway._context
        self.rows = TunnelRows(self.context, "default", LATEST)

    def sent(self, **fields):
        body = json.dumps({"type": "response.create", "model": "m"} | fields).encode()
        self.rows.sent(self.frame(body, peek(body)))

    def frame(self, body, fields):
        receipt = Receipt.now(self.context, "default", "ws")
        return Frame(receipt, body, fields, identify(KEYS, (), fields))

    def received(self, type_, *, lane=None, **fields):
        self.edge.clock.advance(1)
        event = {"type": type_} | ({} if lane is None else {"stream_id": lane}) | fields
        self.rows.received(json.dumps(event).encode())

    def answered(self, response_id, lane=None, **response):
        self.received("response.created", lane=lane, response={"id": response_id})
        full = {"id": response_id, "status": "completed"} | response
        self.received("response.completed", lane=lane, response=full)

    @property
    def facts(self):
        return self.edge.facts


USAGE = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}


def test_a_turn_is_one_row_with_what_its_frames_tell():
    tunnel = Tunnel()
    tunnel.sent(input=[{"role": "user", "content": "hi"}], store=False, prompt_cache_key="k")
    tunnel.received("response.created", response={"id": "r1"})
    tunnel.received("response.output_text.delta", delta="x")
    tunnel.received("response.completed", response={"id": "r1", "usage": USAGE})
    [row] = tunnel.facts
    assert (row.response_id, row.session, row.prompt_cache_key) == ("r1", "k", "k")
    assert (row.model, row.store, row.items_sent, row.items_total) == ("m", False, 1, 1)
    assert (row.usage.input_tokens, row.usage.output_tokens) == (100, 10)
    assert (row.first_event_ms, row.ttft_ms, row.duration_ms) == (1000, 2000, 3000)
    assert (row.client_transport, row.kind, row.attempts) == ("ws", Kind.GENERATION, 1)
    assert row.bytes_sent == row.bytes_total


def test_lanes_do_not_mix():
    tunnel = Tunnel()
    tunnel.sent(stream_id="a", model="model-a")
    tunnel.sent(stream_id="b", model="model-b")
    tunnel.sent(model="model-0")
    tunnel.received("response.created", lane="b", response={"id": "rb"})
    tunnel.received("response.created", response={"id": "r0"})
    tunnel.received("response.created", lane="a", response={"id": "ra"})
    tunnel.received("response.completed", lane="a", response={"id": "ra"})
    tunnel.received("response.completed", response={"id": "r0"})
    tunnel.received("response.completed", lane="b", response={"id": "rb"})
    assert [(row.model, row.response_id) for row in tunnel.facts] == [
        ("model-a", "ra"),
        ("model-0", "r0"),
        ("model-b", "rb"),
    ]


def test_a_lane_answers_its_creates_in_order():
    tunnel = Tunnel()
    tunnel.sent(stream_id="a", model="one")
    tunnel.sent(stream_id="a", model="two")
    tunnel.answered("r1", "a")
    tunnel.answered("r2", "a")
    assert [(row.model, row.response_id) for row in tunnel.facts] == [("one", "r1"), ("two", "r2")]


@pytest.mark.parametrize(
    ("type_", "status"),
    [
        ("response.completed", Status.COMPLETED),
        ("response.done", Status.COMPLETED),
        ("response.incomplete", Status.INCOMPLETE),
        ("response.failed", Status.FAILED),
    ],
)
def test_the_terminal_event_is_the_status(type_, status):
    tunnel = Tunnel()
    tunnel.sent()
    tunnel.received("response.created", response={"id": "r1"})
    tunnel.received(type_, response={"id": "r1", "error": {"code": "server_error"}})
    assert [row.status for row in tunnel.facts] == [status]
    assert tunnel.facts[0].error_code == ("server_error" if status is Status.FAILED else None)


@pytest.mark.parametrize(("code", "status"), [(400, Status.ERROR), (429, Status.RATE_LIMITED)])
def test_an_error_ends_the_turn_that_it_answers(code, status):
    tunnel = Tunnel()
    tunnel.sent(stream_id="a")
    tunnel.received("error", lane="a", status=code, error={"code": "c"})
    [row] = tunnel.facts
    assert (row.status, row.http_status, row.error_code) == (status, code, "c")


def test_an_error_of_the_connection_as_a_whole_is_no_turn():
    tunnel = Tunnel()
    tunnel.received("error", status=400, error={"code": "websocket_connection_limit_reached"})
    assert tunnel.facts == []


def test_the_successor_of_a_steered_response_is_a_turn_of_its_own():
    tunnel = Tunnel()
    tunnel.sent()
    tunnel.received("response.created", response={"id": "r1"})
    tunnel.received("response.incomplete", response={"id": "r1"})
    tunnel.answered("r2", usage=USAGE)
    assert [(row.response_id, row.status) for row in tunnel.facts] == [
        ("r1", Status.INCOMPLETE),
        ("r2", Status.COMPLETED),
    ]
    assert tunnel.facts[1].reason is Reason.CLIENT_ANCHORED
    assert tunnel.facts[1].turn_id != tunnel.facts[0].turn_id
    assert [row.turn_id for row in tunnel.begun] == [tunnel.facts[1].turn_id]


def test_a_successor_before_any_frame_is_of_the_session_of_the_turn_before():
    tunnel = Tunnel()
    tunnel.answered("r2")
    assert [row.session for row in tunnel.facts] == ["latest"]


def test_a_warm_up_is_no_generation():
    tunnel = Tunnel()
    tunnel.sent(generate=False)
    tunnel.answered("r1")
    assert tunnel.facts[0].kind is Kind.WARMUP


def test_the_mode_is_the_one_of_the_frame():
    tunnel = Tunnel()
    tunnel.sent(input=[])
    tunnel.answered("r1")
    tunnel.sent(input=[{"role": "user", "content": "hi"}], previous_response_id="r1")
    tunnel.answered("r2")
    full, delta = tunnel.facts
    assert (full.mode, full.reason) == (Mode.WS_FULL, Reason.CONTINUATION_OFF)
    assert (delta.mode, delta.reason) == (Mode.WS_INCREMENTAL, Reason.CLIENT_ANCHORED)
    assert (delta.previous_response_id, delta.items_sent, delta.items_total) == ("r1", 1, None)


@pytest.mark.parametrize(
    ("left", "status", "code"),
    [(True, Status.CLIENT_CLOSED, None), (False, Status.ERROR, "upstream_connection_lost")],
)
def test_what_is_open_at_the_end_is_a_row_once(left, status, code):
    tunnel = Tunnel()
    tunnel.sent(stream_id="a")
    tunnel.sent(stream_id="b")
    tunnel.received("response.created", lane="a", response={"id": "ra"})
    tunnel.rows.end(client_left=left)
    tunnel.rows.end(client_left=left)
    assert [(row.status, row.error_code) for row in tunnel.facts] == [(status, code)] * 2
    assert {row.response_id for row in tunnel.facts} == {"ra", None}


def test_a_response_that_another_takes_the_place_of_is_a_row():
    tunnel = Tunnel()
    tunnel.sent()
    tunnel.received("response.created", response={"id": "r1"})
    tunnel.received("response.created", response={"id": "r2"})
    assert [(row.response_id, row.error_code) for row in tunnel.facts] == [("r1", "superseded")]


@pytest.mark.parametrize("data", [b"no json", b"[1]", b'{"type":7}', b"[" * 100_000, b"{}"])
def test_events_that_cannot_be_read_are_skipped(data):
    tunnel = Tunnel()
    tunnel.sent()
    tunnel.rows.received(data)
    tunnel.answered("r1")
    assert [row.response_id for row in tunnel.facts] == ["r1"]


def test_a_create_that_the_engine_cannot_read_is_a_row_too():
    tunnel = Tunnel()
    body = b'{"type":"response.create","stream_id":"a","input":7}'
    tunnel.rows.sent(tunnel.frame(body, peek(body)))
    tunnel.answered("r1", "a")
    assert [(row.mode, row.response_id) for row in tunnel.facts] == [(Mode.WS_FULL, "r1")]


def test_a_body_of_which_nothing_can_be_read_leaves_its_row_without_numbers():
    tunnel = Tunnel()
    body = b'{"type":"response.create","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    tunnel.rows.sent(tunnel.frame(body, Fields(type="response.create")))
    tunnel.answered("r1")
    assert [(row.items_sent, row.bytes_sent) for row in tunnel.facts] == [(None, len(body))]


def test_a_text_is_one_item():
    tunnel = Tunnel()
    tunnel.sent(input="hi")
    tunnel.answered("r1")
    assert tunnel.facts[0].items_sent == 1
