import json

import pytest

from app.alerts.fitting import MOST_BYTES, Room, fit, number


def test_what_is_small_stays_whole():
    assert json.loads(fit(lambda room: {"text": room.line("short")})) == {"text": "short"}


def test_texts_get_less_room_until_the_body_is_small_enough():
    body = fit(lambda room: {"texts": [room.line("😀" * 1_000)] * 10})
    assert len(body) < MOST_BYTES
    texts = json.loads(body)["texts"]
    assert {len(text) for text in texts} == {400}
    assert texts[0].endswith(" … (cut)")


def test_a_body_is_smaller_than_the_limit_and_not_as_large():
    frame = len('{"text":""}')
    assert len(fit(lambda _room: {"text": "x" * (MOST_BYTES - 1 - frame)})) == MOST_BYTES - 1
    with pytest.raises(AssertionError):
        fit(lambda _room: {"text": "x" * (MOST_BYTES - frame)})


def test_a_text_that_no_room_bounds_is_a_bug_and_not_a_large_body():
    with pytest.raises(AssertionError, match="does not bound"):
        fit(lambda _room: {"text": "x" * MOST_BYTES})


def test_a_link_is_whole_or_absent():
    room = Room(text=10, link=30)
    assert room.url("https://wiki.example/cache") == "https://wiki.example/cache"
    assert room.url("https://wiki.example/" + "x" * 30) is None
    assert room.url("") is None


def test_each_line_is_cut_by_itself():
    assert Room(text=5, link=0).lines(["123456789", "a\nb"]) == "1234…\na\ufffdb"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), None])
def test_what_json_cannot_say_is_unknown(value):
    assert number(value) is None


def test_a_number_stays_itself():
    assert (number(0.0), number(0.25), number(120_000)) == (0.0, 0.25, 120_000)


def test_a_body_with_nan_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        fit(lambda _room: {"value": float("nan")})
