from __future__ import annotations

import json
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from app.analysis.compaction import Resets, resets
from app.analysis.economics import Losses, cause_as_dict, remedies_as_dict, resets_as_dict, told
from app.analysis.waste import Waste
from app.ledger.rows import TurnRow
from tests.support.condensed import PAID, SAVES, condensed
from tests.support.reported import judged, some_turns


def added(rows: list[TurnRow]) -> Losses:
    found = Losses()
    for lost in told([("key-session-a", [400.0] * 6)], ((row, None) for row in rows)):
        found.add(*lost)
    return found


def test_a_turn_is_in_the_waste_of_one_cause_and_in_the_sum():
    found = added(some_turns())
    assert [("one_off_partial", 7_000), ("prefix_changed", 2_000), ("idle", 1_000)] == [
        (cause.verdict, waste.missed) for cause, waste in found.causes()
    ]
    assert (3, 10_000, 3) == (found.total.turns, found.total.missed, found.total.priced)
    # Of the session whose warm turns are known one turn lost something: 420 ms, and not 400.
    assert (1, 20) == (found.total.timed, found.total.ms)


def test_a_break_that_lost_nothing_is_a_break_and_no_waste():
    row = judged("hit", "proven", 0, 9, reason="prefix_mismatch", mode="ws_full")
    found = added([row])
    assert (Waste(), [], 1) == (found.total, found.causes(), found.remedies.breaks)


ROWS = st.lists(
    st.tuples(st.sampled_from(range(8)), st.none() | st.integers(0, 99), st.booleans()), max_size=12
).flatmap(lambda some: st.tuples(st.just(some), st.permutations(some)))


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_causes_add_up_to_the_rows_in_whatever_order(both):
    def rows(made: list[tuple[int, int | None, bool]]) -> list[TurnRow]:
        templates = some_turns()
        return [
            judged(
                templates[which].cache_verdict, templates[which].cache_grade, missed, 0,
                model="gpt-5.6-sol" if priced else "nobody-lists-it", reason=templates[which].reason,
                evidence=templates[which].evidence, started_at=0,
            )
            for which, missed, priced in made
        ]  # fmt: skip

    one, other = (added(rows(some)) for some in both)
    assert one == other
    for name in ("turns", "counted", "tokens", "priced", "nano", "timed", "ms"):
        summed = sum(getattr(waste, name) for waste in one.by_cause.values())
        assert summed == getattr(one.total, name)
    missed = [known for which, known, _ in both[0] if which in (3, 4, 5)]
    assert (len(missed), sum(n or 0 for n in missed)) == (one.total.turns, one.total.tokens)
    unknown = missed.count(None) == len(missed)
    assert unknown == (one.total.missed is None)


def test_as_json_unknown_is_null_and_money_a_decimal_number():
    rows = [judged("idle", "likely", 10_000, 0, started_at=1_793_577_600_000)]
    ((cause, waste),) = added(rows).causes()
    told_ = json.loads(json.dumps(cause_as_dict(cause, waste)))
    assert ("idle", "likely", None, "0.036", 20) == tuple(
        told_[name] for name in ("verdict", "grade", "change", "cost_usd", "delay_ms")
    )
    ((cause, waste),) = added(
        [judged("idle", "likely", None, 0, model="nobody-lists-it", ttft_ms=None)]
    ).causes()
    told_ = cause_as_dict(cause, waste)
    assert {None} == {told_[n] for n in ("missed_tokens", "cost_usd", "delay_ms", "delay_low_ms")}
    assert (1, 1) == (told_["turns_without_price"], told_["turns_without_delay"])


def test_remedies_and_resets_as_json():
    told_ = remedies_as_dict(added(some_turns()).remedies)
    assert (2, 0, ["freeze", "go_on_sooner"]) == (
        told_["breaks"], told_["breaks_beyond"], [one["policy"] for one in told_["remedies"]],
    )  # fmt: skip
    found = Resets.of(resets([*condensed(2), *condensed(9)]))
    told_ = json.loads(json.dumps(resets_as_dict(found)))
    assert (2, 1, 1, 1) == tuple(told_[n] for n in ("resets", "reached", "not_reached", "pairs"))
    loss = Decimal(PAID - 3 * SAVES).scaleb(-9)
    assert loss == Decimal(told_["batching_saves_usd"]) == -Decimal(told_["listed"][0]["net_usd"])
    assert {None} == {
        resets_as_dict(Resets())[name] for name in ("paid_usd", "saved_usd", "batching_saves_usd")
    }
