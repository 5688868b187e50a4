"""Replies and their list."""

import json

import pytest

from app.demo.provider.ids import Ids
from app.demo.provider.replies import (
    Asked,
    Replies,
    Reply,
    function_call,
    message,
    reasoning,
    reply_of,
)

ASKED = Asked({}, (), (), Ids())


def test_each_request_takes_the_next_and_then_the_other_responder():
    replies = Replies(["one"], after=lambda asked: reply_of("after"))
    replies.add("two")
    texts = [replies(ASKED).items[0]["content"][0]["text"] for _ in range(4)]
    assert texts == ["one", "two", "after", "after"]


def test_a_list_that_is_used_up_says_so():
    with pytest.raises(LookupError, match="used up"):
        Replies([])(ASKED)


def test_a_reply_is_a_text_an_item_or_a_list_of_items():
    item = message("x")
    whole = Reply((item,))
    assert [reply_of(r) for r in ("x", item, [item], whole)] == [whole] * 4


def test_arguments_are_written_like_the_provider_does_or_as_given():
    assert function_call("f", {"a": "é"}, "c")["arguments"] == '{"a": "é"}'
    assert function_call("f", "{oops", "c")["arguments"] == "{oops"


def test_reasoning_without_ciphertext_has_no_such_key():
    assert "encrypted_content" not in reasoning()
    assert json.dumps(reasoning("g", ["s"])).count("summary_text") == 1
