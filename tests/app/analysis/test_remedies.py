from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.analysis.catalogue import FIELDS, HISTORY
from app.analysis.remedies import (
    _OF_FIELDS,
    _OF_HISTORY,
    NOTHING,
    SENTENCES,
    Needed,
    Policy,
    Remedies,
    Remedy,
    needed,
    sentence,
)
from app.analysis.waste import Loss
from app.ledger.rows import TurnRow
from tests.support.remedies import added
from tests.support.reported import judged

MINUTE = 60_000
MOVED = {"index": 3, "kind_before": "function_call_output", "kind_now": "function_call_output",
         "class": "edited", "path": "/output/_meta/elapsed"}  # fmt: skip
KEY = {"freezable": ["_meta"]}
CLOCK = {"index": 0, "kind_before": "message:system", "class": "edited", "path": "/content",
         "nature": "time"}  # fmt: skip
SORTED = {"field": "tools", "change": "reordered"}
TOOL = {"field": "tools", "change": "changed", "name": "exec"}
TIME = {"field": "instructions", "change": "changed", "nature": "time"}
MODEL = {"field": "model", "change": "changed"}


def parted(**evidence: Any) -> TurnRow:
    return broken("prefix_mismatch", evidence)


def changed(*details: dict[str, Any], names: str = "", **evidence: Any) -> TurnRow:
    shown = evidence | ({"field_details": list(details)} if details else {})
    fields = names or ",".join(dict.fromkeys(one["field"] for one in details))
    return broken("non_input_fields_changed", shown, changed_fields=fields)


def broken(reason: str, evidence: dict[str, Any], **more: Any) -> TurnRow:
    return judged(
        "prefix_changed", "proven", 9_000, 0, mode="ws_full", reason=reason,
        evidence=json.dumps(evidence), **more,
    )  # fmt: skip


def need(*policies: Policy, proven: bool = True, key: str | None = None) -> Needed:
    return Needed(frozenset(Remedy(policy, key) for policy in policies), proven)


@pytest.mark.parametrize(
    ("expected", "row"),
    [
        (need(Policy.FREEZE, key="_meta"), parted(**MOVED, **KEY)),
        (need(Policy.FREEZE, key="_meta", proven=False), parted(**MOVED)),
        (need(Policy.NO_CLOCK, proven=False), parted(**CLOCK)),
        (need(Policy.KEEP_HISTORY), parted(index=2, kind_before="reasoning", **{"class": "removed"}, further=True)),
        (need(Policy.NONE), parted(index=2, items_gone=9, items_new=1, **{"class": "replaced"})),
        (need(Policy.NONE, proven=False), parted(index=2, items_gone=9, items_new=1, **{"class": "replaced"}, further=True)),
        (need(Policy.NONE, proven=False), parted()),
        (need(Policy.SORT_TOOLS), changed(SORTED)),
        (need(Policy.FIX_TOOLS), changed(TOOL)),
        (need(Policy.FIX_TOOLS), changed(TOOL, SORTED)),
        (need(Policy.FIX_TOOLS), changed(TOOL, {"field": "tools", "left_out": 3})),
        (need(Policy.NO_CLOCK), changed(TIME)),
        (need(Policy.FIX_INSTRUCTIONS), changed({**TIME, "nature": "rewritten"})),
        (need(Policy.NO_CLOCK, Policy.SORT_TOOLS), changed(TIME, SORTED)),
        (need(Policy.ONE_IDENTITY), changed(MODEL, {"field": "service_tier"}, {"field": "reasoning"})),
        (need(Policy.FIX_SETTINGS), changed({"field": "text"})),
        # The details of the tools had no room.
        (need(Policy.ONE_IDENTITY, Policy.FIX_TOOLS), changed(MODEL, names="model,tools")),
        (need(Policy.ONE_IDENTITY, Policy.KEEP_HISTORY), changed(MODEL, index=4, kind_before="message:user", **{"class": "edited"})),
        (need(Policy.SORT_TOOLS, proven=False), parted(index=0, kind_before="additional_tools", **{"class": "edited"}, field_details=[{**SORTED, "item": 0}])),
    ],
)  # fmt: skip
def test_a_break_needs_all_that_its_evidence_tells(expected, row):
    assert expected == needed(row)


def test_a_turn_without_a_break_needs_nothing():
    assert needed(judged("hit", "proven", 0, 9)) is None
    assert needed(judged("one_off_full", "possible", 9_000, 0)) is None


@pytest.mark.parametrize(
    ("verdict", "policy"),
    [("idle", Policy.GO_ON_SOONER), ("identity_change", Policy.ONE_IDENTITY)],
)
def test_what_is_only_likely_was_possibly_kept(verdict, policy):
    assert need(policy, proven=False) == needed(judged(verdict, "likely", 9, 0))
    assert need(policy) == needed(judged(verdict, "reported", 9, 0))


def test_a_cache_that_ran_out_meanwhile_is_not_kept_by_the_request_alone():
    row = changed(SORTED)  # of a model whose cache lives from half an hour to a day
    assert need(Policy.SORT_TOOLS) == needed(row, 29 * MINUTE)
    assert need(Policy.SORT_TOOLS, proven=False) == needed(row, 31 * MINUTE)
    assert need(Policy.SORT_TOOLS, Policy.GO_ON_SOONER) == needed(row, 25 * 60 * MINUTE)
    row = judged("identity_change", "reported", 9, 0)  # also where nothing was compared
    assert need(Policy.ONE_IDENTITY) == needed(row, 29 * MINUTE)
    assert need(Policy.ONE_IDENTITY, proven=False) == needed(row, 31 * MINUTE)
    assert need(Policy.ONE_IDENTITY, Policy.GO_ON_SOONER) == needed(row, 25 * 60 * MINUTE)


def test_only_breaks_that_need_nothing_else_are_kept():
    found = added([
        *(parted(**MOVED, **KEY) for _ in range(5)), parted(**MOVED), parted(**MOVED),
        changed(MODEL, **MOVED, **KEY), changed(MODEL), parted(),
    ])  # fmt: skip
    assert (10, 1) == (found.breaks, found.beyond)
    told = dict(found.best())
    freeze, identity = told[Remedy(Policy.FREEZE, "_meta")], told[Remedy(Policy.ONE_IDENTITY)]
    assert (8, 5, 7, 1) == (freeze.breaks, freeze.kept.turns, freeze.possible.turns, freeze.left)
    assert (45_000, 63_000) == (freeze.kept.missed, freeze.possible.missed)
    assert (2, 1, 1) == (identity.breaks, identity.kept.turns, identity.left)
    assert [
        "Freezing `_meta` would have kept 5, at most 7, of 8 breaks warm.",
        "One model, effort, tier and cache key per session would have kept 1 of 2 breaks warm.",
    ] == [sentence(*one) for one in found.best()]


def test_at_most_is_said_where_nothing_is_proven_and_none_where_nothing_is_kept():
    (only,) = added([parted(**MOVED)]).best()
    assert "Freezing `_meta` would have kept at most 1 of 1 break warm." == sentence(*only)
    said = [sentence(*one) for one in added([changed(TIME, SORTED)]).best()]
    assert all("would have kept none of 1 break warm" in one for one in said)
    assert 2 == len(said)


def test_every_change_of_the_catalogue_has_a_policy_and_every_policy_its_words():
    assert set(_OF_FIELDS) <= set(FIELDS)
    assert set(_OF_HISTORY) <= set(HISTORY)
    assert set(Policy) - {Policy.NONE} == set(SENTENCES)


BREAKS = st.lists(
    st.tuples(
        st.frozensets(st.sampled_from([Remedy(policy) for policy in Policy]), min_size=1),
        st.booleans(),
        st.none() | st.integers(0, 99),
    ),
    max_size=12,
).flatmap(lambda some: st.tuples(st.just(some), st.permutations(some)))


@settings(max_examples=40)
@given(BREAKS)
def test_no_break_is_kept_twice_and_their_order_does_not_matter(both):
    one, other = Remedies(), Remedies()
    for found, some in zip((one, other), both, strict=True):
        for remedies, proven, missed in some:
            found.add(Needed(remedies, proven), Loss(missed, None, None), "turn")
    assert one == other
    everything = one.by_remedy.values()
    alone = [missed for remedies, _, missed in both[0] if len(remedies) == 1]
    assert len(alone) == sum(saved.possible.turns for saved in everything)
    assert sum(missed or 0 for missed in alone) == sum(
        saved.possible.tokens for saved in everything
    )
    assert all(saved.kept.turns <= saved.possible.turns <= saved.breaks for saved in everything)
    assert NOTHING not in dict(one.best())
