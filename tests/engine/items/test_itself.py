"""Which items of the model are the same as themselves, found out without comparing them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import items

TYPES = ["reasoning", "item_reference", "message", "function_call", None, 5]
TEXTS = st.sampled_from([None, "", "a", [], {}, [{"text": ""}], [{"text": "a"}], ["a"]])
ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={"id": st.sampled_from([None, "", "x_1"]), "encrypted_content": TEXTS,
              "summary": TEXTS, "content": TEXTS, "call_id": TEXTS},
)  # fmt: skip


def without_id(value):
    return {name: part for name, part in value.items() if name != "id"}


def compared(value):
    """What a comparison finds, with the id and without it."""
    pairs = ((value, dict(value)), (value, without_id(value)))
    return tuple(items.difference(one, other, model_made=True) is None for one, other in pairs)


@given(ITEMS)
def test_what_equals_itself_is_what_a_comparison_finds_equal(value):
    assert compared(value) == items.equals_itself(value)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ((True, False), {"type": "reasoning", "id": "rs_1", "summary": []}),
        ((False, False), {"type": "reasoning", "id": "", "encrypted_content": ""}),
        ((True, True), {"type": "reasoning", "id": "rs_1", "encrypted_content": "E"}),
        ((True, False), {"type": "item_reference", "id": "rs_1"}),
        ((True, True), {"type": "item_reference", "id": None}),
        ((True, True), {"type": "message", "id": "msg_1"}),
    ],
)
def test_only_what_its_id_alone_tells_apart_is_another_without_it(expected, value):
    assert expected == items.equals_itself(value) == compared(value)
