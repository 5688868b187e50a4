"""Two different ids are two items; one that is missing on one side says nothing (DESIGN 4.3)."""

import pytest

from tests.support.items import CALL, MESSAGE, REASONING, USER, between, same, without


@pytest.mark.parametrize("item", [MESSAGE, REASONING, CALL])
def test_two_different_ids_are_two_items(item):
    assert between(item, {**item, "id": "other"}) == ("id",)


@pytest.mark.parametrize("item", [MESSAGE, REASONING, CALL])
@pytest.mark.parametrize("absent", [{}, {"id": None}, {"id": ""}])
def test_an_id_is_ignored_where_one_side_has_none(item, absent):
    assert same(item, {**without(item, "id"), **absent})


def test_the_rule_of_ids_holds_for_items_of_the_client_too():
    assert same({**USER, "id": "msg_u"}, USER, model_made=False)
    assert same({**USER, "id": "msg_u"}, {**USER, "id": "msg_u"}, model_made=False)
    assert between({**USER, "id": "a"}, {**USER, "id": "b"}, model_made=False) == ("id",)


def test_an_equal_id_does_not_excuse_another_text():
    other = {**MESSAGE, "content": [{"type": "output_text", "text": "y"}]}
    assert between(MESSAGE, other) == ("content", 0, "text")


@pytest.mark.parametrize("model_made", [True, False])
def test_different_ids_are_told_before_all_else(model_made):
    one = {"type": "function_call_output", "call_id": "c", "output": "x", "id": "a"}
    other = {**one, "output": "y", "id": "b"}
    assert between(one, other, model_made=model_made) == ("id",)


def test_different_ids_of_parts_are_a_difference_too():
    one = {**MESSAGE, "content": [{"type": "output_text", "text": "x", "id": "a"}]}
    two = {**MESSAGE, "content": [{"type": "output_text", "text": "x", "id": "b"}]}
    assert between(one, two) == ("content", 0, "id")


def test_a_reference_is_its_id():
    held = {"type": "item_reference", "id": "msg_1"}
    assert same(held, dict(held), model_made=False)
    for made in (True, False):
        assert between(held, {"type": "item_reference"}, model_made=made) == ("id",)
