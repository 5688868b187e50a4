"""What a reasoning item is known by (DESIGN 4.3)."""

import copy

import pytest

from tests.support.items import REASONING, between, same, without


@pytest.mark.parametrize("empty", [{}, {"content": None}, {"content": []}])
def test_empty_content_of_reasoning_is_no_content(empty):
    assert same({**REASONING, "content": []}, {**REASONING, **empty})
    assert same({**REASONING, "content": []}, {**without(REASONING, "id"), **empty})
    assert same(without(REASONING, "summary"), REASONING)


def test_another_ciphertext_is_another_thought():
    assert between(REASONING, {**REASONING, "encrypted_content": "E2"}) == ("encrypted_content",)


def test_reasoning_is_known_by_its_id_alone():
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert same(bare, dict(bare))


def test_reasoning_is_known_by_its_text():
    by_summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]}
    by_content = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "t"}]}
    assert same({**by_summary, "id": "rs_1"}, by_summary)
    assert same(by_content, dict(by_content))
    assert not same(by_summary, {**by_summary, "summary": [{"type": "summary_text", "text": "u"}]})


@pytest.mark.parametrize(
    "nothing",
    [
        {"type": "reasoning"},
        {"type": "reasoning", "summary": []},
        {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None},
        {"type": "reasoning", "encrypted_content": ""},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": ""}]},
        {"type": "reasoning", "summary": ["text"]},
    ],
)
def test_nothing_matches_nothing(nothing):
    assert between(nothing, dict(nothing)) == ("encrypted_content",)
    assert between({**nothing, "id": "rs_1"}, nothing) == ("encrypted_content",)


@pytest.mark.parametrize("summary", [5, True, "text", {"a": 1}])
def test_reasoning_of_a_strange_shape_is_not_identified_and_raises_nothing(summary):
    strange = {"type": "reasoning", "summary": summary}
    assert not same(strange, copy.deepcopy(strange))
