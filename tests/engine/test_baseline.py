"""What the provider holds, kept as one body and what differs from it: as if each item were kept."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import items as rules
from engine.baseline import Baseline, Behind, HeldItem, digested, grown, matched
from engine.held import Odd
from engine.request import own_copy, split
from engine.spelling import Items, Known
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


def request(values, known=(), **fields):
    return split(json.dumps({"model": "m", "input": values, **fields}).encode(), known)


def test_what_is_held_is_one_body_and_the_answer():
    asked = request([said("a" * 1000)])
    held = grown((), asked.items, [raw(said("b" * 100))])
    assert len(asked.body) + 150 < held.size < len(asked.body) + 3_000
    assert held.spelling.body is asked.body


def test_a_baseline_that_was_extended_is_looked_up_in_the_one_after_it():
    first = grown((), request([said("a")]).items, [raw(said("b"))])
    later = grown(first, request([said("a"), said("b"), said("c")]).items, [])
    first.give_way(later)
    assert (first.size, first.spelling, len(first)) == (0, None, 2)
    assert [bytes(item.held) for item in first] == [bytes(raw(said(t))) for t in "ab"]
    assert (first[1].received, first[-1].echo) == (True, raw(said("b")))
    assert matched(first, [raw(said("a")), raw(said("X"))]) == 1
    last = grown(later, request([said(t) for t in "abcd"]).items, [])
    later.give_way(last)
    assert [bytes(item.held) for item in first] == [bytes(raw(said(t))) for t in "ab"]


def test_a_baseline_gives_way_to_none_that_did_not_grow_from_it():
    first = grown((), request([said("a")]).items, [])
    first.give_way(grown((), request([said("x"), said("y")]).items, []))
    assert bytes(first[0].held) == bytes(raw(said("a")))
    assert first.size > 0


@pytest.mark.parametrize("at", [2, -3])
def test_a_baseline_has_no_item_beyond_its_ends(at):
    held = grown((), request([said("a")]).items, [raw(said("b"))])
    with pytest.raises(IndexError):
        held[at]


def test_to_name_one_baseline_proves_nothing_of_another():
    named, other = (grown((), request([said(text)]).items, []) for text in "ab")
    now = Items((raw(said("c")),), base=named)
    assert (matched(named, now), matched(other, now)) == (1, 0)


def test_what_the_provider_holds_is_kept_beside_an_echo_that_says_less():
    first = grown((), request([said("a")]).items, [raw(said("b", id="m1"))])
    later = grown(first, request([said("a"), said("b")]).items, [])
    assert matched(later, [raw(said("a")), raw(said("b", id="m2"))]) == 1
    assert matched(later, [raw(said("a")), raw(said("b", id="m1"))]) == 2


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


def answered_twice():
    """A client that repeats two answers without their ids, and what is held then."""
    first = grown((), request(["a"]).items, [raw(said("b", id="m1")), raw(said("c", id="m2"))])
    asked = request(["a", said("b"), said("c"), "d"])
    return asked, grown(first, asked.items, [])


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


def test_what_is_spelled_as_before_is_not_looked_at():
    asked, held = answered_twice()
    assert matched(held, [*asked.items, raw("e")]) == len(held) == 4
    assert held._made == {}
    assert matched(held, [*asked.items[:3], raw("e")]) == 3
    assert [*held._made] == [3]


def test_what_a_digest_does_not_say_is_kept_once():
    held = answered_twice()[1]
    assert held.condense(b"k")
    later = grown(held, request(["a", said("b"), said("c", id="m2"), "d", "e"]).items, [])
    assert later.odd == tuple((n, Odd(None, received=True, sealed=True)) for n in (1, 2))


def test_of_nothing_no_digest_is_kept():
    first = grown((), request([]).items, [])
    later = grown(first, request(["a"]).items, [])
    first.give_way(later)
    assert later.condense(b"k")
    assert (digested(first), first.told()()) == (None, [])
    assert (len(digested(later)), later.told()) == (1, None)


def test_items_behind_one_are_those_of_the_rest_of_the_list():
    items = split(body(['{"a":1}', '{"a":2}', "3", "4"], (",", "", ""))).items
    held = Baseline(items.spelling, (), ())
    for one in (held, list(held)):
        behind = Behind(one, 1)
        assert [one[1], one[2], one[3]] == list(behind)
        assert [one[1], one[3]] == list(behind[::2])
        assert ([one[3]], one[3]) == (list(behind[-1:]), behind[-1])
        assert [raw('{"a":2}'), raw("3"), raw("4")] == behind.echoes()


def test_no_spelling_is_known_behind_an_item_where_only_digests_are_kept():
    items = split(body(["1", "2"], (",", "", ""))).items
    held = Baseline(items.spelling, (), (HeldItem(raw("3"), received=True),))
    held.condense(b"key")
    assert Behind(held, 1).echoes() is None
    assert Behind(list(held), 1).echoes() is None
    assert [raw("3")] == Behind(held, 2).echoes() == Behind(list(held), 2).echoes()
