"""One cause, one fingerprint: whatever session, place, length, value or text (DESIGN 4.4)."""

import copy
import dataclasses
import json
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import fingerprint
from engine.chain import HeldItem
from engine.divergence import describe
from engine.model import DivergenceClass, Evidence, Nature
from engine.request import changed_fields

KEY = b"k" * 32


def of(**known):
    return fingerprint.of(KEY, Evidence(**known))


EDIT = {"klass": DivergenceClass.EDITED, "kind_before": "message:user", "kind_now": "message:user",
        "path": "/content/0/text", "nature": Nature.TIME}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"index": 7}, {"length_before": 3, "length_now": 9}, {"offset": 5}, {"line": 4},
        {"value_length_before": 1}, {"digest_before": "d", "digest_now": "e"}, {"items_gone": 4},
        {"items_new": 2}, {"further": True}, {"freezable": ("_meta",)}, {"nature": Nature.NUMBER}, {"path": "/content/12/text"},
    ],
)  # fmt: skip
def test_place_and_value_are_not_in_it(change):
    assert of(**EDIT) == of(**{**EDIT, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"klass": DivergenceClass.REPLACED}, {"kind_before": "reasoning"}, {"path": "/content/0/type"},
        {"nature": Nature.WHITESPACE}, {"nature": Nature.REWRITTEN}, {"changed_fields": ("model",)},
        {"field_details": ({"field": "tools", "change": "reordered"},)},
    ],
)  # fmt: skip
def test_what_makes_another_cause_is_in_it(change):
    assert of(**EDIT) != of(**{**EDIT, **change})


def test_another_key_gives_another_fingerprint():
    assert of(**EDIT) != fingerprint.of(b"o" * 32, Evidence(**EDIT))


@pytest.mark.parametrize("klass", [DivergenceClass.REMOVED, DivergenceClass.TRUNCATED_TAIL])
def test_what_stands_in_the_place_of_a_lost_item_is_not_its_cause(klass):
    one = {"klass": klass, "kind_before": "reasoning"}
    assert of(**one, kind_now="message:user") == of(**one, kind_now="function_call")


def test_the_order_of_two_kinds_does_not_matter_where_they_were_reordered():
    kinds = [{"kind_before": a, "kind_now": b} for a, b in ("xy", "yx")]
    one, other = (of(klass=DivergenceClass.REORDERED, **each) for each in kinds)
    assert one == other


def test_field_details_count_once_and_in_any_order():
    added, model = (
        {"field": "tools", "change": "added", "name": "a"},
        {"field": "model", "change": "changed"},
    )
    assert of(field_details=(added, model)) == of(field_details=(model, added, added))
    assert of(field_details=(added,)) != of(field_details=({**added, "name": "b"},))
    values = [{**model, "before": a, "now": b} for a, b in ("xy", "yz")]
    assert of(field_details=(values[0],)) == of(field_details=(values[1],))


# Whole conversations: a cause is planted into any session, at any place.


def words(rng, count=6):
    return " ".join("".join(rng.choices(string.ascii_lowercase, k=8)) for _ in range(count))


def turn(rng, n):
    call = {"type": "function_call", "call_id": f"c{n}", "name": "exec",
            "arguments": json.dumps({"list": [words(rng), words(rng)]})}  # fmt: skip
    rows = {"_meta": {"left": rng.randrange(10**6)}, "rows": [words(rng)], "at": f"{n % 24:02}:00"}
    return [
        {"role": "user", "content": [{"type": "input_text", "text": words(rng)}]},
        {"type": "reasoning", "id": f"rs{n}", "summary": [], "encrypted_content": words(rng, 1)},
        call,
        {"type": "function_call_output", "call_id": f"c{n}", "output": json.dumps(rows)},
        {"role": "assistant", "content": [{"type": "output_text", "text": words(rng) + "\n"}]},
    ]


def output(rng, item, change):
    rows = json.loads(item["output"])
    change(rows)
    item["output"] = json.dumps(rows)


def edit(item, text):
    item["content"][0]["text"] = text


# Each takes the history, the start of the turn that it spoils, and a source of chance.
HISTORY_CAUSES = {
    "meta moved": lambda h, at, rng: output(rng, h[at + 3], lambda r: r.pop("_meta")),
    "output later": lambda h, at, rng: output(rng, h[at + 3], lambda r: r.update(at="09:59")),
    "output rewritten": lambda h, at, rng: h[at + 3].update(output=words(rng, 9)),
    "arguments reordered": lambda h, at, rng: h[at + 2].update(
        arguments=json.dumps({"list": json.loads(h[at + 2]["arguments"])["list"][::-1]})
    ),
    "reasoning dropped": lambda h, at, rng: h.pop(at + 1),
    "answer trimmed": lambda h, at, rng: edit(h[at + 4], h[at + 4]["content"][0]["text"].strip()),
    "question rewritten": lambda h, at, rng: edit(h[at], words(rng)),
    "note put in": lambda h, at, rng: h.insert(at, {"role": "developer", "content": words(rng)}),
    "output dropped": lambda h, at, rng: h.pop(at + 3),
    "outputs moved": lambda h, at, rng: h.__setitem__(
        slice(at + 2, at + 4), h[at + 2 : at + 4][::-1]
    ),
    "rewound": lambda h, at, rng: h.__delitem__(slice(at + 1, None)),
    "window": lambda h, at, rng: h.__delitem__(slice(0, at + 5)),
}
TOOLS = [{"type": "function", "name": n, "description": "It is 08:39."} for n in "abcd"]


def shuffled(f, rng):
    f["tools"] = rng.sample(TOOLS, 4)
    if f["tools"] == TOOLS:
        f["tools"] = TOOLS[::-1]


FIELD_CAUSES = {
    "tools shuffled": shuffled,
    "tool dated": lambda f, rng: f.update(
        tools=[{**TOOLS[0], "description": f"It is 09:{rng.randrange(10, 60)}."}, *TOOLS[1:]]
    ),
    "model": lambda f, rng: f.update(model=f"m{rng.randrange(2, 9)}"),
    "effort": lambda f, rng: f.update(reasoning={"effort": rng.choice(["low", "high"])}),
    "dated": lambda f, rng: f.update(
        instructions=f"{f['instructions']}Now: 10:{rng.randrange(10, 60)}"
    ),
    "cache key": lambda f, rng: f.update(prompt_cache_key=words(rng, 1)),
}


def spoiled(cause, seed):
    """The fingerprint of a cause in a session of its own, as the engine would find it."""
    rng = random.Random(seed)
    turns = rng.randrange(2, 7)
    start = rng.randrange(10**6)
    history = [item for n in range(turns) for item in turn(rng, start + n)]
    before = {"model": "m1", "instructions": words(rng) + "\n", "tools": TOOLS,
              "reasoning": {"effort": "medium"}}  # fmt: skip
    if cause == "dated":
        before["instructions"] += "Now: 08:39"
    now, sent = copy.deepcopy(before), copy.deepcopy(history)
    if cause in FIELD_CAUSES:
        now["instructions"] = now["instructions"].removesuffix("Now: 08:39")
        FIELD_CAUSES[cause](now, rng)
    else:
        HISTORY_CAUSES[cause](sent, 5 * rng.randrange(turns - 1), rng)
    if cause != "rewound":
        sent.append({"role": "user", "content": words(rng)})
    held = [HeldItem(raw(item), received=False) for item in history]
    asked = [raw(item) for item in sent]
    index = next((i for i, (a, b) in enumerate(zip(held, asked, strict=False))
                  if a.difference(b) is not None), min(len(held), len(asked)))  # fmt: skip
    fields = tuple({name: raw(value) for name, value in side.items()} for side in (before, now))
    evidence = describe(held, asked, index, key=KEY, visible_keys=("_meta",), fields=fields,
                        changed=changed_fields(*fields, "strict"))  # fmt: skip
    assert (index < len(held)) == (cause in HISTORY_CAUSES)
    return evidence.fingerprint


def raw(value):
    return Raw(json.dumps(value).encode())


CAUSES = [*HISTORY_CAUSES, *FIELD_CAUSES]
seeds = st.integers(0, 10**9)


@settings(max_examples=25, deadline=None)
@given(seeds, seeds)
@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_has_one_fingerprint_in_all_sessions(cause, one, other):
    assert spoiled(cause, one) == spoiled(cause, other)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(CAUSES), st.sampled_from(CAUSES), seeds, seeds)
def test_two_causes_have_two_fingerprints(one, other, seed, second):
    if one != other:
        assert spoiled(one, seed) != spoiled(other, second)


def test_all_causes_are_told_apart():
    assert len(CAUSES) == len({spoiled(cause, 1) for cause in CAUSES})


def test_evidence_has_no_field_that_was_forgotten_here():
    """A new field is either part of the fingerprint or named above as none."""
    known = {
        "klass",
        "kind_before",
        "kind_now",
        "path",
        "nature",
        "changed_fields",
        "field_details",
    }
    beside = {"index", "length_before", "length_now", "offset", "line", "items_gone", "items_new",
              "further", "freezable", "value_length_before", "value_length_now", "digest_before", "digest_now",
              "fingerprint"}  # fmt: skip
    assert known | beside == {field.name for field in dataclasses.fields(Evidence)}
