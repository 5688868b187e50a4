"""Which anchor a request was meant to extend."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import echoes
from engine.chain import Anchor, HeldItem, known, stage
from engine.echoes import most_echoed
from engine.growing import grown
from engine.request import own_copy, split
from engine.spelling import Items

KEY = b"k"


def said(text, **more):
    return {"type": "message", "role": "assistant", "content": text, **more}


def user(text):
    return {"role": "user", "content": text}


def request(values, anchors=()):
    return split(json.dumps({"model": "m", "input": values}).encode(), known(anchors))


def turn(values, outputs, extended=None, anchors=()):
    asked = request(values, anchors)
    staged = stage(asked.items, own_copy(asked.fields), extended)
    held, digest = staged.baseline([Raw(json.dumps(one).encode()) for one in outputs], KEY)
    anchor = Anchor("a", "r", "s", staged.fields, held, digest, 1, 0.0, held.size)
    if extended is not None:
        extended.give_way(anchor)
    return anchor


def test_the_anchor_that_is_echoed_most_is_the_one_that_was_meant():
    one, two = turn([user("a")], [said("b")]), turn([user("a"), said("x")], [said("y")])
    asked = request([user("a"), said("x"), said("y"), said("b")])
    assert most_echoed([one, two], asked.items) is two
    assert most_echoed([two, one], asked.items) is two
    assert most_echoed([one, two], request([user("a"), said("b")]).items) is one
    assert most_echoed([one, two], request([user("a"), said("z")]).items) is None


def test_of_equals_the_last_one_is_meant():
    one, two = turn([user("a")], [said("b")]), turn([user("c")], [said("b")])
    assert most_echoed([one, two], request([said("b")]).items) is two


def test_one_item_is_an_echo_of_one_item():
    twice = turn([user("a"), said("b"), user("c")], [said("b")])
    later = turn([user("d")], [said("b")])
    assert most_echoed([twice, later], request([said("b")]).items) is later
    assert most_echoed([twice, later], request([said("b"), said("b")]).items) is twice


@pytest.mark.parametrize(
    ("held", "sent", "pairs"),
    [
        (["m"], ["m"], 1),
        (["m"], ["n"], 0),
        (["m"], [None], 1),
        ([None], ["m"], 1),
        ([None, None], [None], 1),
        (["m", None], ["m"], 1),
        (["m", "n"], [None, "m"], 2),
        ([None, "n"], ["m", None], 2),
        ([None, "n"], [None, "m"], 2),
        (["m", "m"], ["m", "m"], 2),
        (["m", None], [None], 1),
    ],
)
def test_items_of_equal_content_pair_off_by_their_ids(held, sent, pairs):
    assert pairs == echoes._pairs(held, sent)


def test_anchors_may_come_one_by_one():
    one, two = turn([user("a")], [said("b")]), turn([user("c")], [said("d")])
    assert most_echoed(iter([one, two]), request([said("b")]).items) is one
    assert most_echoed([one], list(request([said("b")]).items)) is one


def test_only_what_the_model_made_is_an_echo():
    future, result = {"type": "x", "a": 1}, {"type": "function_call_output", "output": "o"}
    sent = turn([user("a"), future, result], [])
    assert most_echoed([sent], request([user("a"), future, result, user("b")]).items) is None
    received = turn([user("a")], [result])
    assert most_echoed([received], request([user("z"), result]).items) is received
    assert most_echoed([received], request([user("z"), {**result, "output": "p"}]).items) is None


def test_repeating_the_users_items_alone_is_no_echo():
    one = turn([user("a")], [said("b")])
    assert most_echoed([one], request([user("a"), user("c")], [one]).items) is None
    assert most_echoed([one], request([user("a"), said("b", status="x")], [one]).items) is one
    later = turn([user("a"), said("b"), user("c")], [said("d")])
    asked = request([user("a"), said("b"), user("C")], [later])
    assert most_echoed([later], asked.items) is later
    assert most_echoed([later], request([user("A"), said("B")], [later]).items) is None


def test_of_what_only_digests_are_kept_an_echo_is_known_by_its_bytes():
    one = turn([user("a"), said("b"), user("c")], [said("d")])
    assert one.items.condense(KEY)
    other = turn([user("e")], [said("f")])
    for echo in ("b", "d"):
        asked = request([user("z"), said(echo)])
        assert most_echoed([one, other], asked.items) is one
    asked = request([user("z"), said("b"), said("d"), said("f")])
    assert most_echoed([one, other], asked.items) is one
    assert most_echoed([one], request([user("a"), said("q")]).items) is None


def test_what_looks_like_the_users_is_no_echo_whoever_made_it():
    first = turn([user("a")], [user("q")])
    later = turn([user("a"), user("q"), user("c")], [said("d")], first, [first])
    asked = request([user("a"), user("q"), user("C")], [first, later])
    assert most_echoed([first, later], asked.items) is None


@pytest.mark.parametrize("asked", [user("q"), user("q") | {"type": "message"}])
def test_it_is_none_where_only_digests_are_kept_either(asked):
    first = turn([user("a")], [asked])
    later = turn([user("a"), asked, user("c")], [said("d")], first, [first])
    assert later.items.condense(KEY)
    assert most_echoed([later], request([user("a"), asked, user("C")]).items) is None
    assert most_echoed([first], request([user("A"), asked]).items) is None


def test_to_name_one_baseline_echoes_nothing_of_another():
    """Neither of them stands in a body: that is no body in common."""
    named = turn([user("x")], [said("y")])
    other = turn([user("a")], [said("b")])
    other.items = grown((), split(b'{"input":"a"}').items, [Raw(json.dumps(said("b")).encode())])
    asked = Items((Raw(b'{"role":"user","content":"c"}'),), base=named.items)
    assert most_echoed([other], asked) is None
    assert most_echoed([other, named], asked) is named


def test_an_item_that_cannot_be_read_is_no_echo_and_hides_none():
    one = turn([user("a")], [said("b")])
    body = b'{"input":[{"type":"reasoning","a":1,"a":2},%s]}' % json.dumps(said("b")).encode()
    assert most_echoed([one], split(body).items) is one
    deep = Raw(b"[" * 5000 + b"]" * 5000)
    assert most_echoed([one], [deep, deep, Raw(json.dumps(said("b")).encode())]) is one
    odd = turn([user("a")], [])
    odd.items = (HeldItem(Raw(b'{"a":1,"a":2}'), received=True),)
    assert most_echoed([odd, one], split(body).items) is one
    assert most_echoed([odd], split(body).items) is None


def test_an_anchor_that_was_extended_is_no_rival_of_the_one_after_it(monkeypatch):
    first = turn([user("a")], [said("b")])
    later = turn([user("a"), said("b"), user("c")], [said("d")], first, [first])
    asked = request([user("a"), said("b"), user("C")], [first, later])
    monkeypatch.setattr(echoes, "_counted", None)
    assert most_echoed([first, later], asked.items) is later


def test_it_is_one_where_the_later_was_forgotten():
    first = turn([user("a")], [said("b")])
    turn([user("a"), said("b"), user("c")], [said("d")], first, [first])
    other = turn([user("e")], [said("f")])
    asked = request([user("a"), said("b"), user("C")], [other])
    assert most_echoed([first, other], asked.items) is first


MESSAGES = st.sampled_from([user("a"), user("b"), said("a"), said("b"), said("a", id="m"),
                            said("a", id="n"), {"type": "x", "a": 1}, 1])  # fmt: skip
LISTS = st.lists(MESSAGES, max_size=4)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_the_short_way_finds_what_counting_finds(data):
    anchors, tips = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        extended, before = data.draw(st.sampled_from([*tips, (None, [])]))
        values = [*before, *data.draw(LISTS)]
        outputs = data.draw(st.lists(MESSAGES.filter(lambda one: one != 1), max_size=2))
        anchors.append(turn(values, outputs, extended, anchors))
        tips = [tip for tip in tips if tip[0] is not extended]
        tips.append((anchors[-1], [*values, *outputs]))
    _, values = data.draw(st.sampled_from(tips))
    values = list(values)
    if values and data.draw(st.booleans()):
        values[data.draw(st.integers(0, len(values) - 1))] = data.draw(MESSAGES)
    asked = request([*values, *data.draw(LISTS)], anchors)
    assert most_echoed(anchors, asked.items) is echoes._counted(anchors, asked.items)


def test_where_nothing_is_held_nothing_is_read(monkeypatch):
    monkeypatch.setattr(echoes, "_model_made", None)
    assert most_echoed([], request([said("b")]).items) is None


def test_an_echo_behind_an_edited_item_is_found_without_counting(monkeypatch):
    anchor = turn([user("a"), said("b"), user("c")], [said("d")])
    monkeypatch.setattr(echoes, "_counted", None)
    assert most_echoed([anchor], request([user("A"), said("b"), user("c")]).items) is anchor


def test_few_items_are_looked_at_before_all_are_counted(monkeypatch):
    monkeypatch.setattr(echoes, "_LOOKED_AT", 2)
    one, two = turn([user("a"), said("b")], []), turn([user("a"), user("b"), said("c")], [])
    monkeypatch.setattr(echoes, "_counted", lambda *_: "counted")
    assert most_echoed([one], request([user("a"), said("b"), user("c")]).items) is one
    asked = request([user("a"), user("b"), said("c")])
    assert most_echoed([two], asked.items) == "counted"


@pytest.mark.parametrize("count", [6, 7])
def test_the_middle_is_read_of_all_but_very_long_transcripts(monkeypatch, count):
    monkeypatch.setattr(echoes, "_LONG", 6)
    monkeypatch.setattr(echoes, "_AT_AN_END", 2)
    users = [user(str(n)) for n in range(count - 1)]
    found = []
    for place in range(count):
        held = turn([*users[:place], said("b"), *users[place:]], [])
        found.append(most_echoed([held], request([said("b")]).items) is held)
    assert found == [True] * 6 if count == 6 else [True, True, False, False, False, True, True]


def test_of_what_came_after_the_digests_the_ends_are_read(monkeypatch):
    monkeypatch.setattr(echoes, "_LONG", 6)
    monkeypatch.setattr(echoes, "_AT_AN_END", 2)
    held = turn([user("a")], [said(str(n)) for n in range(7)])
    assert held.items.condense(KEY)
    found = [n for n in range(7) if most_echoed([held], request([said(str(n))]).items) is held]
    assert [0, 1, 5, 6] == found


def test_of_very_long_transcripts_the_ends_are_read(monkeypatch):
    monkeypatch.setattr(echoes, "_LONG", 8)
    monkeypatch.setattr(echoes, "_AT_AN_END", 2)
    history = [said(str(n)) for n in range(12)]
    one, two = turn(history, [said("b")]), turn(history, [said("c")])
    read = []
    key = echoes.items.echo_key
    monkeypatch.setattr(echoes.items, "echo_key", lambda value: (read.append(1), key(value))[1])
    asked = request([user("edited"), *history[1:], said("b")]).items
    assert most_echoed([one, two], asked) is one
    assert len(read) <= 3 * 4
