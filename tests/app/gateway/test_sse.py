import json

import pytest

from app.gateway import sse
from engine.driver import Event
from engine.sse import Splitter


def parsed(block):
    [only] = Splitter().feed(block)
    return only.data


def test_the_bytes_of_an_http_upstream_are_relayed_as_they_are():
    raw = b"event:x\r\ndata:{}\r\n\r\n"
    assert sse.encode([Event(b"{}", raw)]) == raw


def test_an_event_of_a_websocket_gets_its_type_as_name():
    data = b'{"type":"response.created","response":{"id":"r1"}}'
    assert sse.encode([Event(data)]) == b"event: response.created\ndata: " + data + b"\n\n"


@pytest.mark.parametrize(
    "data",
    [
        b'{"sequence_number":1,"type":"response.created"}',
        b' { "type" : "response.created" } ',
        b'{"type":"response\\u002ecreated"}',
    ],
)
def test_the_type_is_found_wherever_it_stands(data):
    assert sse.encode([Event(data)]).startswith(b"event: response.created\ndata: ")


@pytest.mark.parametrize("data", [b"{}", b'{"type":7}', b'{"type":"a\\nb"}', b"no json", b"[1]"])
def test_an_event_without_a_usable_type_is_sent_without_a_name(data):
    assert sse.encode([Event(data)]) == b"data: " + data + b"\n\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_inside_an_event_do_not_cut_it(end):
    data = f'{{"type":"x",{end}"text":"北é🙂"}}'.encode()
    assert json.loads(parsed(sse.encode([Event(data)]))) == {"type": "x", "text": "北é🙂"}


def test_several_events_are_one_after_the_other():
    data = b'{"type":"x"}'
    events = [Event(data), Event(b"", b": comment\n\n"), Event(b"{}"), Event(b'{"type":\r\n"y"}')]
    assert sse.encode(events) == (
        b'event: x\ndata: {"type":"x"}\n\n'
        b": comment\n\n"
        b"data: {}\n\n"
        b'event: y\ndata: {"type":\ndata: "y"}\n\n'
    )
