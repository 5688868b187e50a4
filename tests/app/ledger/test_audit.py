"""The audit names exactly the rows that break the chain of digests, and doubts no other."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from app.ledger import audit as audits
from app.ledger.audit import Answered, Continued, Recent, Result, Verdict, audit, judge
from app.ledger.facts import to_row
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.writer import write_rows
from engine.model import Kind
from tests.support import virtual_time
from tests.support.conversations import Conversations
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, output_of, user
from tests.support.rows import START_MS, make_row

ALL = Filter(start=0, end=2**50)


def verified(engine, view=ALL):
    """The findings as {turn id: verdict}, and the result."""
    result = Result()
    findings = {one.turn.turn_id: one.verdict for one in audit(engine, view, result)}
    return findings, result


def first(turn_id="first", **more):
    given = {"mode": "ws_full", "response_id": "resp_1", "baseline_digest": "d1"}
    return make_row(turn_id=turn_id, **(given | more))


def second(turn_id="second", **more):
    given = {"started_at": START_MS + 5_000, "previous_response_id": "resp_1"}
    left = {"prefix_digest": "d1", "response_id": "resp_2", "baseline_digest": "d2"}
    return make_row(turn_id=turn_id, **(given | left | more))


# --- the rule ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([first(), second()], {}),
        ([first(), second(prefix_digest="d9")], {"second": Verdict.PREFIX_DIFFERS}),
        ([first(), second(mode="http_incremental")], {}),
        (
            [first(), second(mode="http_incremental", prefix_digest="d9")],
            {"second": Verdict.PREFIX_DIFFERS},
        ),
        ([second()], {"second": Verdict.NO_PREDECESSOR}),
        ([first(), second(prefix_digest=None)], {"second": Verdict.NO_DIGEST}),
        ([first(baseline_digest=None), second()], {"second": Verdict.PREDECESSOR_WITHOUT_DIGEST}),
        ([first(), second(previous_response_id=None)], {"second": Verdict.NAMES_NO_RESPONSE}),
        # A full turn proves nothing and needs nothing.
        ([first(), second(mode="ws_full", prefix_digest="d9")], {}),
        # Tenants and upstreams are worlds of their own.
        (
            [first(tenant="other", session_key="k"), second()],
            {"second": Verdict.OTHER_TENANT},
        ),
        (
            [first(upstream="other", session_key="k"), second()],
            {"second": Verdict.OTHER_TENANT},
        ),
        (
            [first(tenant="import", session_key="k", baseline_digest=None), second()],
            {"second": Verdict.NO_PREDECESSOR},
        ),
        (
            [first(), first("twin", tenant="other", baseline_digest="d7"), second()],
            {},
        ),
        # A response that two gateways recorded, and one that was recorded by an import too.
        ([first(), first("again", baseline_digest="d8"), second()], {}),
        ([first(), first("again", baseline_digest=None), second()], {}),
        (
            [first(), first("again"), second(prefix_digest="d9")],
            {"second": Verdict.PREFIX_DIFFERS},
        ),
        # Forks over a stored response.
        ([first(), second(), second("third", response_id="resp_3")], {}),
        # Within another session of the same tenant and upstream.
        ([first(session_key="k"), second()], {}),
        # Whatever order the clocks tell.
        ([first(started_at=START_MS + 9_000), second()], {}),
        # A warm-up with nothing in it leaves the empty transcript.
        ([first(baseline_digest=""), second(prefix_digest="")], {}),
    ],
)
def test_a_continued_turn_hangs_on_what_the_turn_before_it_left(engine, rows, expected):
    write_rows(engine, rows)
    findings, result = verified(engine)
    assert findings == expected
    wrong = {Verdict.PREFIX_DIFFERS, Verdict.OTHER_TENANT, Verdict.NAMES_NO_RESPONSE}
    assert result.wrong == sum(verdict in wrong for verdict in expected.values())
    assert result.unknown == len(expected) - result.wrong
    assert result.incremental == result.wrong + result.unknown + result.verdicts[Verdict.VERIFIED]


def test_an_empty_ledger_has_nothing_wrong(engine):
    assert verified(engine) == ({}, Result())


def test_a_predecessor_is_found_outside_the_filter(engine):
    write_rows(engine, [first(), second()])
    view = Filter(start=START_MS + 5_000, end=2**50, include={"mode": ("ws_incremental",)})
    findings, result = verified(engine, view)
    assert findings == {}
    assert result.verdicts == Counter({Verdict.VERIFIED: 1})


def test_only_the_turns_of_the_filter_are_judged(engine):
    write_rows(engine, [first(), second(prefix_digest="d9")])
    findings, _ = verified(engine, Filter(start=0, end=2**50, include={"mode": ("ws_full",)}))
    assert findings == {}


# --- against an oracle -------------------------------------------------------------------------

_few = st.sampled_from(["a", "b", "c"])
_row = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(["t1", "t2"]),
        "upstream": st.sampled_from(["u1", "u2"]),
        "session_key": _few,
        "started_at": st.integers(START_MS, START_MS + 3),
        "mode": st.sampled_from([None, "ws_full", "ws_incremental", "http_incremental"]),
        "response_id": st.none() | _few,
        "previous_response_id": st.none() | _few,
        "prefix_digest": st.none() | st.sampled_from(["d1", "d2"]),
        "baseline_digest": st.none() | st.sampled_from(["d1", "d2"]),
    }
)


def naive(rows):
    """Every row against every other one."""
    expected = {}
    for row in rows:
        if row.mode not in ("ws_incremental", "http_incremental"):
            continue
        turn = Continued(
            row.turn_id,
            row.session,
            row.session_key,
            row.tenant,
            row.upstream,
            row.previous_response_id,
            row.prefix_digest,
        )
        named = [
            Answered(one.tenant, one.upstream, one.response_id, one.baseline_digest)
            for one in rows
            if one.response_id is not None and one.response_id == row.previous_response_id
        ]
        expected[row.turn_id] = judge(turn, named)
    return expected


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(given_rows=st.lists(_row, max_size=14))
def test_chunks_and_bounds_change_nothing(holding, monkeypatch, given_rows):
    rows = [make_row(turn_id=f"t{n}", **values) for n, values in enumerate(given_rows)]
    monkeypatch.setattr(audits, "CHUNK", 3)
    monkeypatch.setattr(audits, "PENDING", 2)
    monkeypatch.setattr(audits, "REMEMBERED", 1)
    expected = naive(rows)
    findings, result = verified(holding(rows))
    assert findings == {
        turn_id: verdict for turn_id, verdict in expected.items() if verdict is not Verdict.VERIFIED
    }
    assert result.verdicts == Counter(expected.values())


def test_what_is_remembered_is_bounded():
    recent = Recent(2)
    for n in range(5):
        recent.add(Answered("t", "u", f"resp_{n}", f"d{n}"))
    asked = [Continued("x", None, "k", "t", "u", f"resp_{n}", f"d{n}") for n in range(5)]
    assert [recent.holds(turn) for turn in asked] == [False, False, False, True, True]


# --- what the engine writes --------------------------------------------------------------------


def rows_of(facts):
    return [to_row(one, gateway_version="test") for one in facts]


async def test_the_rows_of_a_conversation_are_a_chain_of_digests(engine):
    stack = Stack(make_core())
    body = {"model": MODEL, "store": False, "stream": True}
    history = [user("run ls")]
    for _ in range(4):
        events = await stack.turn({**body, "tools": [TOOL], "input": history})
        outputs = events[-1]["response"]["output"]
        history += outputs
        history += [output_of(i["call_id"]) for i in outputs if i["type"] == "function_call"]
        history.append(user("go on"))
    write_rows(engine, rows_of(stack.facts))
    findings, result = verified(engine)
    assert findings == {}
    assert result.verdicts == Counter({Verdict.VERIFIED: 3})


TOOL = {"type": "function", "name": "exec_command", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def conversed():
    """Facts of random conversations: one list per seed, for each is a provider of its own."""

    async def run(seed):
        conversations = Conversations(seed)
        await conversations.run(60)
        return conversations.stack.facts

    return [virtual_time.run(run(seed)) for seed in range(2_002, 2_016)]


def with_continued_turns(conversed):
    """Four conversations, each with its turns that were continued."""
    pairs = [(fs, [f for f in fs if f.prefix_digest and f.mode.incremental]) for fs in conversed]
    return [pair for pair in pairs if pair[1]][:4]


def test_every_incremental_row_of_random_conversations_passes(holding, conversed):
    """What cannot be checked is only what the client itself hung on an id, or what got no answer."""
    total = Counter()
    for facts in conversed:
        findings, result = verified(holding(rows_of(facts)))
        assert result.wrong == 0
        assert set(findings.values()) <= {Verdict.NO_DIGEST}
        known = {one.turn_id: one for one in facts}
        for turn_id in findings:
            row = known[turn_id]
            assert row.reason == "client_anchored" or row.baseline_digest is None
        total += result.verdicts
    assert total[Verdict.VERIFIED] > 200


def test_a_row_that_was_tampered_with_is_named_and_no_other(holding, conversed):
    for facts, continued in with_continued_turns(conversed):
        engine = holding(rows_of(facts))
        before, _ = verified(engine)
        row = continued[len(continued) // 2]
        with engine.begin() as connection:
            change = update(turns).where(turns.c.turn_id == row.turn_id)
            connection.execute(change.values(prefix_digest="0" * 32))
        assert verified(engine)[0] == {**before, row.turn_id: Verdict.PREFIX_DIFFERS}


def test_all_that_hang_on_an_altered_turn_are_named(holding, conversed):
    for facts, continued in with_continued_turns(conversed):
        engine = holding(rows_of(facts))
        before, _ = verified(engine)
        named = continued[0].previous_response_id
        with engine.begin() as connection:
            change = update(turns).where(turns.c.response_id == named)
            connection.execute(change.values(baseline_digest="0" * 32))
        hanging = {f.turn_id for f in continued if f.previous_response_id == named}
        assert hanging
        assert verified(engine)[0] == {**before, **dict.fromkeys(hanging, Verdict.PREFIX_DIFFERS)}


def test_a_pruned_ledger_has_unknown_rows_and_no_wrong_ones(holding, conversed):
    facts = conversed[0]
    engine = holding(rows_of(facts))
    kept = len(facts) // 2
    with engine.begin() as connection:
        old = [one.turn_id for one in facts[:kept]]
        connection.execute(delete(turns).where(turns.c.turn_id.in_(old)))
    findings, result = verified(engine)
    assert result.wrong == 0
    assert Verdict.NO_PREDECESSOR in findings.values()
    assert result.verdicts[Verdict.VERIFIED] > 0


def test_compactions_and_warmups_were_among_them(conversed):
    """They occur in the conversations above; else those would prove less than they say."""
    kinds = Counter(one.kind for facts in conversed for one in facts)
    assert kinds[Kind.WARMUP] > 3
    assert kinds[Kind.COMPACTION] >= 3


# --- how it is told ----------------------------------------------------------------------------


def test_a_finding_is_one_line_with_turn_session_and_what_is_wrong(engine):
    write_rows(engine, [first(), second(prefix_digest="d9")])
    result = Result()
    (finding,) = audit(engine, ALL, result)
    assert audits.line(finding, "text") == (
        "wrong: turn second of session session-a continues another transcript than the turn "
        "before left (response resp_1)"
    )
    told = json.loads(audits.line(finding, "jsonl"))
    assert (told["turn_id"], told["verdict"], told["wrong"]) == ("second", "prefix_differs", True)
    assert audits.summary(result, "text") == (
        "2 turns read, 1 of them incremental: 0 verified, 1 wrong, 0 unknown"
    )
    assert json.loads(audits.summary(result, "jsonl"))["prefix_differs"] == 1


def test_a_session_whose_name_cannot_be_printed_is_told_by_its_key(engine):
    write_rows(engine, [second(session="\x1b[31m", session_key="k1")])
    (finding,) = audit(engine, ALL, Result())
    assert audits.line(finding, "text") == (
        "unknown: turn second of session k1 continues a response of which no row is left "
        "(response resp_1)"
    )


def test_progress_counts_the_rows_that_were_read(engine):
    write_rows(engine, [first(), second()])
    told: list[int] = []
    assert list(audit(engine, ALL, Result(), progress=told.append)) == []
    assert told == [2]
