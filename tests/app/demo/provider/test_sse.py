"""Server-sent events, byte for byte, in the forms in which they come."""

import json

import pytest

from app.demo.provider.faults import SseForm
from app.demo.provider.sse import done, encode, encode_text

EVENT = {"type": "response.created", "text": "北é"}
DATA = '{"type":"response.created","text":"北é"}'


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (SseForm(), f"event: response.created\ndata: {DATA}\n\n"),
        (SseForm(newline="\r\n"), f"event: response.created\r\ndata: {DATA}\r\n\r\n"),
        (SseForm(newline="\r"), f"event: response.created\rdata: {DATA}\r\r"),
        (SseForm(space=False), f"event:response.created\ndata:{DATA}\n\n"),
        (SseForm(event_lines=False), f"data: {DATA}\n\n"),
        (SseForm(comments=True), f": keep-alive\nevent: response.created\ndata: {DATA}\n\n"),
    ],
)
def test_each_form_byte_for_byte(form, text):
    assert encode(EVENT, form) == text.encode()


def test_the_last_event_may_lack_its_blank_line():
    form = SseForm(final_newline=False)
    assert encode(EVENT, form, last=True).endswith(b'"}')
    assert encode(EVENT, form).endswith(b'"}\n\n')


def test_data_over_several_lines_is_the_same_event():
    text = encode(EVENT, SseForm(multi_line_data=True)).decode()
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line[:5] == "data:"]
    assert len(lines) > 1
    assert json.loads("\n".join(lines)) == EVENT


def test_a_text_that_does_not_parse_is_sent_as_it_is():
    assert encode_text("{oops", SseForm()) == b"data: {oops\n\n"


def test_the_done_line_of_other_apis_is_sent_only_if_asked_for():
    assert done(SseForm()) == b""
    assert done(SseForm(done_line=True)) == b"data: [DONE]\n\n"


def test_a_lone_surrogate_is_escaped():
    assert b"\\ud83d" in encode({"type": "x", "text": "\ud83d"}, SseForm())
