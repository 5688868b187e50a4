import pytest

from app.analysis import drift
from app.analysis.drift import KINDS, drifts
from app.ledger.rows import COLUMNS, TurnRow
from tests.support.rows import START_MS, make_row


def turns(**values):
    """One turn a minute, each with the next value of each column."""
    number = len(next(iter(values.values())))
    return [
        make_row(
            turn_id=f"turn-{at}",
            started_at=START_MS + at * 60_000,
            input_tokens=10_000 + at,
            **{name: given[at] for name, given in values.items()},
        )
        for at in range(number)
    ]


def found(rows):
    return [(one.kind, one.changes, one.missed, one.example) for one in drifts(rows)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_flip_is_one_finding(kind):
    rows = turns(**{kind: ["a", "a", "b", "b"], "missed_tokens": [0, 0, 9_000, 0]})
    (one,) = drifts(rows)
    assert (kind, 1, 9_000, "turn-2", "a", "b") == (
        one.kind, one.changes, one.missed, one.example, one.before, one.now
    )  # fmt: skip
    assert one.first_at == one.last_at == rows[2].started_at


def test_going_to_and_fro_is_one_finding_with_each_change():
    rows = turns(service_tier=list("abab"), missed_tokens=[0, 2_000, 5_000, None])
    (one,) = drifts(rows)
    assert (3, 7_000, "turn-2") == (one.changes, one.missed, one.example)
    assert (rows[1].started_at, rows[3].started_at) == (one.first_at, one.last_at)
    assert "The service tier changed 3 times inside the session" in one.sentence


def test_what_is_not_known_is_no_change():
    assert [] == found(turns(prompt_cache_key=["a", None, "a", None]))
    assert [("prompt_cache_key", 1, 0, "turn-2")] == found(turns(prompt_cache_key=["a", None, "b"]))


def test_chains_side_by_side_have_each_their_own():
    """A sub-agent with a model of its own, by turns with its parent."""
    rows = turns(model=list("abab"), chain=list("pqpq"), reason=["no_baseline"] * 2 + ["ok"] * 2)
    rows[1].input_tokens = 5_000
    assert [] == found(rows)


def test_an_account_that_goes_on_with_a_longer_history_has_changed():
    known = {"session_key": ["k1", "k2"], "tenant": ["a", "b"], "reason": ["ok", "no_baseline"]}
    assert [("tenant", 1, 0, "turn-1")] == found(turns(**known))
    rows = turns(**known)
    rows[1].input_tokens = 500
    assert [] == found(rows)


def test_a_log_and_a_gateway_name_accounts_and_upstreams_each_in_its_own_way():
    """The first two turns of a session were not seen by the gateway."""
    sources = {"source": ["import:codex"] * 2 + ["gateway"] * 2, "model": list("aaab")}
    names = {"tenant": list("llgg"), "upstream": ["openai"] * 2 + ["main"] * 2}
    assert [("model", 1, 0, "turn-3")] == found(turns(**sources, **names))
    names = {"tenant": list("llgh"), "upstream": ["openai", "azure", "main", "main"]}
    kinds = {one.kind for one in drifts(turns(**(sources | names)))}
    assert {"tenant", "upstream", "model"} == kinds


def test_nothing_but_these_columns_is_asked_for():
    rows = turns(service_tier=list("ab"), chain=["c", "c"])
    bare = [
        TurnRow(**(dict.fromkeys(COLUMNS) | {n: getattr(row, n) for n in drift.COLUMNS}))
        for row in rows
    ]
    assert drifts(bare) == drifts(rows)
