"""Evidence names keys only where freezing them is the whole remedy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import matching
from engine.divergence import describe
from engine.held import HeldItem

Json = dict[str, Any]


def gave(number: int, text: str = "", **members: Any) -> Json:
    output = json.dumps({"rows": number, **members}) + text
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": output}


def said(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def told(before: list[Json], now: list[Json], freeze: tuple[str, ...] = ()) -> tuple[str, ...]:
    there, sent = held(before), raws(now)
    index = matching.matched(there, sent, freeze)
    visible = ("_meta", "_seen", "rows")
    return describe(there, sent, index, key=b"k", visible_keys=visible, freeze=freeze).freezable


def held(history: list[Json]) -> list[HeldItem]:
    return [HeldItem(raw, received=False) for raw in raws(history)]


def raws(history: list[Json]) -> list[Raw]:
    return [Raw(json.dumps(item).encode()) for item in history]


BEFORE = [said("go"), gave(0, _meta=1), gave(1, _meta=2, _seen={"metadata": 3}), said("on")]


@pytest.mark.parametrize(
    ("keys", "now"),
    [
        (("_meta",), [BEFORE[0], gave(0), *BEFORE[2:]]),
        (("_meta",), [BEFORE[0], gave(0, _meta=7), *BEFORE[2:], said("more")]),
        (("_meta", "_seen"), [BEFORE[0], gave(0), gave(1, _seen={}), BEFORE[3]]),
        (("_meta", "_seen"), [BEFORE[0], gave(0), gave(1), BEFORE[3]]),
        ((), [BEFORE[0], gave(0, _other=1), *BEFORE[2:]]),
        ((), [BEFORE[0], gave(0), *BEFORE[2:3], said("off")]),
        ((), [BEFORE[0], gave(0), *BEFORE[2:3]]),
        ((), [BEFORE[0], gave(0, " "), *BEFORE[2:]]),
        ((), [BEFORE[0], {**gave(0), "call_id": "call_7"}, *BEFORE[2:]]),
    ],
)
def test_keys_are_named_where_they_are_all_that_differs(keys, now):
    assert keys == told(BEFORE, now)


def test_what_a_policy_freezes_already_is_not_named_again():
    assert ("_seen",) == told(BEFORE, [BEFORE[0], gave(0), gave(1), BEFORE[3]], ("_meta",))


ITEMS = st.one_of(
    st.sampled_from([said(text) for text in "ab"]),
    st.builds(
        gave,
        st.integers(0, 1),
        _meta=st.integers(0, 1),
        _seen=st.sampled_from([0, {"_meta": 1}, {"_meta": 2}]),
    ),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(ITEMS, min_size=1, max_size=3), st.lists(ITEMS, max_size=4))
def test_with_the_keys_frozen_the_prefix_is_proven(before, now):
    keys = told(before, now)
    if keys:
        assert len(before) == matching.matched(held(before), raws(now), keys)
