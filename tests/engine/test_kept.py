"""Which kept response a turn can hang on, and what an upstream says of keeping it."""

from __future__ import annotations

import json

import pytest

from engine import kept
from engine.chain import Anchor, Chain, Epoch, KeptChain, stage
from engine.decision import Asker
from engine.model import ColdCause, Policy, Reason
from engine.request import own_copy, split
from engine.stream import Fold
from tests.support.provider import MODEL, user

ASKER = Asker(None, b"", b"k")
ANSWER = {"type": "message", "role": "assistant", "id": "m1", "content": "hello"}


def request(*items, **fields):
    return split(json.dumps({"model": MODEL, **fields, "input": list(items)}).encode())


def anchor(*items, born=1.0, keeps=True, cold=None, account=(), **fields):
    before = request(*items, **fields)
    held, digest = stage(before.items[:-1], own_copy(before.fields), None).baseline(
        before.items[-1:], b"k"
    )
    return Anchor(
        id=f"an_{born}",
        response_id=f"resp_{born}",
        session="s",
        fields=own_copy(before.fields),
        items=held,
        digest=digest,
        epoch=1,
        born=born,
        size=0,
        kept=KeptChain("ch", account=account) if keeps else None,
        cold=cold,
    )


def decide(anchors, turn, policy=None, **account):
    policy = policy or Policy(continuation="store")
    return kept.decide(anchors, turn, policy, Epoch(), ASKER, **account)


@pytest.mark.parametrize(
    ("patterns", "model", "expected"),
    [
        ((), "anything", True),
        (("gpt-*",), "gpt-5.6", True),
        (("gpt-*",), "o3", False),
        (("gpt-5",), "gpt-5.6", False),
        (("o3", "gpt-5"), "gpt-5", True),
        (("*",), None, True),
        (("gpt-*",), None, False),
        (("gpt-*",), "gpt", False),
        (("gpt-*",), "gptX", False),
        (("X",), None, False),
        (("",), None, True),
    ],
)
def test_a_pattern_ends_in_a_star_or_is_the_whole_name(patterns, model, expected):
    assert expected is kept.covers(patterns, model)


@pytest.mark.parametrize(
    ("fields", "force", "expected"),
    [
        ({}, False, True),
        ({"store": None}, False, True),
        ({"store": True}, False, True),
        ({"store": False}, False, False),
        ({"store": False}, True, True),
        *(
            ({"store": odd}, force, False)
            for odd in (0, "false", "", [])
            for force in (False, True)
        ),
    ],
)
def test_what_a_client_asks_not_to_store_is_stored_only_by_the_operators_policy(
    fields, force, expected
):
    assert expected is kept.may_store(request(user("a"), **fields), Policy(force_store=force))


def test_storing_changes_nothing_but_the_field_and_nothing_where_it_says_so():
    given = request(user("a"), store=True)
    assert given is kept.storing(given)
    changed = kept.storing(request(user("a"), store=False, tools=[]))
    body = json.loads(changed.post(None, None, stream=None))
    assert {"model": MODEL, "store": True, "tools": [], "input": [user("a")]} == body


def test_the_longest_kept_prefix_is_taken_and_of_equals_the_newest():
    short, one = anchor(user("a"), ANSWER), anchor(user("a"), ANSWER, born=2.0)
    long = anchor(user("a"), ANSWER, user("b"), {**ANSWER, "id": "m2"}, born=0.5)
    turn = request(user("a"), ANSWER, user("b"), {**ANSWER, "id": "m2"}, user("c"))
    plan = decide([short, one, long], turn)
    assert (Reason.OK, long) == (plan.reason, plan.compared)
    for given in ([one, short], [short, one]):
        assert one is decide(given, request(user("a"), ANSWER, user("x"))).compared


@pytest.mark.parametrize(
    ("held", "reason", "fallback"),
    [
        ({"keeps": False, "cold": ColdCause.HTTP}, Reason.STORE_UNSUPPORTED, "not_kept"),
        ({"cold": ColdCause.REJECTED}, Reason.PREVIOUS_RESPONSE_NOT_FOUND, None),
        ({"cold": ColdCause.AFTER_FAILED}, Reason.CONNECTION_LOST, "after_failed"),
        ({"cold": ColdCause.EPOCH_RESET}, Reason.EPOCH_RESET, None),
        ({"instructions": "other"}, Reason.NON_INPUT_FIELDS_CHANGED, None),
    ],
)
def test_what_cannot_be_hung_on_is_said_with_its_cause(held, reason, fallback):
    plan = decide([anchor(user("a"), ANSWER, **held)], request(user("a"), ANSWER, user("b")))
    assert (reason, fallback) == (plan.reason, plan.fallback)


def test_nothing_new_is_no_continuation_and_an_edit_is_a_mismatch():
    one = anchor(user("a"), ANSWER)
    assert Reason.EMPTY_DELTA is decide([one], request(user("a"), ANSWER)).reason
    edited = request(user("z"), ANSWER, user("b"))
    assert Reason.PREFIX_MISMATCH is decide([one], edited).reason
    assert Reason.NO_BASELINE is decide([], edited).reason


MINE, OTHERS = (("openai-organization", "mine"),), (("openai-organization", "other"),)


def test_what_is_kept_for_one_account_is_hung_on_by_that_one_only():
    one = anchor(user("a"), ANSWER, account=MINE)
    turn = request(user("a"), ANSWER, user("b"))
    assert (Reason.OK, one) == (
        (plan := decide([one], turn, account=MINE)).reason,
        plan.compared,
    )
    for other in ({}, {"account": OTHERS}):
        plan = decide([one], turn, **other)
        assert (Reason.CONNECTION_LOST, "handshake_changed", one, ()) == (
            plan.reason, plan.fallback, plan.compared, plan.candidates,
        )  # fmt: skip


def test_changed_tools_hang_on_a_kept_response_only_when_relaxed():
    one = anchor(user("a"), ANSWER, tools=[1])
    turn = request(user("a"), ANSWER, user("b"), tools=[2])
    assert Reason.NON_INPUT_FIELDS_CHANGED is decide([one], turn).reason
    assert Reason.OK is decide([one], turn, Policy(continuation="store", tools="relaxed")).reason


def test_a_policy_freezes_old_outputs_of_a_kept_response():
    def output(meta):
        return {"type": "function_call_output", "call_id": "c", "output": {"_meta": meta}}

    one = anchor(user("a"), output(1), ANSWER)
    turn = request(user("a"), output(2), ANSWER, user("b"))
    assert Reason.PREFIX_MISMATCH is decide([one], turn).reason
    assert Reason.OK is decide([one], turn, Policy(continuation="store", freeze=("_meta",))).reason


def test_a_candidate_that_does_not_match_leaves_the_next_one_to_be_tried():
    longer = anchor(user("a"), ANSWER, user("x"), {**ANSWER, "id": "m2"}, born=3.0)
    shorter = anchor(user("a"), ANSWER)
    turn = request(user("a"), ANSWER, user("b"), user("c"), user("d"))
    plan = decide([shorter, longer], turn)
    assert (Reason.OK, shorter, ()) == (plan.reason, plan.compared, plan.candidates)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"id": "r", "status": "completed", "store": True}, True),
        ({"id": "r", "status": "completed", "store": False}, False),
        ({"id": "r", "status": "completed"}, False),
        ({"id": "r", "status": "completed", "store": "true"}, False),
        ({"status": "completed", "store": True}, False),
    ],
)
def test_a_response_is_kept_only_if_it_says_so_and_has_an_id(response, expected):
    fold = Fold()
    fold.feed(json.dumps({"type": "response.completed", "response": response}).encode())
    assert expected is kept.says_stored(fold)


def test_a_response_that_has_not_ended_says_nothing_of_being_kept():
    fold = Fold()
    body = {"id": "r", "status": "in_progress", "store": True}
    fold.feed(json.dumps({"type": "response.created", "response": body}).encode())
    assert (True, False) == (fold.response_id == "r", kept.says_stored(fold))


def test_no_depth_of_an_answer_raises():
    deep = b'{"id":"r","x":' + b'{"x":' * 100_000 + b"1" + b"}" * 100_001
    fold = Fold()
    fold.response_id, fold.last_response = "r", deep
    assert not kept.says_stored(fold)
    assert None is kept.hangs_on(deep, event=False)
    assert None is kept.hangs_on(b'{"response":' + deep + b"}", event=True)


def test_what_an_answer_hangs_on_is_read_from_its_first_event_or_its_body():
    body = {"id": "r2", "previous_response_id": "r1"}
    event = json.dumps({"type": "response.created", "response": body}).encode()
    assert "r1" == kept.hangs_on(event, event=True)
    assert "r1" == kept.hangs_on(json.dumps(body).encode(), event=False)
    assert None is kept.hangs_on(b'{"type":"response.output_item.added"}', event=True)
    assert None is kept.hangs_on(b'{"response":{"previous_response_id":null}}', event=True)
    assert None is kept.hangs_on(b"[" * 100_000, event=True)
    assert None is kept.hangs_on(b'{"response":{"previous_response_id":7}}', event=True)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, b'{"error":{"message":"no","param":"store"}}', True),
        (400, b'{"detail":"Store must be set to false"}', True),
        (403, b"Zero retention: store is not allowed.", True),
        (404, b"store", True),
        (422, b"STORE", True),
        (422, b" " * 4_091 + b"store", True),
        (422, b" " * 4_092 + b"store", False),
        (400, b'{"error":{"message":"restore the backup"}}', False),
        (429, b'{"error":{"param":"store"}}', False),
        (500, b"store", False),
    ],
)
def test_a_refusal_to_store_is_known_by_its_word(status, body, expected):
    assert expected is kept.refuses_to_store(status, body)


def answered(response_id):
    fold = Fold()
    fold.response_id = response_id
    return fold


@pytest.mark.parametrize("on_connection", [True, False])
@pytest.mark.parametrize(
    ("id_", "renamed", "expected"),
    [("resp_2", False, (False, False)), ("resp_1", False, (True, True)),
     ("resp_2", True, (False, True)), ("resp_1", True, (True, True))],
)  # fmt: skip
def test_an_id_names_two_if_it_was_given_again(id_, renamed, expected, on_connection):
    """One that was given elsewhere does not matter to a connection: it knows its latest response."""
    former = anchor("a", ANSWER)
    former.response_id, former.renamed = "resp_1", renamed
    chain = Chain("c", "conn", b"h", 0.0, 0.0) if on_connection else None
    assert expected[not on_connection] is kept.names_two(former, answered(id_), chain)
    assert kept.names_two(None, answered(id_), chain) is False
