"""What is asked and what is answered: the same for every gateway.

An answer is 50 events of about 420 bytes, as a model's text comes. A conversation grows by the
answer's item and a next question, as an agent sends it: without the ids that the provider gave.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from typing import Any

EVENTS = 50
_SIZE = 420
_ID = b"resp_" + b"0" * 20
_STAMP = b"0" * 20
STAMP = re.compile(rb'"obfuscation":"(\d{20})')
"""When the upstream sent an event, in nanoseconds of the machine's monotonic clock."""
_TEXT = "The cache stays warm as long as each request begins with what the last one ended with."


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def events() -> list[bytes]:
    """The JSON of each event, with a stamp and an id to be filled in."""
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": _TEXT}
    item = {"id": "msg_1", "type": "message", "status": "completed", "content": [part],
            "role": "assistant"}  # fmt: skip
    response = {"id": _ID.decode(), "object": "response", "created_at": 1, "model": "bench",
                "status": "in_progress", "output": [], "parallel_tool_calls": True,
                "tool_choice": "auto", "tools": [], "store": False}  # fmt: skip
    usage = {"input_tokens": 2000, "input_tokens_details": {"cached_tokens": 1900},
             "output_tokens": 60, "output_tokens_details": {"reasoning_tokens": 0},
             "total_tokens": 2060}  # fmt: skip
    of_item = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    begun = item | {"status": "in_progress", "content": []}
    words = f"{_TEXT} ".split(" ")
    told: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.content_part.added", **of_item, "part": part | {"text": ""}},
    ]
    told += [
        {"type": "response.output_text.delta", **of_item, "delta": words[n % len(words)] + " ",
         "logprobs": []}
        for n in range(EVENTS - 8)
    ]  # fmt: skip
    ended = response | {"status": "completed", "output": [item], "usage": usage}
    told += [
        {"type": "response.output_text.done", **of_item, "text": _TEXT, "logprobs": []},
        {"type": "response.content_part.done", **of_item, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": ended},
    ]
    return [_padded(event | {"sequence_number": n}) for n, event in enumerate(told)]


def _padded(event: dict[str, Any]) -> bytes:
    stamp = _STAMP.decode()
    room = max(0, _SIZE - len(dump(event | {"obfuscation": stamp})))
    return dump(event | {"obfuscation": stamp + "x" * room})


@dataclass(frozen=True)
class Answer:
    """An answer in the framing of a wire."""

    pieces: tuple[bytes, ...]

    @classmethod
    def of(cls, *, websocket: bool) -> Answer:
        return cls(tuple(map(_frame if websocket else _chunk, events())))

    def burst(self, number: int) -> list[bytes]:
        """All events, under a response id of their own."""
        name = b"resp_%020d" % number
        pieces = list(self.pieces)
        for at in (0, 1, -1):
            pieces[at] = pieces[at].replace(_ID, name)
        return pieces

    def piece(self, at: int, number: int, now: int) -> bytes:
        """One event, with the moment at which it is sent."""
        return (
            self.pieces[at]
            .replace(b'"obfuscation":"' + _STAMP, b'"obfuscation":"%020d' % now)
            .replace(_ID, b"resp_%020d" % number)
        )


def _chunk(event: bytes) -> bytes:
    kind = json.loads(event)["type"].encode()
    text = b"event: " + kind + b"\ndata: " + event + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(text), text)


def _frame(event: bytes) -> bytes:
    return b"\x81\x7e" + len(event).to_bytes(2, "big") + event


_ANSWERED = dump(
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": _TEXT}]}
)


def _question(n: int) -> bytes:
    text = f"Step {n}: tell me more of it."
    return dump(
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    )


@dataclass
class Conversation:
    """An agent's session; ``path`` is where it sends its turns."""

    name: str
    path: str
    items: bytearray = field(default_factory=lambda: bytearray(_question(0)))
    turns: int = 0
    _tail: bytes = b""

    @classmethod
    def long(cls, name: str, path: str, size: int) -> Conversation:
        """One whose transcript has about ``size`` bytes."""
        return cls(name, path, bytearray(transcript(size)))

    def answered(self) -> None:
        """The answer has come: the next turn says it, and asks on."""
        self.turns += 1
        self.items += b"," + _ANSWERED + b"," + _question(self.turns)

    def body(self) -> bytes:
        if not self._tail:
            name = self.name.encode()
            self._tail = (
                b'],"tools":[],"tool_choice":"auto","store":false,"stream":true,'
                b'"prompt_cache_key":"' + name + b'"}'
            )
        return b'{"model":"bench","instructions":"Be brief.","input":[' + self.items + self._tail

    def request(self, body: bytes | None = None, encoding: str | None = None) -> bytes:
        """The whole request; ``body`` where it is another one, or an encoded one."""
        body = self.body() if body is None else body
        encoded = f"content-encoding: {encoding}\r\n" if encoding else ""
        return (
            f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: bench/1.0\r\n"
            "authorization: Bearer sk-bench\r\naccept: text/event-stream\r\n"
            f"content-type: application/json\r\nthread-id: {self.name}\r\n{encoded}"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode() + body


def transcript(size: int) -> bytes:
    """Items of an agent's transcript: calls of tools, their outputs, sealed reasoning."""
    rng = random.Random(size)
    alphabet = "the quick brown fox jumps over a lazy dog \n\"'{}[]:,.()/é0123456789"
    outputs = ["".join(rng.choices(alphabet, k=4_500)) for _ in range(50)]
    items, total = [_question(0)], 0
    while total < size:
        call = f"call_{rng.randbytes(12).hex()}"
        made = [
            {"type": "reasoning", "summary": [], "encrypted_content": rng.randbytes(600).hex()},
            {"type": "function_call", "call_id": call, "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": call,
             "output": rng.choice(outputs)},
        ]  # fmt: skip
        items += map(dump, made)
        total += sum(map(len, items[-3:])) + 3
    return b",".join(items)
