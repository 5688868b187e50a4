"""Items of which only digests are kept prove what the client repeats, and never more."""

import gc
import json
import tracemalloc
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import items as rules
from engine.baseline import Baseline, digested
from engine.chain import Anchor, stage
from engine.condensed import BYTES_PER_ITEM, Condensed, Entry
from engine.errors import NotKept
from engine.growing import grown
from engine.held import HeldItem
from engine.matching import frozen, matched
from engine.request import own_copy, split
from engine.spelling import Items, Known
from tests.support.transcripts import STYLES, body, messages, raw, said, written

KEY = b"k"


def table(*values, key=KEY, received=False, sealed=False):
    return Condensed(key).and_then(Entry(raw(value), received, sealed) for value in values)


def test_an_item_takes_less_than_a_hundred_bytes():
    assert BYTES_PER_ITEM == 22
    assert table(*range(1000)).size < 1000 * 22 + 600


def test_a_record_tells_kind_and_length_and_no_content():
    record = table('"secret"', {"role": "user", "content": "x"}, sealed=True)[1]
    assert (record.kind, record.length, record.received, record.sealed) == (
        "message:user",
        32,
        False,
        True,
    )
    assert len(record.digest) == 16
    assert record.digest != table({"role": "user", "content": "x"}, key=b"other")[0].digest


@pytest.mark.parametrize(
    "text",
    ["1", "[]", '"x"', "null", "{}", '{"type":1}', '{"type":"a b"}', '{"type":"' + "x" * 99 + '"}',
     '{"role":"x"}', '{"role":"user"}', '{"type":"message","role":"assistant"}', "{", '{"type":null}',
     '{"type":"reasoning","id":"r"}'],
)  # fmt: skip
def test_the_kind_is_that_of_the_whole_item(text):
    try:
        kind = rules.kind(rules.parse(text))
    except ValueError:
        kind = rules.kind(None)
    assert kind == Condensed(KEY).and_then([Entry(Raw(text.encode()), False, False)])[0].kind


def test_kinds_beyond_a_byte_are_unknown():
    many = table(*({"type": f"t{n}"} for n in range(300)))
    assert [many[n].kind for n in (0, 254, 255, 299)] == ["t0", "t254", "unknown", "unknown"]


def test_records_come_behind_others():
    one, two = table(1, {"type": "a"}), table(1, {"type": "a"}, {"type": "b"}, 1)
    longer = one.and_then([Entry(raw({"type": "b"}), False, False), Entry(raw(1), False, False)])
    assert [longer[i] for i in range(4)] == [two[i] for i in range(4)]
    assert [len(longer.first(n)) for n in (0, 2, 4, 9)] == [0, 2, 4, 4]
    assert longer.first(2)[1] == one[1]
    assert longer.length == 1 + 13 + 13 + 1


def test_items_are_repeated_from_the_first_on_as_far_as_their_bytes_are_the_same():
    kept = table(1, 2, 3)
    assert kept.repeated([raw(1), raw(2), raw(4)], 3) == 2
    assert kept.repeated([raw(1), raw(2), raw(3)], 2) == 2
    assert kept.repeated([raw(10)], 1) == 0


# --- baselines ------------------------------------------------------------------------------------


def request(values, known=(), **fields):
    return split(json.dumps({"model": "m", "input": values, **fields}).encode(), known)


def turn(values, outputs, known=()):
    return grown(known, request(values).items, [raw(one) for one in outputs])


def test_condensed_a_baseline_keeps_the_last_answer_and_digests():
    held = turn([said("a" * 5000)], [said("b")])
    assert held.condense(KEY)
    assert (held.spelling, len(held.condensed), len(held.more), len(held)) == (None, 1, 1, 2)
    assert held.size < 3000
    assert [item.is_whole for item in held] == [False, True]
    with pytest.raises(NotKept):
        held.echoes()
    assert held.echoes(1) == [raw(said("b"))]


def test_where_nothing_can_be_condensed_nothing_is():
    assert not Baseline(None, (), ()).condense(KEY)
    answer = turn([], [said("b")])
    assert answer.condense(KEY)
    assert not answer.condense(KEY)
    first = turn([said("a")], [])
    first.give_way(turn([said("a")], [], first))
    assert not first.condense(KEY)


def test_the_projection_is_not_asked_of_digests():
    full, spare = (turn([said("a"), "x"], [said("b", id="m")]) for _ in range(2))
    spare.condense(KEY)
    anew = request([said("a", status="done"), "x", said("b"), 1]).items
    same = request([said("a"), "x", said("b"), 1]).items
    assert (matched(full, anew), matched(spare, anew)) == (3, 0)
    assert (matched(full, same), matched(spare, same)) == (3, 3)


def test_once_thrown_away_what_is_held_is_never_guessed_again():
    """The client's spelling lacks the id: it equals two items, of which the provider holds one."""
    asked = [said("a")]
    first = turn(asked, [said("b", id="m1")])
    second = turn([*asked, said("b"), "x"], [], first)
    second.condense(KEY)
    third = turn([*asked, said("b"), "x", "y"], [], second)
    assert matched(third, request([*asked, said("b"), "x", "y"]).items) == 4
    for other in (said("b", id="m2"), said("b", id="m1"), said("b", status="done")):
        assert matched(third, request([*asked, other, "x", "y"]).items) == 1
    # Of what the provider holds as it was spelled, the bytes are at hand again.
    respelled = request([said("a", status="done"), said("b"), "x", "y"]).items
    assert matched(third, respelled) == 4


def test_what_is_named_goes_on_from_digests():
    first = turn(["a", "b"], [said("c")])
    first.condense(KEY)
    later = grown(first, Items((raw('"d"'),), base=first), [raw(said("e"))])
    assert (len(later), len(later.condensed), len(later.more)) == (5, 2, 3)
    assert matched(later, request(["a", "b", said("c"), "d", said("e")]).items) == 5
    assert later.condense(KEY)
    assert (len(later.condensed), len(later.more)) == (4, 1)
    assert matched(later, request(["a", "b", said("c"), "d", said("e", id="x")]).items) == 5
    assert matched(later, request(["a", "b", said("c", id="x"), "d", said("e")]).items) == 2


def test_a_baseline_that_gave_way_is_looked_up_in_the_digests_of_the_one_after_it():
    first = turn(["a"], [said("b")])
    later = turn(["a", said("b"), "c"], [], first)
    first.give_way(later)
    later.condense(KEY)
    assert (len(digested(first)), len(digested(later))) == (2, 3)
    assert (first.length, first.echoes(2)) == (len('"a"') + len(bytes(raw(said("b")))), [])
    assert matched(first, request(["a", said("b")]).items) == 2
    assert matched(first, request(["a", said("B")]).items) == 1
    fork = grown(first, Items((raw('"d"'),), base=first), [])
    assert matched(fork, request(["a", said("b"), "d"]).items) == 3
    assert matched(fork, request(["a", said("b"), "c"]).items) == 2


def test_a_fork_of_a_baseline_that_gave_way_has_a_copy_of_what_both_hold():
    first = turn(["a"], [said("b")])
    first.give_way(turn(["a", said("b"), "c"], [], first))
    fork = grown(first, Items((raw('"d"'),), base=first), [])
    assert [bytes(item.echo) for item in fork] == [b'"a"', bytes(raw(said("b"))), b'"d"']
    assert (digested(fork), fork.spelling) == (None, None)


def test_what_was_named_before_it_was_condensed_can_still_be_told():
    first = turn(["a", "b"], [said("c")])
    now = Items((raw('"d"'),), base=first)
    first.condense(KEY)
    assert [json.loads(bytes(one)) for one in now] == ["a", "b", said("c"), "d"]
    late = Items((raw('"d"'),), base=first)
    assert (now.is_told, late.is_told, late.rest, late[3]) == (
        True,
        False,
        (raw('"d"'),),
        raw('"d"'),
    )
    with pytest.raises(NotKept):
        list(late)
    assert first.length == len('"a""b"') + len(bytes(raw(said("c"))))


def test_a_policy_that_froze_an_output_is_counted_from_the_digests():
    def gave(**more):
        return {"type": "function_call_output", "call_id": "c", "output": {"a": 1, **more}}

    first = turn([gave(_meta=1)], [])
    second = request([gave(_meta=2), "x"]).items
    assert (matched(first, second, ["_meta"]), frozen(first, second)) == (1, 1)
    later = grown(first, second, [])
    later.condense(KEY)
    again = request([gave(_meta=2), "x", "y"]).items
    assert (matched(later, again, ["_meta"]), frozen(later, again)) == (2, 1)
    last = grown(later, again, [])
    assert frozen(last, request([gave(_meta=2), "x", "y", "z"]).items) == 1
    assert matched(last, request([gave(_meta=3), "x", "y"]).items, ["_meta"]) == 0


class One:
    """One item by the rule: what is held, the client's latest spelling, and whether it is sealed."""

    def __init__(self, held, echo, received):
        self.held, self.echo, self.received = held, echo, received
        self.sealed = self.spare = False

    def same(self, now):
        if now == self.echo:
            return True
        if self.spare or self.sealed:
            return False
        item = HeldItem(raw(self.held), received=self.received, echo=raw(self.echo))
        return item.difference(raw(now)) is None

    def condense(self):
        says_all = self.held == self.echo or (
            not self.received
            and rules.same_json(rules.parse(self.held), rules.parse(self.echo))
        )  # fmt: skip
        self.spare, self.sealed = True, self.sealed or not says_all

    def repeat(self, now):
        """The client has sent it again, and it was proven."""
        if self.spare:
            self.sealed = self.sealed or now != self.echo
            self.held = now
        self.spare, self.echo = False, now


class Plain:
    """All items by the rule; ``unspelled``: so many at the end the client has never sent."""

    def __init__(self):
        self.items, self.unspelled = [], 0

    def matched(self, sent):
        pairs = zip(self.items, sent, strict=False)
        length = min(len(self.items), len(sent))
        return next((i for i, (one, now) in enumerate(pairs) if not one.same(now)), length)

    def condense(self):
        for one in self.items[: len(self.items) - self.unspelled]:
            one.condense()

    def answer(self, sent, outputs, *, named):
        new = sent[len(self.items) :]
        if not named:
            for one, now in zip(self.items, sent, strict=False):
                one.repeat(now)
            self.unspelled = 0
        elif new:
            self.unspelled = 0
        self.items += [One(now, now, False) for now in new] + [One(o, o, True) for o in outputs]
        self.unspelled += len(outputs)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_condensed_a_chain_matches_what_the_rule_says_and_never_more_than_in_full(data):
    rule, generous = Plain(), Plain()
    spare, full, former, values = (), (), [], []
    style, known = data.draw(STYLES), []
    for _ in range(data.draw(st.integers(1, 5))):
        values += data.draw(st.lists(messages(), max_size=3))
        style = style if data.draw(st.integers(0, 3)) else data.draw(STYLES)
        faithful = data.draw(st.integers(0, 3)) > 0
        echoes = [one.echo for one in rule.items]
        sent = [
            echoes[i] if i < len(echoes) and (faithful or data.draw(st.integers(0, 3)) == 0)
            else data.draw(written(value))
            for i, value in enumerate(values)
        ]  # fmt: skip
        named = isinstance(spare, Baseline) and data.draw(st.integers(0, 3)) == 0
        if named:
            sent = [*echoes, *sent[len(echoes) :]]
            rest = tuple(raw(text) for text in sent[len(echoes) :])
            now, same = Items(rest, base=spare), Items(rest, base=full)
        else:
            asked = split(body(sent, style), known)
            now = same = asked.items
        count = matched(spare, now)
        assert count == rule.matched(sent)
        assert count <= matched(full, same) == generous.matched(sent)
        assert not faithful or count == len(rule.items)
        if not named:
            for other, length in former:
                assert matched(other, now) <= Plain.matched(_first(rule, length), sent)
        if count < len(rule.items):
            return
        outputs = [json.dumps(one) for one in data.draw(st.lists(messages(), max_size=2))]
        if data.draw(st.integers(0, 3)) == 0:  # while the turn is under way
            _condense(rule, spare)
        before, raws = spare, [raw(out) for out in outputs]
        spare, full = grown(spare, now, raws), grown(full, same, raws)
        rule.answer(sent, outputs, named=named)
        generous.answer(sent, outputs, named=named)
        if isinstance(before, Baseline):
            before.give_way(spare)
            former.append((before, len(before)))
        values += [json.loads(out) for out in outputs]
        assert [(i.kind, i.received) for i in spare] == [(i.kind, i.received) for i in full]
        if data.draw(st.integers(0, 2)) == 0:
            _condense(rule, spare)
        known = [] if spare.spelling is None else [Known(spare.spelling, own_copy(asked.fields))]


def _condense(rule, baseline):
    rule.condense()
    if isinstance(baseline, Baseline):
        baseline.condense(KEY)


def _first(rule, length):
    part = Plain()
    part.items = rule.items[:length]
    return part


# --- what is counted ------------------------------------------------------------------------------


def conversation(values, outputs):
    """An anchor of a client that has repeated the answer without its ids, and was answered again."""
    fields = {"model": "m", "instructions": "i" * 500, "store": False}

    def asked(items):
        return split(json.dumps({"input": items, **fields}).encode())

    def answered(request, extended):
        staged = stage(request.items, own_copy(request.fields), extended)
        held, digest = staged.baseline([raw(one) for one in outputs], KEY)
        return Anchor("a", "r", "s", staged.fields, held, digest, 1, 0.0, 0)

    first = answered(asked(values), None)
    bare = [{key: part for key, part in one.items() if key != "id"} for one in outputs]
    second = answered(asked([*values, *bare, "next"]), first)
    first.give_way(second)
    return second


def said_often(count, length):
    return [said("x" * length, id=f"m{n}") for n in range(count)]


TRACED = 5_000
"""Bytes that whoever looks on (a tracer) may take meanwhile."""


@contextmanager
def measured():
    """Gives a function that tells how many bytes are taken since, all that is free apart."""
    gc.freeze()  # what is there already is not looked through each time
    tracemalloc.start()

    def taken():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    try:
        yield taken
    finally:
        tracemalloc.stop()
        gc.unfreeze()


@pytest.mark.parametrize(
    ("values", "outputs"),
    [([1] * 2000, said_often(1, 5)), (said_often(500, 20), said_often(2, 20)),
     (said_often(60, 5000), said_often(4, 500)), (["x"] * 10, said_often(50, 300))],
)  # fmt: skip
def test_what_is_counted_is_what_is_freed(values, outputs):
    """With the slices of small items, and what decisions have worked out, and when condensed."""

    conversation(values, outputs)  # what is made once for all
    with measured() as taken:
        anchor = conversation(values, outputs)
        figures = [(anchor.weight, taken())]
        anchor.items.spelling.items()
        figures.append((anchor.weight, taken()))
        assert all(item.echo_key for item in anchor.items)
        figures.append((anchor.weight, taken()))
        anchor.items.condense(KEY)
        figures.append((anchor.weight, taken()))
    for counted, total in figures:
        assert 0.9 * (total - TRACED) < counted < 1.3 * total


@pytest.mark.parametrize("length", [1, 2000])
def test_condensed_a_transcript_takes_less_than_a_hundred_bytes_an_item(length):
    count = 2000
    conversation(said_often(count, length), [])
    with measured() as taken:
        anchor = conversation(said_often(count, length), [])
        anchor.items.condense(KEY)
        total = taken()
    assert len(anchor.items) == count + 1
    assert count * BYTES_PER_ITEM < total < count * 30
