"""The registry keeps what is in use and forgets the rest."""

import json

from msgspec import Raw

from engine.chain import Anchor, Chain, KeptChain, stage
from engine.model import ColdCause
from engine.request import own_copy, split
from engine.sessions import Bounds, Sessions

KEY = b"k"


def key(session="s", tenant="t"):
    return (tenant, "u", session)


def put(sessions, scope, name, *, live=True, session="s", size=10, used=1.0):
    anchor = Anchor(name, "r" + name, session, {}, (), b"", 1, used, size)
    if live:
        chain = Chain("c" + name, "conn", b"h", 0.0, used)
        chain.commit(anchor, used)
        scope.chains[chain.id] = chain
    else:
        anchor.cool(ColdCause.CLOSED)
    sessions.add(scope, anchor)
    return anchor


def test_an_anchor_is_found_by_its_response_with_its_owner():
    sessions = Sessions(Bounds(), KEY)
    one = put(sessions, sessions.scope(key()), "1")
    assert sessions.find("r1") == (key(), one)
    assert sessions.find("r2") is None


def test_parts_of_a_key_are_never_joined():
    sessions = Sessions(Bounds(), KEY)
    assert sessions.scope(key("b:c", "a")) is not sessions.scope(key("c", "a:b"))
    assert len(list(sessions.scopes())) == 2


def test_a_dropped_anchor_is_gone_and_dropping_twice_is_harmless():
    sessions = Sessions(Bounds(), KEY)
    scope = sessions.scope(key())
    one, two = put(sessions, scope, "1"), put(sessions, scope, "2")
    scope.digests["tools"] = (Raw(b"[]"), "a digest")
    sessions.drop(scope, one)
    assert ["tools"] == list(scope.digests)
    sessions.drop(scope, two)
    sessions.drop(scope, two)
    assert (sessions.find("r1"), dict(scope.anchors), scope.digests) == (None, {}, {})


def test_of_two_answers_with_one_id_the_later_is_found_whichever_is_dropped():
    sessions = Sessions(Bounds(), KEY)
    scope = sessions.scope(key())
    former, later = put(sessions, scope, "1"), put(sessions, scope, "2")
    former.response_id = later.response_id = "r"
    sessions.add(scope, former)
    sessions.add(scope, later)
    sessions.drop(scope, former)
    assert (key(), later) == sessions.find("r")
    sessions.drop(scope, later)
    assert sessions.find("r") is None


def test_an_id_that_two_sessions_hold_is_found_in_the_other_once_it_is_dropped_in_one():
    sessions = Sessions(Bounds(), KEY)
    one, other = sessions.scope(key("one")), sessions.scope(key("other"))
    first, second = put(sessions, one, "1"), put(sessions, other, "1")
    assert (key("one"), first) == sessions.find("r1", key("one"))
    sessions.drop(one, first)
    assert (key("other"), second) == sessions.find("r1", key("one"))


def test_an_anchor_without_a_response_id_is_kept_but_not_found():
    sessions = Sessions(Bounds(), KEY)
    scope = sessions.scope(key())
    one = Anchor("x", "", "s", {}, (), b"", 1, 0.0, 1)
    sessions.add(scope, one)
    assert sessions.find("") is None
    sessions.drop(scope, one)


def test_a_turn_that_outlives_its_scope_leaves_no_stray_anchor():
    sessions = Sessions(Bounds(sessions=1), KEY)
    old = sessions.scope(key("old"))
    sessions.trim(sessions.scope(key("new")))
    late = put(sessions, old, "1", live=False)
    owner, found = sessions.find("r1")
    assert found is late
    assert sessions.scope(owner).anchors == {"1": late}


def test_a_lease_ends_with_its_socket_only():
    sessions = Sessions(Bounds(), KEY)
    scope = sessions.scope(key())
    one, two = put(sessions, scope, "1"), put(sessions, scope, "2")
    one.chain.leased_by, two.chain.leased_by = "a", "b"
    sessions.release("a")
    assert (one.chain.leased_by, two.chain.leased_by) == (None, "b")


def test_a_reset_cools_the_anchors_of_its_session_and_closes_idle_chains():
    sessions = Sessions(Bounds(), KEY)
    scope = sessions.scope(key(None))
    mine, busy, other = put(sessions, scope, "1"), put(sessions, scope, "2"), put(sessions, scope, "3", session="o")  # fmt: skip
    chain, in_use = mine.chain, busy.chain
    in_use.stage(2.0)
    assert sessions.reset(scope, "s", "manual") == [chain]
    assert (mine.cold, busy.cold, other.cold) == (
        ColdCause.EPOCH_RESET,
        ColdCause.EPOCH_RESET,
        None,
    )
    assert (scope.epoch("s").resets, scope.epoch("s").pending, in_use.id in scope.chains) == (
        1,
        "manual",
        True,
    )


def test_the_least_used_idle_chain_goes_first_and_busy_or_leased_ones_never():
    sessions = Sessions(Bounds(chains_per_session=1), KEY)
    scope = sessions.scope(key())
    busy, leased, old, new = (put(sessions, scope, str(n), used=float(n)) for n in range(4))
    busy.chain.stage(0.0)
    leased.chain.leased_by = "a"
    gone = [old.chain, new.chain]
    assert sessions.trim(scope) == gone
    assert (old.cold, busy.cold, leased.cold) == (ColdCause.EVICTED, None, None)
    assert len(scope.chains) == 2


def test_cold_anchors_are_forgotten_before_live_ones():
    sessions = Sessions(Bounds(anchors_per_session=2, anchors_unnamed=1), KEY)
    scope = sessions.scope(key())
    live = put(sessions, scope, "1")
    for name in "234":
        put(sessions, scope, name, live=False)
    sessions.trim(scope)
    assert list(scope.anchors) == ["1", "4"]
    assert scope.anchors["1"] is live
    unnamed = sessions.scope(key(None))
    for name in "56":
        put(sessions, unnamed, name, live=False)
    sessions.trim(unnamed)
    assert list(unnamed.anchors) == ["6"]


def test_epochs_and_turn_states_are_bounded():
    sessions = Sessions(Bounds(anchors_unnamed=2, turn_states=2), KEY)
    scope = sessions.scope(key())
    for name in "abc":
        scope.epoch(name)
        scope.turn_states[name] = name
    sessions.trim(scope)
    assert (list(scope.epochs), list(scope.turn_states)) == (["b", "c"], ["b", "c"])


def test_the_least_used_sessions_go_but_busy_ones_stay():
    sessions = Sessions(Bounds(sessions=2), KEY)
    busy = put(sessions, sessions.scope(key("busy")), "1")
    busy.chain.stage(1.0)
    idle = put(sessions, sessions.scope(key("idle")), "2")
    chain = idle.chain
    sessions.scope(key("third"))
    assert sessions.trim(sessions.scope(key("fourth"))) == [chain]
    assert [scope.key[2] for scope in sessions.scopes()] == ["busy", "fourth"]
    assert (idle.cold, sessions.find("r2")) == (ColdCause.EVICTED, None)


def test_over_the_byte_budget_cold_anchors_of_old_sessions_go():
    sessions = Sessions(Bounds(bytes=25), KEY)
    old, new = sessions.scope(key("old")), sessions.scope(key("new"))
    put(sessions, old, "1", live=False)
    put(sessions, old, "2")
    put(sessions, new, "3", live=False)
    sessions.trim(new)
    assert (sessions.find("r1"), sessions.find("r2") is None, sessions.find("r3") is None) == (None, False, False)  # fmt: skip
    sessions.superseded(10)
    put(sessions, new, "4", live=False)
    sessions.trim(new)
    assert sessions.find("r3") is not None


def held(scope, name, sessions, *, live=True, used=1.0, length=10_000):
    """An anchor with a transcript of this length, and one item that is not spelled yet."""
    asked = split(json.dumps({"model": "m", "input": ["x" * length]}).encode())
    staged = stage(asked.items, own_copy(asked.fields), None)
    baseline, digest = staged.baseline([Raw(b'{"type":"reasoning"}')], KEY)
    anchor = put(sessions, scope, name, live=live, used=used, size=baseline.size)
    anchor.items, anchor.fields, anchor.digest = baseline, staged.fields, digest
    return anchor


def spared(*anchors):
    return [anchor.items.spelling is None for anchor in anchors]


def test_over_the_byte_budget_cold_anchors_are_condensed_first_then_live_ones_by_last_use():
    sessions = Sessions(Bounds(bytes=40_000), KEY)
    old, new = sessions.scope(key("old")), sessions.scope(key("new"))
    live, cold = held(old, "1", sessions), held(old, "2", sessions, live=False)
    late, early = held(new, "3", sessions, used=3.0), held(new, "4", sessions, used=2.0)
    everything = (live, cold, late, early)
    assert (sessions.trim(new), spared(*everything)) == ([], [False, True, False, False])
    held(new, "5", sessions, used=4.0)
    assert (sessions.trim(new), spared(*everything)) == ([], [True, True, False, False])
    held(new, "6", sessions, used=5.0)
    assert (sessions.trim(new), spared(*everything)) == ([], [True, True, False, True])
    assert [sessions.find(f"r{n}") is None for n in range(1, 7)] == [False] * 6
    assert all(anchor.cold is None for anchor in (live, late, early))


def test_a_transcript_that_a_turn_is_about_to_extend_is_left_alone_and_a_lease_is_no_hindrance():
    sessions = Sessions(Bounds(bytes=5_000), KEY)
    scope = sessions.scope(key())
    busy, leased = held(scope, "1", sessions), held(scope, "2", sessions)
    busy.chain.stage(1.0)
    leased.chain.leased_by = "socket"
    assert sessions.trim(scope) == []
    assert spared(busy, leased) == [False, True]
    busy.chain.release()
    sessions.trim(scope)
    assert spared(busy) == [True]


def test_a_kept_response_is_live():
    sessions = Sessions(Bounds(bytes=15_000), KEY)
    scope = sessions.scope(key())
    kept, cold = held(scope, "1", sessions, live=False), held(scope, "2", sessions, live=False)
    kept.cold, kept.kept = None, KeptChain("c")
    assert (kept.is_live, cold.is_live) == (True, False)
    sessions.trim(scope)
    assert spared(kept, cold) == [False, True]
    assert (kept.is_forgotten, cold.is_forgotten) == (False, True)


def test_what_digests_do_not_make_room_for_is_forgotten():
    sessions = Sessions(Bounds(bytes=2_500), KEY)
    scope = sessions.scope(key())
    cold, live = held(scope, "1", sessions, live=False), held(scope, "2", sessions)
    assert sessions.trim(scope) == []
    assert (sessions.find("r1"), sessions.find("r2")) == (None, (key(), live))
    sessions = Sessions(Bounds(bytes=1), KEY)
    last = held(sessions.scope(key()), "3", sessions)
    chain = last.chain
    assert sessions.trim(sessions.scope(key())) == [chain]
    assert (last.cold, sessions.find("r3")) == (ColdCause.EVICTED, None)
    assert cold.size == 0


def test_over_the_byte_budget_a_chain_that_holds_nothing_is_closed_with_those_that_do():
    sessions = Sessions(Bounds(bytes=1), KEY)
    scope = sessions.scope(key())
    empty = scope.chains["c0"] = Chain("c0", "conn", b"h", 0.0, 0.0)
    empty.commit(None, 0.0)
    full = held(scope, "1", sessions).chain
    assert [empty, full] == sessions.trim(scope)
    assert (0, {}) == (sessions.bytes, dict(scope.chains))


def test_what_a_later_anchor_holds_is_counted_with_that_one():
    sessions = Sessions(Bounds(), KEY)
    scope = sessions.scope(key())
    first = held(scope, "1", sessions, live=False)
    asked = split(json.dumps({"input": ["x" * 10_000, {"type": "reasoning"}, "y"]}).encode())
    later = held(scope, "2", sessions)
    later.items = stage(asked.items, {}, first).baseline([], KEY)[0]
    first.give_way(later)
    sessions.trim(scope)
    assert (first.size, sessions.bytes, list(scope.in_full)) == (0, later.weight, ["2"])


def test_what_is_counted_is_what_is_kept():
    """Each anchor once, with what decisions have worked out of it; never less than nothing."""
    sessions = Sessions(Bounds(), KEY)
    scope = sessions.scope(key())
    one, two = held(scope, "1", sessions), held(scope, "2", sessions, live=False)
    sessions.trim(scope)
    before = sessions.bytes
    assert before == one.weight + two.weight > 20_000
    assert one.items[0].kind == "value"  # the item is cut out and made, once
    sessions.trim(scope)
    assert before < sessions.bytes == one.weight + two.weight
    one.items.condense(KEY)
    sessions.trim(scope)
    assert sessions.bytes == one.weight + two.weight < 15_000
    sessions.drop(scope, one)
    sessions.drop(scope, two)
    assert sessions.bytes == 0


def test_room_is_made_only_at_the_limit_and_only_by_idle_chains():
    sessions = Sessions(Bounds(connections=2), KEY)
    scope = sessions.scope(key())
    one = put(sessions, scope, "1", used=1.0)
    assert sessions.make_room() == []
    two = put(sessions, scope, "2", used=2.0)
    chain = one.chain
    assert sessions.make_room() == [chain]
    assert (one.cold, list(scope.chains)) == (ColdCause.EVICTED, ["c2"])
    three = put(sessions, scope, "3")
    two.chain.stage(1.0)
    three.chain.leased_by = "a"
    assert sessions.make_room() is None


def test_an_epoch_is_kept_as_long_as_an_anchor_of_its_session():
    """A reset finds an unnamed session by its epoch; forgotten, the reset would be lost."""
    sessions = Sessions(Bounds(anchors_unnamed=1), KEY)
    unnamed = sessions.scope(key(None))
    for name in ("anon-1", "anon-2", "anon-3"):
        unnamed.epoch(name)
    put(sessions, unnamed, "1", session="anon-1")
    sessions.trim(unnamed)
    assert list(unnamed.epochs) == ["anon-1"]
    assert [unnamed] == sessions.scopes_of("t", "u", "anon-1")
    assert [("t", "u", "s")] == [scope.key for scope in sessions.scopes_of("t", "u", "s")]
    own = sessions.scope(("t", "u", "anon-1"))
    assert [unnamed, own] == sessions.scopes_of("t", "u", "anon-1")
