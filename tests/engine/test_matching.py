"""How much of what is held a request repeats; tests/engine/test_growing.py compares whole
conversations with the rule, item by item."""

from engine.growing import grown
from engine.matching import matched
from engine.spelling import Items
from tests.support.baselines import answered_twice, request
from tests.support.transcripts import raw, said


def test_to_name_one_baseline_proves_nothing_of_another():
    named, other = (grown((), request([said(text)]).items, []) for text in "ab")
    now = Items((raw(said("c")),), base=named)
    assert (matched(named, now), matched(other, now)) == (1, 0)


def test_what_the_provider_holds_is_kept_beside_an_echo_that_says_less():
    first = grown((), request([said("a")]).items, [raw(said("b", id="m1"))])
    later = grown(first, request([said("a"), said("b")]).items, [])
    assert matched(later, [raw(said("a")), raw(said("b", id="m2"))]) == 1
    assert matched(later, [raw(said("a")), raw(said("b", id="m1"))]) == 2


def test_what_is_spelled_as_before_is_not_looked_at():
    asked, held = answered_twice()
    assert matched(held, [*asked.items, raw("e")]) == len(held) == 4
    assert held._made == {}
    assert matched(held, [*asked.items[:3], raw("e")]) == 3
    assert [*held._made] == [3]
