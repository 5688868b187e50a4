"""Blocks of an event stream, however it is cut and whatever ends its lines."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sse import Block, Splitter

STREAM = (
    ': keep-alive\n\nevent: a\ndata: {"delta":"北é🙂"}\n\ndata:{"b":1}\n\n'
    "data: one\ndata:  two\ndata\nid: 7\n\ndata: [DONE]\n\n"
).encode()
EVENTS = ['{"delta":"北é🙂"}'.encode(), b'{"b":1}', b"one\n two", b"[DONE]"]


def run(chunks):
    splitter = Splitter()
    blocks = [block for chunk in chunks for block in splitter.feed(chunk)]
    blocks.extend(splitter.close())
    assert splitter.held == 0
    return blocks


def events(blocks):
    return [block.data for block in blocks if block.data is not None]


def cut(data, places):
    edges = [0, *sorted(places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_gives_the_same_events_cut_after_every_byte(ending):
    data = STREAM.replace(b"\n", ending)
    for at in range(len(data) + 1):
        blocks = run([data[:at], data[at:]])
        assert (events(blocks), b"".join(b.raw for b in blocks)) == (EVENTS, data)
    assert events(run(bytes([byte]) for byte in data)) == EVENTS


@given(
    lines=st.lists(st.sampled_from([b"data: x", b"data:y", b": c", b"event: e", b"data:", b""])),
    ends=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=1),
    places=st.lists(st.integers(0, 200), max_size=12),
)
def test_any_cut_of_any_mixture_gives_the_same_events_and_bytes(lines, ends, places):
    data = b"".join(line + ends[i % len(ends)] for i, line in enumerate(lines))
    whole, blocks = run([data]), run(cut(data, [min(p, len(data)) for p in places]))
    assert events(blocks) == events(whole) == naive(data)
    assert b"".join(b.raw for b in blocks) == data


def naive(data):
    """The specification read literally, on the whole text; what is left at the end counts."""
    found, lines = [], []
    for line in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        if line == b"":
            found += [b"\n".join(lines)] if lines else []
            lines = []
        elif line.startswith(b"data:"):
            lines.append(line[5:].removeprefix(b" "))
    return found + ([b"\n".join(lines)] if lines else [])


def test_the_last_event_counts_without_its_blank_line():
    assert run([b"data: a\n\ndata: b"]) == [Block(b"data: a\n\n", b"a"), Block(b"data: b", b"b")]


def test_a_comment_is_a_block_without_data():
    assert run([b": ping\n\n"]) == [Block(b": ping\n\n", None)]


def test_an_event_is_given_as_soon_as_its_blank_line_is_there():
    splitter = Splitter()
    assert list(splitter.feed(b"data: a\r\n\r")) == [Block(b"data: a\r\n\r", b"a")]
    assert list(splitter.feed(b"\ndata: b\r\n\r\n")) == [Block(b"\ndata: b\r\n\r\n", b"b")]
    assert (splitter.held, list(splitter.close())) == (0, [])


def test_what_is_held_is_told():
    splitter = Splitter()
    assert list(splitter.feed(b"data: a\n")) == []
    assert splitter.held == 8


def test_a_byte_order_mark_does_not_hide_the_first_event():
    assert run([b"\xef\xbb\xbfdata: a\n\n"]) == [Block(b"\xef\xbb\xbfdata: a\n\n", b"a")]
