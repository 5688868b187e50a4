"""What is held after a turn: as if each item were kept."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import items as rules
from engine.baseline import Baseline
from engine.growing import grown
from engine.held import HeldItem, Odd
from engine.matching import matched
from engine.request import own_copy, split
from engine.spelling import Items, Known
from tests.support.baselines import answered_twice, request
from tests.support.transcripts import STYLES, body, messages, raw, said, written


class Plain:
    """The rule, item by item: what is held stays, each proven spelling is the client's latest."""

    def __init__(self, held=()):
        self.held = list(held)

    def matched(self, sent):
        for index, (item, now) in enumerate(zip(self.held, sent, strict=False)):
            if item.difference(raw(now)) is not None:
                return index
        return min(len(self.held), len(sent))

    def grown(self, sent, outputs):
        known = [HeldItem(item.held, received=item.received, echo=raw(now))
                 for item, now in zip(self.held, sent, strict=False)]  # fmt: skip
        new = [HeldItem(raw(now), received=False) for now in sent[len(known) :]]
        return Plain([*known, *new, *(HeldItem(raw(out), received=True) for out in outputs)])


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_a_chain_of_turns_holds_what_it_would_hold_item_by_item(data):
    plain, held, known = Plain(), (), []
    values = []
    style = data.draw(STYLES)
    former = []
    for _ in range(data.draw(st.integers(1, 4))):
        values += data.draw(st.lists(messages(), max_size=3))
        same = data.draw(st.booleans())
        echoes = [bytes(item.echo).decode() for item in plain.held]
        sent = [
            echoes[i] if same and i < len(echoes) and json.loads(echoes[i]) == value
            else data.draw(written(value))
            for i, value in enumerate(values)
        ]  # fmt: skip
        style = style if data.draw(st.integers(0, 3)) else data.draw(STYLES)
        named = isinstance(held, Baseline) and data.draw(st.integers(0, 4)) == 0
        if named:
            sent = [*echoes, *sent[len(echoes) :]]
            now = Items(tuple(raw(text) for text in sent[len(echoes) :]), base=held)
        else:
            request = split(body(sent, style), known)
            now = request.items
        assert [bytes(item).decode() for item in now] == sent
        assert matched(held, now) == plain.matched(sent)
        for other, count in former:
            assert matched(other, now) == Plain(plain.held[:count]).matched(sent)
        if plain.matched(sent) < len(plain.held):
            return
        outputs = [json.dumps(one) for one in data.draw(st.lists(messages(), max_size=2))]
        plain, before = plain.grown(sent, outputs), held
        held = grown(held, now, [raw(out) for out in outputs])
        if isinstance(before, Baseline):
            before.give_way(held)
            former.append((before, len(before)))
        values += [json.loads(out) for out in outputs]
        assert [(bytes(i.echo), i.received) for i in held] == [
            (bytes(i.echo), i.received) for i in plain.held
        ]
        assert all(
            rules.same_json(rules.parse(one.held), rules.parse(other.held))
            for one, other in zip(held, plain.held, strict=True)
        )
        if not named:
            known = (
                [] if held.spelling is None else [Known(held.spelling, own_copy(request.fields))]
            )
        assert held.spelling is None or held.size >= len(held.spelling.body)


def test_what_is_held_is_one_body_and_the_answer():
    asked = request([said("a" * 1000)])
    held = grown((), asked.items, [raw(said("b" * 100))])
    assert len(asked.body) + 150 < held.size < len(asked.body) + 3_000
    assert held.spelling.body is asked.body


def test_a_user_item_that_equals_itself_in_other_bytes_is_kept_once():
    first = grown((), split(b'{"input":[{"a":1,"b":2}]}').items, [])
    later = grown(first, split(b'{"input":[{"b":2,"a":1}]}').items, [])
    assert (later.odd, bytes(later[0].held)) == ((), b'{"b":2,"a":1}')


def test_an_input_that_is_a_string_is_kept_as_its_item():
    held = grown((), split(b'{"input":"hi"}').items, [raw(said("b"))])
    assert (held.spelling, len(held), held.size > 0) == (None, 2, True)
    assert bytes(held[0].held) == b'{"role":"user","content":"hi"}'


def known_of(asked, held):
    return [Known(held.spelling, own_copy(asked.fields))]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_is_kept_beside_an_echo_is_kept_anew_from_the_first_other_item_on(at):
    asked, held = answered_twice()
    ids = [("b", "m1"), ("c", "m2")]
    spelled = [
        said(text) if at > 1 + i else said(text, id=id_) for i, (text, id_) in enumerate(ids)
    ]
    again = request(["a", *spelled, "d", "e"], known_of(asked, held)).items
    later = grown(held, again, [])
    assert [(1, Odd(None if at < 2 else raw(said("b", id="m1")), received=True)),
            (2, Odd(None if at < 3 else raw(said("c", id="m2")), received=True))] == [*later.odd]  # fmt: skip


def test_what_a_body_repeats_is_not_looked_at():
    asked, held = answered_twice()
    again = request(["a", said("b"), said("c"), "d", "e"], known_of(asked, held)).items
    later = grown(held, again, [])
    assert (len(later), later.odd, held._made) == (5, held.odd, {})


def test_what_a_digest_does_not_say_is_kept_once():
    held = answered_twice()[1]
    assert held.condense(b"k")
    later = grown(held, request(["a", said("b"), said("c", id="m2"), "d", "e"]).items, [])
    assert later.odd == tuple((n, Odd(None, received=True, sealed=True)) for n in (1, 2))
