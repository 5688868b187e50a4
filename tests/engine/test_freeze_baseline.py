"""What is held stays the seen output, and every spelling is measured against it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import items
from engine.chain import Anchor, stage
from engine.growing import grown
from engine.held import HeldItem
from engine.matching import frozen, matched
from engine.request import own_copy, split
from engine.spelling import Known
from tests.support.frozen_oracle import same_under

KEYS = ("_meta",)
Json = dict[str, Any]


def gave(number: Any, meta: Any = None, **more: Any) -> Json:
    members = {"rows": number} if meta is None else {"rows": number, "_meta": meta}
    return {
        "type": "function_call_output",
        "call_id": "c",
        "output": json.dumps(members),
        **more,
    }


def raw(item: Any) -> Raw:
    return Raw(json.dumps(item).encode())


def test_the_echo_is_what_the_client_says_and_the_seen_one_is_held():
    seen = HeldItem(raw(gave(1, "a")), received=False)
    bare = seen.spelled(raw(gave(1)))
    assert (raw(gave(1, "a")), raw(gave(1)), True) == (bare.held, bare.echo, bare.frozen)
    other = bare.spelled(raw(gave(1, "b")))
    assert (raw(gave(1, "a")), raw(gave(1, "b")), True) == (other.held, other.echo, other.frozen)
    back = other.spelled(raw(gave(1, "a")))
    assert (raw(gave(1, "a")), raw(gave(1, "a")), False) == (back.held, back.echo, back.frozen)


def test_a_spelling_that_would_be_one_anyway_is_not_frozen():
    seen = HeldItem(raw(gave(1, "a")), received=False)
    for item in (gave(1, "a", metadata={"x": 1}), gave(1, "a", id="fco_1")):
        assert not seen.freezes(raw(item))
        assert not seen.spelled(raw(item)).frozen
    called = HeldItem(raw({"type": "function_call", "arguments": "{}"}), received=True)
    assert not called.freezes(raw({"type": "function_call", "arguments": "{ }"}))


def test_items_that_equal_the_seen_one_for_different_reasons_do_not_lead_from_one_to_another():
    """Without the id it is two items; with other metadata it is the same one still."""
    seen = HeldItem(raw(gave(1, "a", id="one")), received=False)
    step = seen.spelled(raw(gave(1, "b")))
    assert step.difference(raw(gave(1, "c", id="one")), KEYS) is None
    assert ("id",) == step.difference(raw(gave(1, "b", id="two")), KEYS)
    assert ("output",) == step.difference(raw(gave(2, "b")), KEYS)


@pytest.mark.parametrize("freeze", [(), KEYS])
def test_a_turn_counts_what_is_frozen_where_a_policy_is(freeze):
    first = grown((), [raw(gave(1, "a"))], [])
    anchor = Anchor("an", "r", "s", {}, first, b"", 1, 0.0, 0)
    assert len(freeze) == stage([raw(gave(1)), raw("x")], {}, anchor, freeze).frozen
    assert 0 == stage([raw(gave(1)), raw("x")], {}, None, freeze).frozen


OUTPUTS = st.builds(gave, st.integers(0, 1), st.sampled_from([None, 1, [2], "é"]))
ITEMS = st.one_of(OUTPUTS, OUTPUTS, st.just({"type": "message", "role": "user", "content": "hi"}))
STYLES = [{}, {"separators": (",", ":")}, {"indent": 1}]


def anew(draw: st.DrawFn, item: Json) -> Json:
    """Most often the same item, now and then with other metadata."""
    if item["type"] != "function_call_output" or draw(st.integers(0, 2)) > 0:
        return item
    spelled = gave(json.loads(item["output"])["rows"], draw(st.sampled_from([None, 1, [2], "é"])))
    return {**spelled, "metadata": {}} if draw(st.integers(0, 3)) == 0 else spelled


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_baseline_is_as_a_plain_list_of_what_was_seen(data: st.DataObject) -> None:
    """Whether the bodies are read in full, on from one another, or as a list of items."""
    history = data.draw(st.lists(ITEMS, min_size=1, max_size=4))
    seen: list[Json] = []
    baseline: Any = ()
    known: list[Known] = []
    for _ in range(data.draw(st.integers(2, 4))):
        style = data.draw(st.sampled_from(STYLES))
        request = split(json.dumps({"model": "m", "input": history}, **style).encode(), known)
        now: Any = request.items if data.draw(st.integers(0, 3)) else list(request.items)
        assert len(seen) == matched(baseline, now, KEYS)
        differing = sum(_differs(*pair) for pair in zip(seen, history, strict=False))
        assert differing == frozen(baseline, now)
        answer = gave(7, "made", id="fco_7")
        former, baseline = baseline, grown(baseline, now, [raw(answer)])
        if former != () and data.draw(st.booleans()):
            former.give_way(baseline)
        seen = [*seen, *history[len(seen) :], answer]
        assert seen == [json.loads(bytes(item.held)) for item in baseline]
        assert [*history, answer] == [json.loads(bytes(item.echo)) for item in baseline]
        if baseline.spelling is not None:
            known = [Known(baseline.spelling, own_copy(request.fields))]
        history = [anew(data.draw, item) for item in [*history, answer]]
        history.append(data.draw(ITEMS))
        wrong = [*history[:-1]]
        wrong[0] = {**wrong[0], "call_id": "another"}
        assert 0 == matched(baseline, [raw(item) for item in wrong], KEYS)
    for item in baseline:
        other = raw(
            gave(data.draw(st.integers(0, 7)), data.draw(st.sampled_from([None, 1, "made"])))
        )
        expected = same_under(KEYS, text(item.held), text(other), made=item.received)
        assert expected == (item.difference(other, KEYS) is None)


def text(one: Raw) -> str:
    return bytes(one).decode()


def _differs(seen: Json, now: Json) -> bool:
    one, other = (items.parse(json.dumps(side)) for side in (seen, now))
    return items.difference(one, other, model_made=seen.get("id") == "fco_7") is not None
