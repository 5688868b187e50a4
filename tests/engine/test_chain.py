"""Held items, anchors, and the life of a chain."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine import digests
from engine.chain import Anchor, Chain, ChainState, Epoch, HeldItem, stage
from engine.model import ColdCause

KEY = b"k" * 32


def raw(value):
    return Raw(json.dumps(value).encode())


def said(text, **more):
    return {"type": "message", "role": "assistant", "content": text, **more}


def anchor(*held, size=5):
    return Anchor("a", "r", "s", {}, tuple(held), digests.EMPTY, 1, 0.0, size)


def chain():
    return Chain("c", "conn", b"h", 0.0, 0.0)


def test_a_known_spelling_makes_no_new_item():
    held = HeldItem(raw(said("x")), received=True)
    assert held.spelled(raw(said("x"))) is held
    twin = held.spelled(raw(said("x", status="completed")))
    assert twin.spelled(raw(said("x", status="completed"))) is twin


def test_what_was_received_is_made_by_the_model_whatever_its_kind():
    future = {"type": "future_item", "id": "f", "created_by": "a"}
    echo = raw({"type": "future_item", "id": "f"})
    assert HeldItem(raw(future), received=True).difference(echo) is None
    assert HeldItem(raw(future), received=False).difference(echo) == ("created_by",)


def test_an_assistant_message_of_the_client_is_compared_like_one_of_the_model():
    assert HeldItem(raw(said("x")), received=False).difference(raw(said("x", status="a"))) is None


def test_an_item_that_cannot_be_read_is_only_its_bytes():
    doubled = Raw(b'{"type":"x","a":1,"a":1}')
    held = HeldItem(doubled, received=False)
    assert (held.model_made, held.difference(doubled)) == (False, None)
    assert held.difference(Raw(b'{"type":"x","a":1, "a":1}')) == ()
    assert held.echo_key == HeldItem(Raw(b"null"), received=False).echo_key


def test_items_too_deep_to_compare_differ():
    deep = b'{"type":"x","a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert HeldItem(Raw(deep), received=True).difference(Raw(deep + b" ")) == ()


def test_an_anchor_counts_the_items_that_a_request_repeats():
    one = anchor(*(HeldItem(raw(said(t)), received=True) for t in "abc"))
    assert one.matched([raw(said(t)) for t in "abX"]) == 2
    assert one.matched([raw(said(t)) for t in "abcd"]) == 3
    assert one.matched([raw(said("a"))]) == 1
    assert one.matched([]) == 0


def test_who_holds_nothing_that_is_known_gives_way_to_nobody_and_nobody_to_it():
    opaque, later = anchor(), anchor()
    later.items, _ = stage([raw(said("a"))], {}, None).baseline([], KEY)
    weight = later.weight
    assert weight > 0
    opaque.give_way(later)
    later.give_way(opaque)
    assert (5, weight) == (opaque.weight, later.weight)


def test_a_turn_is_staged_and_committed():
    line, first, second = chain(), anchor(), anchor()
    line.commit(first, 1.0)
    assert (line.state, first.chain, first.cold) == (ChainState.IDLE, line, None)
    line.stage(2.0)
    assert (line.anchor, first.chain) == (first, line)
    line.commit(second, 3.0)
    assert (first.cold, first.chain, first.size) == (ColdCause.SUPERSEDED, None, 0)
    assert (line.anchor, second.chain, line.last_used) == (second, line, 3.0)


def test_a_turn_that_leaves_no_anchor_leaves_the_chain_without_one():
    line, first = chain(), anchor()
    line.commit(first, 1.0)
    line.stage(2.0)
    line.commit(None, 3.0)
    assert (line.anchor, first.cold) == (None, ColdCause.SUPERSEDED)


def test_a_chain_that_is_given_back_is_as_before():
    line, first = chain(), anchor()
    line.commit(first, 1.0)
    line.stage(2.0)
    line.release()
    assert (line.state, line.anchor, first.cold) == (ChainState.IDLE, first, None)


def test_a_cooled_chain_is_retired_for_good():
    line, first = chain(), anchor()
    line.commit(first, 1.0)
    line.cool(ColdCause.AFTER_FAILED)
    line.cool(ColdCause.CLOSED)
    assert (line.state, first.cold, line.anchor) == (
        ChainState.RETIRED,
        ColdCause.AFTER_FAILED,
        None,
    )
    for event in (lambda: line.stage(1.0), line.release, lambda: line.commit(None, 1.0)):
        with pytest.raises(ValueError, match="retired"):
            event()


def test_a_busy_chain_cannot_be_taken_and_an_idle_one_not_committed():
    line = chain()
    with pytest.raises(ValueError, match="cannot stage while it is busy"):
        line.stage(1.0)
    line.release()
    with pytest.raises(ValueError, match="cannot commit while it is idle"):
        line.commit(None, 1.0)


def test_the_first_cause_stays_but_a_reset_overrides_it():
    one = anchor()
    one.cool(ColdCause.CLOSED)
    one.cool(ColdCause.EVICTED)
    assert one.cold is ColdCause.CLOSED
    one.cool(ColdCause.EPOCH_RESET, "manual")
    one.cool(ColdCause.EPOCH_RESET, "summarize")
    assert (one.cold, one.reset_reason) == (ColdCause.EPOCH_RESET, "manual")


def test_a_chain_is_free_for_those_who_may_use_it():
    line = chain()
    assert not line.free_for(None, b"h")
    line.release()
    assert line.free_for(None, b"h")
    assert not line.free_for(None, b"x")
    line.leased_by = "s"
    assert line.free_for("s", b"h")
    assert not line.free_for(None, b"h")


def test_an_epoch_counts_its_turns_and_ends_at_its_limit():
    epoch = Epoch()
    assert [epoch.commit(2) for _ in range(2)] == [False, True]
    start = epoch.next_turn()
    epoch.reset("manual")
    assert epoch.next_turn() == (start[0] + 1, 1)
    assert epoch.commit(0) is False
    assert (epoch.pending, epoch.turns) == (None, 1)


def test_several_pending_resets_are_one_and_a_callers_word_beats_compaction():
    epoch = Epoch()
    epoch.reset("compaction")
    epoch.reset("summarize")
    epoch.reset("manual")
    assert (epoch.pending, epoch.word) == ("summarize", "summarize")
    epoch.commit(0)
    assert (epoch.pending, epoch.word) == (None, "summarize")
    epoch.reset("manual")
    assert epoch.word == "manual"


TEXTS = st.lists(st.sampled_from("abc"), max_size=4)


@given(TEXTS, TEXTS, TEXTS)
def test_the_digest_of_a_transcript_grows_by_its_delta(before, new, answered):
    first = stage([raw(t) for t in before], {}, None)
    held, digest = first.baseline([], KEY)
    base = Anchor("a", "r", "s", {}, held, digest, 1, 0.0, 1)
    sent = [raw(t) for t in before + new]
    items, grown = stage(sent, {}, base).baseline([raw(t) for t in answered], KEY)
    assert grown == digests.extend(KEY, digests.EMPTY, [raw(t) for t in before + new + answered])
    assert [json.loads(bytes(i.held)) for i in items] == before + new + answered
    assert [i.received for i in items] == [False] * len(before + new) + [True] * len(answered)


def test_staging_keeps_what_is_held_and_learns_the_new_spelling():
    base = anchor(HeldItem(raw(said("x", id="m1")), received=True))
    staged = stage([raw(said("x")), raw("new")], {}, base)
    held, _ = staged.baseline([], KEY)
    assert (held[0].held, held[0].echo) == (raw(said("x", id="m1")), raw(said("x")))
    assert (held[1].held, base.items[0].echo) == (raw("new"), raw(said("x", id="m1")))


def test_the_digest_of_a_request_is_worked_out_once(monkeypatch):
    staged = stage([raw(said("x"))], {}, None)
    expected = staged.digest([raw(said("y"))], KEY)
    seen = []

    def count(key, digest, items):
        seen.append(len(list(items)))
        return digest

    monkeypatch.setattr("engine.chain.digests.extend", count)
    staged.digest([raw(said("y"))], KEY)
    assert [1] == seen
    fresh = stage([raw(said("x"))], {}, None)
    monkeypatch.undo()
    assert expected == fresh.digest([raw(said("y"))], KEY)
