"""What an anchor, a chain and an epoch say of themselves, rule by rule."""

import json

import pytest
from msgspec import Raw

from engine.baseline import weight_of_fields
from engine.chain import Anchor, Chain, ChainState, Epoch, KeptChain, Staged, known, stage
from engine.model import ColdCause
from engine.request import own_copy, split
from engine.spelling import Items

KEY = b"k" * 32
FIELDS = {"model": Raw(b'"m"'), "tools": Raw(b'["' + b"t" * 500 + b'"]')}


def request(*items, bodies=()):
    return split(json.dumps({"model": "m", "input": items}).encode(), bodies)


def anchor(*items, answer=(), extended=None, bodies=(), **more):
    asked = request(*items, bodies=bodies)
    staged = stage(asked.items, own_copy(asked.fields), extended)
    held, digest = staged.baseline([Raw(json.dumps(one).encode()) for one in answer], KEY)
    return Anchor("a", "r", "s", staged.fields, held, digest, 1, 0.0, 7, **more)


def chain(**more):
    return Chain("c", "conn", b"h", 1.0, 2.0, **more)


# --- anchors --------------------------------------------------------------------------------------


def test_an_anchor_is_nothing_that_was_not_said():
    plain = anchor("x")
    marks = ("warmup", "stored", "opaque", "flawed", "renamed")
    assert [False] * 5 == [getattr(plain, name) for name in marks]
    assert [None] * 4 == [plain.chain, plain.cold, plain.reset_reason, plain.kept]
    assert KeptChain("c").taken is False


def test_no_header_is_shown():
    kept = KeptChain("c", account=(("chatgpt-account-id", "secret"),))
    assert kept.account == (("chatgpt-account-id", "secret"),)
    assert "secret" not in repr(kept)
    assert KeptChain("c").account == ()


def test_an_anchor_is_live_on_a_connection_or_kept_and_not_cold():
    assert not anchor("x").is_live
    assert anchor("x", chain=chain()).is_live
    kept = anchor("x", kept=KeptChain("c"))
    assert kept.is_live
    kept.cool(ColdCause.REJECTED)
    assert not kept.is_live
    on_connection = anchor("x", chain=chain())
    on_connection.cool(ColdCause.CLOSED)
    assert (on_connection.is_live, on_connection.chain, on_connection.cold) == (
        False,
        None,
        ColdCause.CLOSED,
    )


def test_a_reset_is_told_with_its_reason_and_another_cause_with_none():
    one = anchor("x")
    one.cool(ColdCause.EPOCH_RESET, "manual")
    one.cool(ColdCause.CLOSED, "other")
    assert (one.cold, one.reset_reason) == (ColdCause.EPOCH_RESET, "manual")


def test_an_anchor_is_forgotten_if_only_digests_are_left_and_nothing_continues_it():
    one = anchor("x", answer=["y"])
    assert not one.is_forgotten
    one.items.condense(KEY)
    assert one.is_forgotten
    one.chain = chain()
    assert not one.is_forgotten


def test_an_anchor_that_gave_way_weighs_nothing():
    first = anchor("x")
    later = anchor("x", "y", extended=first)
    assert first.weight > len(b'{"model": "m", "input": ["x"]}')
    first.give_way(later)
    assert (first.weight, later.weight > 0) == (0, True)


def test_the_fields_weigh_where_there_is_no_body_that_has_them():
    with_body, without = anchor("x"), anchor("x")
    without.items.condense(KEY)
    weights = with_body.weight, without.weight
    with_body.fields = without.fields = FIELDS
    assert weights[0] == with_body.weight == with_body.items.size
    assert without.weight == without.items.size + weight_of_fields(FIELDS)


def test_what_is_not_held_in_one_weighs_as_it_was_told():
    one = anchor("x")
    one.items = ()
    assert one.weight == 7


def test_an_anchor_is_proven_if_the_body_repeats_all_that_its_own_body_held():
    one = anchor("x", "y", answer=["z"])
    bodies = known([one])
    assert one.is_proven(request("x", "y", "z", bodies=bodies).items)
    assert one.is_proven(request("x", "y", bodies=bodies).items)
    assert not one.is_proven(request("x", "q", bodies=bodies).items)
    assert not one.is_proven(list(request("x", "y", "z").items))
    named = Items((Raw(b"1"),), base=one.items)
    assert one.is_proven(named)


def test_a_body_of_one_item_is_proven_as_well():
    one = anchor("x", answer=["z"])
    assert one.is_proven(request("x", "y", bodies=known([one])).items)


def test_an_anchor_is_matched_under_the_policy_of_its_upstream():
    gave = {"type": "function_call_output", "call_id": "c", "output": {"a": 1}}
    one = anchor(gave)
    now = request({**gave, "output": {"a": 1, "_meta": 2}}).items
    assert [0, 1] == [one.matched(now, freeze) for freeze in ((), ("_meta",))]
    assert one.matched(now) == 0


def test_of_an_empty_body_nothing_is_proven_and_of_an_opaque_one_nothing_has_to_be():
    empty, opaque = anchor(answer=["z"]), anchor("x")
    opaque.items = ()
    assert not empty.is_proven(request("z", bodies=known([empty])).items)
    assert opaque.is_proven(request("z").items)


def test_bodies_are_known_as_far_as_they_are_kept():
    kept, condensed, opaque = anchor("x"), anchor("y"), anchor("z")
    condensed.items.condense(KEY)
    opaque.items = ()
    ((spelling, fields),) = known([condensed, opaque, kept])
    assert (spelling, fields) == (kept.items.spelling, kept.fields)


# --- chains ---------------------------------------------------------------------------------------


def test_a_chain_begins_busy_with_no_anchor_and_no_lease():
    line = chain()
    assert (line.state, line.anchor, line.leased_by, line.model) == (ChainState.BUSY, *[None] * 3)


@pytest.mark.parametrize("state", ChainState)
def test_a_chain_can_be_cooled_whatever_it_does(state):
    line = chain(state=state)
    line.cool(ColdCause.CLOSED)
    assert (line.state, line.anchor) == (ChainState.RETIRED, None)


def test_a_cooled_chain_tells_its_anchor_why():
    line, one = chain(), anchor("x")
    line.commit(one, 1.0)
    line.cool(ColdCause.EPOCH_RESET, "manual")
    assert (one.cold, one.reset_reason, one.chain) == (ColdCause.EPOCH_RESET, "manual", None)


@pytest.mark.parametrize(
    ("opaque", "cause"), [(True, ColdCause.CLIENT_ANCHORED), (False, ColdCause.SUPERSEDED)]
)
def test_an_anchor_is_lost_to_a_turn_of_which_nothing_is_known(opaque, cause):
    line, first = chain(), anchor("x")
    line.commit(first, 3.0)
    line.stage(4.0)
    assert line.last_used == 4.0
    line.commit(anchor("y", opaque=opaque), 5.0)
    assert (first.cold, first.size, line.last_used) == (cause, 0, 5.0)


def test_a_chain_is_warm_while_its_anchor_is():
    line, one = chain(), anchor("x")
    assert line.is_warm is False
    line.commit(one, 1.0)
    assert line.is_warm is True
    one.cool(ColdCause.EPOCH_RESET)
    assert line.is_warm is False
    other = anchor("y", chain=chain())
    assert chain(anchor=other).is_warm is False


@pytest.mark.parametrize("state", ChainState)
@pytest.mark.parametrize("leased_by", [None, "one", "other"])
@pytest.mark.parametrize("socket", [None, "one"])
@pytest.mark.parametrize("handshake", [b"h", b"x"])
def test_a_chain_is_free_for(state, leased_by, socket, handshake):
    line = chain(state=state, leased_by=leased_by)
    expected = state is ChainState.IDLE and leased_by in (None, socket) and handshake == b"h"
    assert expected is line.free_for(socket, handshake)


# --- epochs ---------------------------------------------------------------------------------------


def test_an_epoch_begins_at_one_and_has_no_turns():
    epoch = Epoch()
    assert (1, 0, None, None, 0) == (
        epoch.number, epoch.turns, epoch.pending, epoch.word, epoch.resets
    )  # fmt: skip
    assert (1, 1) == epoch.next_turn()


def test_a_turn_that_does_not_consume_a_reset_counts_in_the_old_epoch():
    epoch = Epoch()
    epoch.reset("manual")
    assert epoch.commit(1, consume=False) is False
    assert (1, 1, "manual") == (epoch.number, epoch.turns, epoch.pending)
    assert epoch.commit(1) is True
    assert (2, 1, None) == (epoch.number, epoch.turns, epoch.pending)


@pytest.mark.parametrize(("limit", "ends"), [(0, [False] * 3), (2, [False, True, True])])
def test_a_counted_epoch_is_over_from_its_limit_on_and_one_without_a_limit_never(limit, ends):
    epoch = Epoch()
    assert ends == [epoch.commit(limit) for _ in range(3)]
    assert (1, 3) == (epoch.number, epoch.turns)


# --- turns ----------------------------------------------------------------------------------------


def test_a_turn_that_extends_nothing_knows_nothing():
    staged = stage(request("x").items, FIELDS, None, ("_meta",))
    assert ((), FIELDS, 0) == (staged.known, staged.fields, staged.frozen)
    one, other = (stage(request("x").items, {}, None) for _ in range(2))
    assert one.sent(KEY) == other.sent(KEY) != one.prefix
    assert one._sent is not other._sent
    assert repr(one.sent(KEY)) not in repr(one)
    assert Staged((), (), {}, b"").frozen == 0


def test_a_turn_that_extends_an_anchor_knows_what_it_holds():
    before = anchor("x", answer=["y"])
    staged = stage(request("x", "y", "z").items, {}, before)
    assert (before.items, before.digest, 0) == (staged.known, staged.prefix, staged.frozen)
    assert staged.sent(KEY) == stage(request("x", "y", "z").items, {}, None).sent(KEY)


@pytest.mark.parametrize("freeze", [(), ("_meta",)])
def test_what_is_frozen_is_counted_where_a_policy_freezes(freeze):
    gave = {"type": "function_call_output", "call_id": "c", "output": {"a": 1}}
    now = request({**gave, "output": {"a": 1, "_meta": 2}}).items
    assert stage(now, {}, anchor(gave), freeze).frozen == len(freeze)
