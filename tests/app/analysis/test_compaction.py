"""A history that was condensed, computed by hand.

gpt-5.6-sol: a million tokens of input cost 4 dollars, 0.40 when read, 5 when written; 20 for output.

Before the reset 100 000 tokens. The request that makes the summary reads all of them and writes 500:
100 000 × 400 + 500 × 20 000 = 50 000 000 nano-dollars. The turn after it has 20 000 tokens, 5 000 of
them read, all others written: 15 000 × (5 000 - 400) = 69 000 000. So 119 000 000 are paid, and each
turn saves 80 000 × 400 = 32 000 000: 3.72 turns, that is with the fourth.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import zip_longest
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.analysis.compaction import LISTED, Reset, Resets, advice, resets
from tests.support.condensed import PAID, SAVES, condensed, request, turn


def only(rows: list[SimpleNamespace]) -> Reset:
    (found,) = resets(rows)
    return found


def test_the_break_even_is_that_of_the_hand_calculation():
    one = only(condensed(3))
    assert (100_000, 20_000, 15_000, 1) == (one.before, one.after, one.not_read, one.requests)
    assert (PAID, SAVES) == (one.paid, one.saves)
    assert 4 == one.breaks_even
    assert (3, False, 3 * SAVES - PAID) == (one.turns, one.reached, one.net)
    assert (True, SAVES * 4 - PAID) == ((one := only(condensed(4))).reached, one.net)


@given(
    st.integers(2_000, 200_000),
    st.integers(2_000, 200_000),
    st.integers(0, 100),
    st.integers(1, 30),
)
def test_it_has_paid_for_itself_from_the_turn_on_that_is_named(before, after, share, turns):
    cached = after * share // 100
    rows = [
        turn(before, 0),
        turn(after, cached, epoch_reset_reason="summarize"),
        *(turn(after, after) for _ in range(turns - 1)),
    ]
    one = only(rows)
    paid, saves = (after - cached) * 3_600, (before - after) * 400
    assert (paid, saves, paid <= turns * saves) == (one.paid, one.saves, one.reached)
    if saves > 0:
        assert one.reached == (one.breaks_even <= turns)
    else:
        assert (None, True) == (one.breaks_even, one.never)


def test_what_nobody_knows_is_unknown_and_not_zero():
    for rows in (condensed(model="nobody-lists-it"), condensed()[2:]):
        one = only(rows)
        assert (None, None, None) == (one.breaks_even, one.reached, one.net)
        assert False is one.never
    rows = condensed()
    rows[1].output_tokens = None  # the request that made the summary is one of the costs
    assert None is only(rows).paid
    (one,) = resets(condensed(upstream="main"), {"main": "vllm"})
    assert (None, None) == (one.paid, one.saves)
    told = Resets.of(resets(rows))
    assert (1, 0, 0, None) == (told.number, told.priced, told.paid, advice(told))


def test_a_history_is_rewritten_by_a_word_a_request_or_a_verdict_and_by_nothing_else():
    first, after = turn(100_000, 9), turn(20_000, 5_000)
    assert [] == list(resets([first, after]))
    for word in ("turn_count", "connection_age", "manual"):
        assert [] == list(resets([first, turn(20_000, 5_000, epoch_reset_reason=word)]))
    assert 1 == len([*resets([first, request(), after])])
    assert 1 == len([*resets([first, turn(20_000, 5_000, cache_verdict="history_rewrite")])])
    assert [] == list(resets([first, request(status="failed"), after]))


def test_a_turn_that_failed_or_tells_no_usage_is_not_the_one_to_measure_by():
    rows = condensed()
    failed, silent = turn(None, None, status="failed"), turn(None, None, usage_state="missing")
    found = only([rows[0], failed, silent, rows[1], silent, rows[2], failed, silent])
    assert (PAID, SAVES, 2) == (found.paid, found.saves, found.turns)


def test_a_reset_before_the_last_one_had_paid_for_itself_should_have_been_one_with_it():
    rows = [*condensed(3), *condensed(9)[1:]]
    first, second = resets(rows)
    assert (True, False) == (first.too_soon, second.too_soon)
    told = Resets.of(resets(rows))
    (pair,) = told.to_batch
    assert (1, PAID - 3 * SAVES) == (told.pairs, pair.saved)
    assert (first.turn_id, second.turn_id) == (pair.first.turn_id, pair.second.turn_id)
    assert "1 reset came before" in (advice(told) or "")
    assert 0 == Resets.of(resets([*condensed(4), *condensed(9)[1:]])).pairs


def test_a_reset_is_told_from_its_own_chain_whatever_else_the_session_does():
    def beside(name: str, given: int, **more: Any) -> SimpleNamespace:
        return turn(given, given - 500, source="import:claude_code", chain=name, **more)

    main = condensed(3, source="import:claude_code", chain="main")
    agents = [beside(f"agent-{n % 2}", 9_000 + n) for n in range(12)]
    mixed = [row for place, row in enumerate(main) for row in (*agents[place :: len(main)], row)]
    one = only([*mixed, *agents[:2]])
    assert (100_000, 20_000, 3, PAID) == (one.before, one.after, one.turns, one.paid)
    other = condensed(2, source="import:claude_code", chain="agent-0")
    both = [row for pair in zip_longest(main, other) for row in pair if row is not None]
    told = Resets.of(resets(both))
    assert [(3, PAID), (2, PAID)] == [(one.turns, one.paid) for one in resets(both)]
    assert (2, 2 * PAID, 5 * SAVES, 0) == (told.number, told.paid, told.saved, told.pairs)


def test_a_short_request_before_which_the_history_was_long_and_is_again_is_no_reset():
    def inferred() -> SimpleNamespace:
        return turn(2_000, 0, cache_verdict="history_rewrite")

    long = [turn(100_000 + n, 99_000) for n in range(4)]
    assert [] == [*resets([long[0], inferred(), long[1], inferred(), long[2], long[3]])]
    short = [turn(20_000 + n, 19_000) for n in range(3)]
    stays = only([long[0], inferred(), *short])
    assert (100_000, 2_000, 4) == (stays.before, stays.after, stays.turns)
    told = turn(2_000, 0, cache_verdict="history_rewrite", epoch_reset_reason="summarize")
    assert (100_000, 2) == ((one := only([long[0], told, long[1]])).before, one.turns)
    rows = [*condensed(2), inferred(), turn(22_000, 21_000), long[0], inferred(), *short]
    assert [4, 4] == [one.turns for one in resets(rows)]


def test_a_summary_that_was_made_beside_the_conversation_is_paid_by_its_next_reset():
    log = {"source": "import:lingtai"}
    rows = condensed(2, chain="main", **log)
    rows[1:1] = beside = [request(chain="summaries", **log) for _ in range(2)]
    assert [3] == [one.requests for one in resets(rows)]
    assert [] == [*resets([rows[0], *beside, turn(101_000, 100_000, chain="main", **log)])]


def test_resets_of_two_sessions_are_no_pair():
    rows = [*condensed(1), *condensed(1, session_key="other")]
    told = Resets.of(resets(rows))
    assert (2, 0, 2, 0) == (told.number, told.reached, told.not_reached, told.pairs)
    assert (2 * PAID, 2 * SAVES) == (told.paid, told.saved)


def test_what_a_view_leaves_out_is_measured_by_and_not_counted():
    rows = condensed(2)
    rows[0].selected = rows[3].selected = False
    told = Resets.of(resets(rows))
    assert (1, 2 * SAVES) == (told.number, told.saved)
    rows[2].selected = False
    assert 0 == Resets.of(resets(rows)).number


def test_those_are_listed_that_cost_most():
    sessions = [condensed(n % 7 + 1, session_key=f"k{n}") for n in range(LISTED + 20)]
    told = Resets.of(one for rows in sessions for one in resets(rows))
    nets = [one.net for one in told.listed]
    assert LISTED == len(nets)
    assert sorted(nets) == nets
    assert min(nets) == SAVES - PAID


@given(st.permutations(range(5)))
def test_the_order_of_sessions_does_not_matter(order):
    sessions = [condensed(n + 1, session_key=f"k{n}") for n in range(5)]
    one = Resets.of(resets([row for rows in sessions for row in rows]))
    other = Resets.of(resets([row for n in order for row in sessions[n]]))
    figures = [
        (told.number, told.paid, told.saved, told.reached, [r.turn_id for r in told.listed])
        for told in (one, other)
    ]
    assert figures[0] == figures[1]
    assert isinstance(one.paid, Decimal)
