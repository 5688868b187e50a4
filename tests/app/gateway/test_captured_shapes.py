"""The shapes of what clients were seen to send: small, of nobody's words, and made by rule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.captured_turns import TURNS
from tests.support.captures import SHAPES, Shortener

Json = dict[str, Any]


def test_every_shape_has_its_table() -> None:
    assert sorted(TURNS) == sorted(path.stem for path in SHAPES.glob("*.json"))


def test_the_shapes_are_small_and_hold_no_text_of_anyone() -> None:
    files = list(SHAPES.iterdir())
    assert sum(path.stat().st_size for path in files) < 200_000
    for path in files:
        text = path.read_text()
        found = [word for word in ("<text", "Bearer", "sk-", "/home", "127.0.0.1") if word in text]
        assert [] == found, path.name


def test_a_text_has_one_token_and_two_texts_have_two() -> None:
    short = Shortener()
    given = [{"text": "a"}, {"text": "b"}, {"text": "a"}, {"text": ""}]
    assert ["text 1", "text 2", "text 1", ""] == [one["text"] for one in short.short(given)]


def test_a_text_that_was_lost_is_taken_for_another_only_at_the_same_place() -> None:
    short = Shortener()
    lost = [{"type": "message", "id": name, "content": "<text 90 chars>"} for name in "aba"]
    one, other, again = (item["content"] for item in short.short(lost))
    assert one == again != other


def test_a_ciphertext_that_was_lost_is_that_of_its_thought() -> None:
    short = Shortener()
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "<text 90 chars>"}
    short.answers([thought])
    bare = {key: value for key, value in thought.items() if key != "id"}
    one, other = (short.short(item)["encrypted_content"] for item in (thought, bare))
    assert one == other == "cipher 1"
    short.answers([{**thought, "id": "rs_2"}])
    assert short.short({**thought, "id": "rs_2"})["encrypted_content"] == "cipher 2"
    with pytest.raises(ValueError, match="unpack"):
        short.short(bare)  # whose of the two?


def test_spaces_in_arguments_are_not_shortened() -> None:
    given = {"arguments": '{"command": "ls"}'}
    assert given == Shortener().short(given)
