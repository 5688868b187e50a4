"""What is held after a turn or two."""

from __future__ import annotations

import json

from engine.growing import grown
from engine.request import split
from tests.support.transcripts import raw, said


def request(values, known=(), **fields):
    return split(json.dumps({"model": "m", "input": values, **fields}).encode(), known)


def answered_twice():
    """A client that repeats two answers without their ids, and what is held then."""
    first = grown((), request(["a"]).items, [raw(said("b", id="m1")), raw(said("c", id="m2"))])
    asked = request(["a", said("b"), said("c"), "d"])
    return asked, grown(first, asked.items, [])
