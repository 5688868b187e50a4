"""Evidence looks past what a policy freezes: it is that of histories without the frozen keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import freezing, items, matching
from engine.alignment import Alignment, align
from engine.divergence import describe
from engine.held import HeldItem
from engine.model import DivergenceClass, Evidence, Nature

KEYS = ("_meta",)
Json = dict[str, Any]


def raw(item: Json) -> Raw:
    return Raw(json.dumps(item).encode())


def said(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def gave(number: int, meta: Any = None, **members: Any) -> Json:
    metadata = {} if meta is None else {"_meta": meta}
    output = json.dumps({**metadata, "rows": number, **members})
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": output}


def held(history: list[Json]) -> list[HeldItem]:
    return [HeldItem(raw(item), received=False) for item in history]


def told(before: list[Json], now: list[Json], keys: tuple[str, ...] = KEYS) -> Evidence:
    there, sent = held(before), [raw(item) for item in now]
    index = matching.matched(there, sent, keys)
    return describe(there, sent, index, key=b"k", visible_keys=("_meta", "rows"), freeze=keys)


BEFORE = [said("go"), gave(0, 1), said("on"), gave(1, 2), said("more"), gave(2, 3)]


@pytest.mark.parametrize(
    ("now", "path", "nature"),
    [
        (gave(1, None, more=1), "/output/~", Nature.ADDED),
        (gave(1, 9, rows=7), "/output/rows", Nature.NUMBER),
        ({**gave(1), "output": "text"}, "/output", None),
        ({**gave(1), "call_id": "call_7"}, "/call_id", None),
    ],
)
def test_the_place_is_one_that_no_policy_sets_aside(now, path, nature):
    history = [*BEFORE]
    history[1], history[3], history[5] = gave(0), now, gave(2)
    evidence = told(BEFORE, history)
    assert (3, DivergenceClass.EDITED) == (evidence.index, evidence.klass)
    assert evidence.path[: len(path)] == path
    assert nature in (None, evidence.nature)
    assert not evidence.further


def test_what_is_ignored_counts_in_no_length_and_no_digest():
    one, other = (told([gave(0, meta)], [gave(0, "x", rows=[1])]) for meta in (None, 5))
    assert one == other
    assert one.value_length_before is None


def test_two_outputs_that_changed_places_are_reordered_whatever_they_carry():
    before = [said("go"), gave(0, 1), gave(1, 2), said("on")]
    evidence = told(before, [said("go"), gave(1), gave(0), said("on"), said("more")])
    assert (1, DivergenceClass.REORDERED, 2) == (
        evidence.index,
        evidence.klass,
        evidence.items_gone,
    )


def test_beyond_what_is_read_outputs_are_known_by_their_bytes():
    long = [said(f"a{n}") for n in range(300)]
    before = [said("go"), *long, gave(0, 1), said("end")]
    assert Alignment(1, 1) == align(
        held([said("x"), *before]), [raw(i) for i in [said("y"), *before]], KEYS
    )
    huge = gave(0, "x" * (1 << 18))
    assert Alignment(0, 1) == align(
        held([huge, said("a")]), [raw(i) for i in [said("y"), huge, said("a")]], KEYS
    )


def test_an_output_that_cannot_be_read_is_looked_up_by_its_bytes():
    broken = Raw(b'{"type":"function_call_output","call_id":"c","output":"a","output":"b"}')
    before = [HeldItem(one, received=False) for one in (raw(said("x")), broken)]
    assert Alignment(0, 1) == align(before, [raw(said("y")), raw(said("x")), broken], KEYS)
    before = [HeldItem(broken, received=False), *held([said("a")])]
    assert Alignment(1, 1) == align(before, [raw(gave(1)), raw(said("a"))], KEYS)


ITEMS = st.one_of(
    st.sampled_from([said(text) for text in "abc"]),
    st.builds(gave, st.integers(0, 2), st.sampled_from([None, 1, 2])),
)


def stripped(history: list[Json]) -> list[Json]:
    return [freezing.seen(item, KEYS) for item in history]


@settings(max_examples=60, deadline=None)
@given(st.lists(ITEMS, min_size=1, max_size=5), st.lists(ITEMS, max_size=6))
def test_evidence_is_that_of_histories_without_the_frozen_keys(before, now):
    evidence = told(before, now)
    bare = told(stripped(before), stripped(now), ())
    assert bare == evidence
    if evidence.index is not None and evidence.index < len(now):
        one, other = before[evidence.index], now[evidence.index]
        assert items.difference(*stripped([one, other]), model_made=False) is not None
        assert "_meta" not in (evidence.path or "")
