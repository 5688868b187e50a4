"""What the provider holds, kept as one body and what differs from it."""

import pytest

from engine.baseline import Baseline, Behind, digested
from engine.growing import grown
from engine.held import HeldItem
from engine.matching import matched
from engine.request import split
from tests.support.baselines import request
from tests.support.transcripts import body, raw, said


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
