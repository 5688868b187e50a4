"""Turns over an upstream that keeps responses, and upstreams that read requests in their own way."""

from __future__ import annotations

import json
import re

from app.demo.provider.oracle import same_transcript
from engine.model import Policy
from tests.support.first_turns import after
from tests.support.loopback import LoopbackHttp, Stack
from tests.support.provider import MODEL, user

STORE = Policy(continuation="store")
FIRST = {"model": MODEL, "stream": True, "input": [user("one")]}


def sent(s: Stack) -> dict:
    return s.core.log[-1].body


def said(s: Stack) -> tuple:
    return (s.last.mode, s.last.reason, s.last.fallback_reason)


def holds(s: Stack, body: dict, events: list[dict]) -> bool:
    held = s.core.held(s.last.response_id).items
    return same_transcript(held, [*body["input"], *events[-1]["response"]["output"]])


async def kept(s: Stack, first: dict = FIRST, **call) -> dict:
    """One answered turn; returns the body of the next."""
    return after(await s.turn(first, **call), first)


class Changed(LoopbackHttp):
    """An upstream that reads requests in its own way."""

    def __init__(self, core, change):
        super().__init__(core)
        self.change = change

    async def post(self, url, headers, body, within):
        read = json.loads(body)
        self.change(read)
        return await super().post(url, headers, json.dumps(read).encode(), within)


def reading(s: Stack, change) -> None:
    s.http.post = Changed(s.core, change).post


def counting(s: Stack, ids: list[str]) -> None:
    """An upstream that gives its responses these ids, and knows them by the last it gave."""
    post, given = s.http.post, iter(ids)
    real: dict[str, str] = {}

    async def renamed(url, headers, body, within):
        read = json.loads(body)
        named = read.get("previous_response_id")
        if named is not None:
            read["previous_response_id"] = real[named]
        answer = await post(url, headers, json.dumps(read).encode(), within)
        text = b"".join([chunk async for chunk in answer.chunks()]).decode()
        match = re.search(r'"id": ?"(resp_[^"]+)"', text)
        assert match is not None
        own, name = match[1], next(given)
        text = text.replace(own, name)
        if named is not None:
            text = text.replace(real[named], named)
        real[name] = own

        async def chunks():
            yield text.encode()

        answer.chunks = chunks
        return answer

    s.http.post = renamed
