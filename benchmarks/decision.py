"""What a decision costs, beside comparing the bytes and beside the naive way, in one run.

A decision is all that happens between a body in memory and a frame to send: the body is split, the
anchors are ranked, what the turn will leave behind is staged, the frame is put together; where
nothing can be continued, the place is found where the two transcripts part. Rows that end in "no
more" are what the row above them cannot do without, done by itself (``deciding.floors``).
The naive way is ``json.loads`` of the body and a digest of each item's canonical text. Prints
medians of interleaved rounds and their ratios, which are what carries over to other machines,
beside the targets.

    python -m benchmarks.decision [--cold] [--sizes 100000,1000000]

With ``--cold`` the sessions take turns over more memory than the caches hold, as many sessions do.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from benchmarks.deciding.floors import Floors, each_respelled
from engine.chain import Anchor, Chain, Epoch, known, stage
from engine.decision import Asker, Plan, decide
from engine.digests import EMPTY
from engine.model import Policy, Reason
from engine.request import Request, own_copy, split

KEY = b"benchmark"
BYTES_PER_ITEM = 100
SIZES = (100_000, 1_000_000, 10_000_000)
ASKER, POLICY, EPOCH = Asker(None, b"h", KEY), Policy(), Epoch()


class _Input(msgspec.Struct):
    input: list[Raw]


_input = msgspec.json.Decoder(_Input)

# --- a conversation -----------------------------------------------------------------------------


def words(rng: random.Random, length: int) -> str:
    alphabet = "the quick brown fox jumps over a lazy dog \n\"'{}[]:,.()/é0123456789"
    return "".join(rng.choices(alphabet, k=length))


def secret(rng: random.Random, length: int) -> str:
    return rng.randbytes(length * 3 // 8).hex()


def turn(rng: random.Random, n: int, size: int) -> tuple[list[Any], list[Any]]:
    """What the model answers in one step, and what the client adds to it."""
    call = f"call_{rng.randbytes(12).hex()}"
    reasoning = {"type": "reasoning", "id": f"rs_{n}", "summary": [],
                 "encrypted_content": secret(rng, size // 4)}  # fmt: skip
    command = {"command": ["bash", "-lc", words(rng, 80)], "n": n}
    doing = {"type": "function_call", "id": f"fc_{n}", "call_id": call, "name": "shell",
             "arguments": json.dumps(command)}  # fmt: skip
    output = {"type": "function_call_output", "call_id": call, "output": words(rng, size)}
    if n % 8:
        return [reasoning, doing], [output]
    said = {"type": "message", "id": f"msg_{n}", "role": "assistant",
            "content": [{"type": "output_text", "text": words(rng, 600)}]}  # fmt: skip
    asked = {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": words(rng, 300)}]}  # fmt: skip
    return [reasoning, said], [asked]


def fields_of(rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields before the input, and those after it, as an agent sends them."""
    tools = [
        {"type": "function", "name": f"tool_{n}", "description": words(rng, 500), "strict": False,
         "parameters": {"type": "object", "properties": {"input": {"type": "string"}}}}
        for n in range(16)
    ]  # fmt: skip
    before = {"model": "gpt-5.5-codex", "instructions": words(rng, 12_000)}
    after = {"tools": tools, "tool_choice": "auto", "parallel_tool_calls": True,
             "reasoning": {"effort": "high", "summary": "auto"}, "store": False, "stream": True,
             "include": ["reasoning.encrypted_content"], "prompt_cache_key": "thread"}  # fmt: skip
    return before, after


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass
class Case:
    """A conversation of about ``size`` bytes, at the moment of its next turn."""

    before: dict[str, Any]
    after: dict[str, Any]
    items: list[Any]
    outputs: list[Any]
    added: list[Any]

    @classmethod
    def of(cls, size: int, seed: int = 0) -> Case:
        rng = random.Random(seed)
        before, after = fields_of(rng)
        items: list[Any] = [{"type": "message", "role": "user", "content": "go"}]
        total = len(dump(before)) + len(dump(after))
        n = 0
        while total < size:
            made, given = turn(rng, n, 5_000)
            items += made + given
            total += sum(len(dump(item)) + 1 for item in made + given)
            n += 1
        made, given = turn(rng, n, 5_000)
        return cls(before, after, items, made, given)

    def body(self, items: list[Any]) -> bytes:
        return dump({**self.before, "input": items, **self.after})

    @property
    def next_items(self) -> list[Any]:
        return [*self.items, *self.outputs, *self.added]

    def anchor(self, body: bytes) -> Anchor:
        """What the last turn left; the provider spells its items in another way than the client."""
        request = split(body)
        sent = stage(request.items, own_copy(request.fields), None)
        answered = [
            Raw(json.dumps({**item, "status": "completed"}).encode()) for item in self.outputs
        ]
        items, digest = sent.baseline(answered, KEY)
        anchor = Anchor(
            id="a", response_id="resp_1", session="s", fields=sent.fields, items=items,
            digest=digest or EMPTY, epoch=1, born=0.0, size=items.size,
        )  # fmt: skip
        chain = Chain(id="c", connection="k", handshake=b"h", opened=0.0, last_used=0.0)
        chain.commit(anchor, 0.0)
        return anchor

    def condensed(self, body: bytes) -> Anchor:
        """The same beyond the byte budget: of what the client has spelled only digests are kept."""
        anchor = self.anchor(body)
        anchor.items.condense(KEY)
        return anchor


def edit_of(case: Case) -> tuple[int, Any, Any]:
    """Where that item stands, as it was and as it is."""
    items = case.next_items
    at = next(i for i in range(len(items) // 2, len(items)) if "output" in items[i])
    return at, items[at], {**items[at], "output": items[at]["output"][:-1]}


def edited(case: Case) -> bytes:
    """An old tool output in the middle has lost a letter."""
    items = case.next_items
    at, _, now = edit_of(case)
    items[at] = now
    return case.body(items)


def turned(item: Any) -> Any:
    return dict(reversed(item.items())) if isinstance(item, dict) else item


def moved(case: Case) -> bytes:
    """The fields in another order: what stands before the input is no longer the same."""
    return dump({**turned(case.after), "input": case.next_items, **turned(case.before)})


def spaced(case: Case) -> bytes:
    """A space behind each comma between the items; the items as they were."""
    fields = b",".join(
        dump(name) + b":" + dump(v) for name, v in (case.before | case.after).items()
    )
    return b"{" + fields + b', "input": [' + b", ".join(map(dump, case.next_items)) + b"]}"


def some_respelled(case: Case) -> bytes:
    """One item of ten has its keys in another order."""
    items = case.next_items
    return case.body([turned(item) if i % 10 == 5 else item for i, item in enumerate(items)])


def all_respelled(case: Case) -> bytes:
    """Each item has its keys in another order."""
    return case.body([turned(item) for item in case.next_items])


# --- what is measured ---------------------------------------------------------------------------


def planned(anchor: Anchor, body: bytes) -> tuple[Request, Plan]:
    request = split(body, known((anchor,)))
    return request, decide([anchor], request, POLICY, EPOCH, ASKER)


def continued(anchor: Anchor, body: bytes) -> bytes:
    request, plan = planned(anchor, body)
    assert plan.reason is Reason.OK, plan.reason
    stage(request.items, own_copy(request.fields), anchor)
    new = request.items[len(anchor.items) :]
    return request.frame(new, anchor.response_id, keep_stream=False)


def explained(anchor: Anchor, body: bytes) -> Plan:
    request, plan = planned(anchor, body)
    assert plan.reason is Reason.PREFIX_MISMATCH
    assert plan.evidence is not None
    assert plan.evidence.path == "/output"
    stage(request.items, own_copy(request.fields), None)
    request.frame(None, None, keep_stream=False)
    return plan


def naive(body: bytes) -> list[str]:
    items = json.loads(body)["input"]
    return [hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest() for item in items]


def cut(body: bytes) -> list[Raw]:
    return _input.decode(body).input


def again(body: bytes) -> bytes:
    """The same bytes somewhere else in memory."""
    return bytes(bytearray(body))


def seconds(work: Callable[[], object]) -> float:
    """Of this thread's own time: others on the machine take theirs in long slices."""
    began = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - began - EMPTY_NS) / 1e9


def _empty() -> int:
    """What looking at the clock and calling nothing costs, in nanoseconds."""
    took, nothing = [], dict
    for _ in range(1000):
        began = time.thread_time_ns()
        nothing()
        took.append(time.thread_time_ns() - began)
    return int(statistics.median(took))


EMPTY_NS = _empty()


def medians(rounds: int, works: dict[str, Callable[[], Callable[[], object]]]) -> dict[str, float]:
    """Each is prepared anew for each round, outside of the time that is taken."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, prepare in works.items():
            times[name].append(seconds(prepare()))
    return {name: statistics.median(values) for name, values in times.items()}


@dataclass(frozen=True)
class Row:
    label: str
    time: float
    unit: str
    per: float
    target: float | None = None
    at_least: bool = False

    def line(self) -> tuple[str, bool]:
        ratio = self.per / self.time if self.at_least else self.time / self.per
        told = f"{self.label:34} {self.time * 1e6:>10.1f} µs {ratio:>8.2f} x {self.unit}"
        if self.target is None:
            return told, True
        met = ratio >= self.target if self.at_least else ratio <= self.target
        sign = ">=" if self.at_least else "<="
        return f"{told:70} target {sign} {self.target:g}: {'reached' if met else 'MISSED'}", met


def measure(size: int, rounds: int, sessions: int) -> bool:
    """Print the figures of one size; True if each target is reached."""
    case = Case.of(size)
    before, after = case.body(case.items), case.body(case.next_items)
    anchors = [case.anchor(again(before)) for _ in range(sessions)]
    bodies = [again(after) for _ in range(sessions)]
    twins = [again(after) for _ in range(sessions)]
    turns = iter(range(10**9))

    def some() -> int:
        return next(turns) % sessions

    def compare() -> Callable[[], object]:
        i = some()
        body, twin = bodies[i], twins[i]
        return lambda: body == twin

    def extend() -> Callable[[], object]:
        i = some()
        anchor, body = anchors[i], bodies[i]
        return lambda: continued(anchor, body)

    def otherwise(body: bytes, work: Callable[[Anchor, bytes], object]) -> Any:
        def prepare() -> Callable[[], object]:
            anchor = case.anchor(before)
            return lambda: work(anchor, body)

        return prepare

    new = [*case.outputs, *case.added]
    floors = Floors(case.before | case.after, case.items, new, dump)
    body, parted, respelled = bodies[0], edited(case), all_respelled(case)
    quick = medians(rounds * 10, {"memcmp": compare, "extends": extend, "floor": floors.extends})
    slow = medians(
        rounds,
        {
            "naive": lambda: lambda: naive(body),
            "raws": lambda: lambda: cut(parted),
            "moved": otherwise(moved(case), continued),
            "spaced": otherwise(spaced(case), continued),
            "some": otherwise(some_respelled(case), continued),
            "all": otherwise(respelled, continued),
            "floor of moved": floors.moved,
            "floor of spaced": floors.spaced,
            "floor of some": lambda: floors.some_respelled(turned),
            "floor of all": lambda: each_respelled(body, respelled),
            "floor of evidence": lambda: floors.evidence(*edit_of(case)[1:], "output"),
            "evidence": otherwise(parted, explained),
            "first": lambda: lambda: split(body),
            "condense": lambda: partial(case.anchor(before).items.condense, KEY),
            "digests": lambda: partial(continued, case.condensed(before), body),
        },
    )
    memcmp, plain, raws = quick["memcmp"], slow["naive"], slow["raws"]
    nearest = min((100_000, 1_000_000, 10_000_000), key=lambda one: abs(one - size))
    most = {100_000: 15.0, 1_000_000: 2.5, 10_000_000: 1.3}[nearest]
    least = {100_000: 50.0, 1_000_000: 100.0, 10_000_000: 100.0}[nearest]
    naively, floor = "faster than naive", "  libraries alone, no more"
    rows = [
        Row("memcmp of the body", memcmp, "memcmp", memcmp),
        Row("naive", plain, "memcmp", memcmp),
        Row("extends", quick["extends"], "memcmp", memcmp, most),
        Row("extends", quick["extends"], naively, plain, least, at_least=True),
        Row("  memcmp, no more", memcmp, naively, plain, at_least=True),
        Row(floor, quick["floor"], naively, plain, at_least=True),
        Row("fields in another order", slow["moved"], naively, plain, 10, at_least=True),
        Row(floor, slow["floor of moved"], naively, plain, at_least=True),
        Row("spaces between items", slow["spaced"], naively, plain, 10, at_least=True),
        Row(floor, slow["floor of spaced"], naively, plain, at_least=True),
        Row("one item of 10 respelled", slow["some"], naively, plain, 10, at_least=True),
        Row(floor, slow["floor of some"], naively, plain, at_least=True),
        Row("each item respelled", slow["all"], naively, plain, 10, at_least=True),
        Row(floor, slow["floor of all"], naively, plain, at_least=True),
        Row("evidence of an edited item", slow["evidence"], "list of Raw", raws, 3),
        Row(floor, slow["floor of evidence"], "list of Raw", raws),
        Row("first turn: split only", slow["first"], "list of Raw", raws),
        Row("condense", slow["condense"], "list of Raw", raws),
        Row("extends by digests", slow["digests"], naively, plain, at_least=True),
    ]
    print(f"\n{len(body):,} bytes, {len(case.next_items)} items, {sessions} sessions in turn")
    lines = [row.line() for row in rows]
    print("\n".join(line for line, _ in lines))
    kept = anchors[0].weight / len(before)
    print(f"{'kept per chain':34} {kept:>10.2f} bodies")
    each = case.condensed(before).items.condensed.size / len(case.items)
    met = each <= BYTES_PER_ITEM
    told = f"{'kept beyond the byte budget':34} {each:>10.1f} bytes per item"
    print(f"{told:70} target <= {BYTES_PER_ITEM}: {'reached' if met else 'MISSED'}")
    return met and all(met for _, met in lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--cold", action="store_true", help="more bodies than the caches hold")
    given = options.parse_args()
    gc.disable()
    results = []
    for size in map(int, given.sizes.split(",")):
        sessions = max(2, 100_000_000 // size) if given.cold else 1
        results.append(measure(size, given.rounds, sessions))
    reached = all(results)
    print("\nall targets reached" if reached else "\nnot all targets reached")
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
