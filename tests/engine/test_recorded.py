"""A history recorded after a turn accounts for what the provider holds, or does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine.chain import HeldItem
from engine.recorded import Recorded, accounts_for

USER = {"role": "user", "content": "hi"}
CALLS = [
    {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": name,
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    for name in "ab"
]
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
ANSWER = [THOUGHT, *CALLS]
HELD = [
    HeldItem(Raw(json.dumps(item).encode()), received=item is not USER) for item in (USER, *ANSWER)
]


def recorded(*items: dict, placeholders: tuple[dict, ...] = ()) -> list[Recorded]:
    return [
        Recorded(Raw(json.dumps(item).encode()), placeholder=item in placeholders) for item in items
    ]


def filler(name: str) -> dict:
    return {"type": "function_call_output", "call_id": name, "output": "[pending]"}


def without(item: dict, *keys: str) -> dict:
    return {key: value for key, value in item.items() if key not in keys}


def test_a_history_that_repeats_all_accounts_for_it():
    assert accounts_for(recorded(USER, *ANSWER), HELD)


def test_it_may_spell_the_answer_as_the_converter_does():
    short = [without(item, "id", "status") for item in ANSWER]
    assert accounts_for(recorded(USER, *short), HELD)


def test_what_stands_behind_the_answer_is_the_next_turns():
    later = [filler("a"), {"role": "user", "content": "more"}]
    assert accounts_for(recorded(USER, *ANSWER, *later), HELD)


@pytest.mark.parametrize("missing", range(4))
def test_a_history_that_lacks_an_item_does_not(missing):
    items = [USER, *ANSWER]
    del items[missing]
    assert not accounts_for(recorded(*items), HELD)


@pytest.mark.parametrize(
    "changed",
    [
        [{**USER, "content": "hello"}, *ANSWER],
        [USER, {**THOUGHT, "encrypted_content": "gBBB"}, *CALLS],
        [USER, THOUGHT, {**CALLS[0], "arguments": '{"a":1}'}, CALLS[1]],
        [USER, THOUGHT, CALLS[1], CALLS[0]],
        [USER, *ANSWER[:2], {"role": "user", "content": "in between"}, CALLS[1]],
    ],
)
def test_a_history_that_changes_an_item_does_not(changed):
    assert not accounts_for(recorded(*changed), HELD)


def test_an_empty_history_accounts_for_nothing():
    assert not accounts_for([], HELD)


def test_placeholders_for_calls_of_the_answer_are_passed_over_wherever_they_stand():
    a, b = filler("a"), filler("b")
    assert accounts_for(
        recorded(USER, THOUGHT, CALLS[0], a, CALLS[1], b, placeholders=(a, b)), HELD
    )


def test_an_output_that_is_no_placeholder_is_not_passed_over():
    assert not accounts_for(recorded(USER, THOUGHT, CALLS[0], filler("a"), CALLS[1]), HELD)


def test_a_placeholder_that_was_sent_is_held_and_has_to_be_there():
    filled = filler("a")
    sent = [*HELD, HeldItem(Raw(json.dumps(filled).encode()), received=False)]
    assert accounts_for(recorded(USER, *ANSWER, filled, placeholders=(filled,)), sent)
    assert not accounts_for(recorded(USER, *ANSWER), sent)


items = st.lists(st.sampled_from([USER, THOUGHT, *CALLS, filler("a")]), max_size=6)


@given(items, items)
def test_it_agrees_with_taking_out_placeholders_by_hand(record, held):
    holds_fillers = filler("a") in held
    expected = [item for item in record if holds_fillers or item != filler("a")]
    entries = recorded(*record, placeholders=() if holds_fillers else (filler("a"),))
    known = [HeldItem(Raw(json.dumps(item).encode()), received=True) for item in held]
    assert (expected[: len(held)] == held) == accounts_for(entries, known)
