"""The events of one output item, and the response around them."""

from app.demo.provider.events import CHUNK, item_events, response_object
from app.demo.provider.replies import function_call, message, reasoning, unknown_item


def types(value):
    return [event["type"].removeprefix("response.") for _, event in item_events(value, 0)]


def test_a_message():
    assert types(message("hi")) == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]


def test_reasoning_with_a_summary_and_without():
    assert types(reasoning("g", ["s"])) == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert types(reasoning("g")) == ["output_item.added", "output_item.done"]


def test_reasoning_in_the_open():
    content = [{"type": "reasoning_text", "text": "hm"}]
    assert "reasoning_text.delta" in types(reasoning(content=content))


def test_a_function_call():
    assert types(function_call("f", {}, "c")) == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]


def test_an_unknown_item_is_announced_and_done():
    assert types(unknown_item()) == ["output_item.added", "output_item.done"]


def test_long_text_comes_in_pieces_that_cost_their_tokens():
    deltas = [(w, e) for w, e in item_events(message("é" * 100), 3) if "delta" in e]
    assert len(deltas) == -(-100 // CHUNK)
    assert sum(weight for weight, _ in deltas) == 50
    assert all(event["output_index"] == 3 for _, event in deltas)


def test_the_ciphertext_is_not_announced():
    _, added = next(item_events(reasoning("secret"), 0))
    assert "encrypted_content" not in added["item"]


def test_a_response_has_defaults_for_what_was_not_asked():
    response = response_object(
        {"model": "m"}, response_id="r", created_at=1.9, status="completed", output=[], usage=None
    )
    assert response["created_at"] == 1
    assert (response["store"], response["tools"], response["tool_choice"]) == (True, [], "auto")
    assert response["text"] == {"format": {"type": "text"}}
