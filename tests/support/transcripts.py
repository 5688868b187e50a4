"""Random transcripts as clients write them: the same items, spelled in different ways."""

from __future__ import annotations

import json

from hypothesis import strategies as st
from msgspec import Raw


def raw(value):
    return Raw((value if isinstance(value, str) else json.dumps(value)).encode())


def said(text, **more):
    return {"type": "message", "role": "assistant", "content": text, **more}


WORDS = st.sampled_from("abc")
ROLES = st.sampled_from(["user", "assistant"])


@st.composite
def messages(draw):
    made = {"role": draw(ROLES), "content": draw(WORDS)}
    if draw(st.booleans()):
        made["type"] = "message"
    if draw(st.integers(0, 2)) == 0:
        made["id"] = draw(WORDS)
    if draw(st.integers(0, 5)) == 0:
        made = {"n": draw(st.sampled_from([1, 1.0, True, None]))}
    return made


@st.composite
def written(draw, value):
    """One of the spellings of a message: key order, spaces, without its id, with a status."""
    pairs = list(value.items())
    if draw(st.integers(0, 3)) == 0:
        pairs = draw(st.permutations(pairs))
    if draw(st.integers(0, 3)) == 0:
        pairs = [pair for pair in pairs if pair[0] != "id"]
    if draw(st.integers(0, 5)) == 0:
        pairs.append(("status", "done"))
    if draw(st.integers(0, 7)) == 0:
        pairs.append(("metadata", {"a": 1}))
    return json.dumps(dict(pairs), separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])))


def body(sent, style):
    comma, head, tail = style
    return ("{" + head + '"input":[' + comma.join(sent) + "]" + tail + "}").encode()


STYLES = st.sampled_from(
    [(",", "", ""), (", ", '"a":1,', ""), (",", '"a":1,', ',"t":[1]'), (",", "", ',"t":[1]')]
)
