"""What a decision costs, beside comparing the bytes and beside the naive way, in one run.

The whole decision: splitting the body, ranking the anchors, building the outgoing frame. The naive
way: ``json.loads`` of the body and a digest of each item's canonical text. Prints medians, and the
ratios, which are what carries over from one machine to another.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from engine.chain import Anchor, Chain, Epoch, HeldItem, stage
from engine.decision import Asker, decide
from engine.model import Policy, Reason
from engine.request import own_copy, split

KEY = b"benchmark"
ROUNDS = 7
SIZES = (100_000, 1_000_000, 10_000_000)


def body_of(size: int) -> tuple[bytes, bytes]:
    """A request of about ``size`` bytes, and the same with one item more."""
    items: list[dict[str, Any]] = []
    total = 0
    while total < size:
        n = len(items)
        call = {"type": "function_call", "call_id": f"c{n}", "name": "run", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": f"c{n}", "output": "x" * 5_000}
        items += [call, output]
        total += 5_200
    fields = {"model": "m", "store": False, "tools": [{"name": "run"}] * 20}
    before = json.dumps({**fields, "input": items})
    after = json.dumps({**fields, "input": [*items, {"role": "user", "content": "go on"}]})
    return before.encode(), after.encode()


def anchor_of(body: bytes) -> Anchor:
    request = split(body)
    chain = Chain(id="c", connection="k", handshake=b"h", opened=0.0, last_used=0.0)
    held = tuple(HeldItem(raw.copy(), received=False) for raw in request.items)
    anchor = Anchor(
        id="a",
        response_id="resp",
        session="s",
        fields=own_copy(request.fields),
        items=held,
        digest=b"",
        epoch=1,
        born=0.0,
        size=len(body),
    )
    chain.commit(anchor, 0.0)
    return anchor


def decided(anchor: Anchor, body: bytes) -> bytes:
    request = split(body)
    plan = decide([anchor], request, Policy(), Epoch(), Asker(None, b"h", KEY))
    assert plan.reason is Reason.OK
    stage(request.items, own_copy(request.fields), anchor)
    new = request.items[len(anchor.items) :]
    return request.frame(new, anchor.response_id, keep_stream=False)


def naive(body: bytes) -> list[str]:
    items = json.loads(body)["input"]
    return [hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest() for item in items]


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    print(f"{'body':>10} {'memcmp ms':>10} {'decision ms':>12} {'naive ms':>10}   ratios")
    for size in SIZES:
        before, after = body_of(size)
        anchor, twin = anchor_of(before), bytes(bytearray(after))
        rounds = [
            (
                milliseconds(lambda: after == twin),  # noqa: B023
                milliseconds(lambda: decided(anchor, after)),  # noqa: B023
                milliseconds(lambda: naive(after)),  # noqa: B023
            )
            for _ in range(ROUNDS)
        ]
        compare, decision, plain = (
            statistics.median(column) for column in zip(*rounds, strict=True)
        )
        print(
            f"{len(after):>10} {compare:>10.3f} {decision:>12.3f} {plain:>10.1f}"
            f"   {decision / compare:.1f} x memcmp, {plain / decision:.1f} x faster than naive"
        )


if __name__ == "__main__":
    main()
