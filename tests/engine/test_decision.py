"""Which anchor a request may continue, and why not (DESIGN 4.2, 4.4)."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine import digests, items
from engine.chain import Anchor, Chain, ChainState, Epoch, HeldItem, known, stage
from engine.decision import Asker, decide, eligible
from engine.model import ColdCause, Policy, Reason
from engine.request import own_copy, split

KEY = b"k" * 32
ASKER = Asker(socket=None, handshake=b"h", digest_key=KEY)


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


def request(*given, **fields):
    return split(json.dumps({"model": "m", **fields, "input": list(given)}).encode())


def anchor(*held, born=1.0, live=True, fields=None, **more):
    made = tuple(HeldItem(Raw(json.dumps(i).encode()), received=False) for i in held)
    given = request(**(fields or {})).fields
    one = Anchor(
        id=f"a{born}", response_id=f"r{born}", session="s", fields=given, items=made,
        digest=digests.EMPTY, epoch=1, born=born, size=1, **more,
    )  # fmt: skip
    if live:
        chain = Chain(f"c{born}", "conn", b"h", 0.0, 0.0)
        chain.commit(one, born)
    return one


def plan(anchors, asked, *, policy=None, epoch=None, asker=ASKER):
    return decide(anchors, asked, policy or Policy(), epoch or Epoch(), asker)


def test_a_request_that_extends_an_anchor_continues_it():
    one = anchor(user("a"), said("b"))
    made = plan([one], request(user("a"), said("b"), user("c")))
    assert (made.reason, made.candidates, made.compared) == (Reason.OK, (one.chain,), one)
    assert made.eligible


def test_its_twin_with_a_space_more_does_not():
    one = anchor(user("a"), said("b"))
    made = plan([one], request(user("a"), said("b "), user("c")))
    assert made.candidates == ()
    assert made.reason is Reason.NO_BASELINE  # it echoes nothing of it


def test_the_longest_proven_prefix_comes_first_and_then_the_newest():
    short, old, new = (
        anchor(user("a"), said("b"), born=3.0),
        anchor(user("a"), said("b"), user("c"), said("d"), born=1.0),
        anchor(user("a"), said("b"), user("c"), said("d"), born=2.0),
    )
    asked = request(user("a"), said("b"), user("c"), said("d"), user("e"))
    made = plan([short, old, new], asked)
    assert made.candidates == (new.chain, old.chain, short.chain)
    assert made.compared is new


def held_as_a_body(*given, born, style=None):
    """An anchor as a turn leaves it: one body, and the answer to it."""
    asked = split(json.dumps({"model": "m", "input": list(given)}, separators=style).encode())
    staged = stage(asked.items, own_copy(asked.fields), None)
    held, digest = staged.baseline([], KEY)
    one = Anchor(f"a{born}", f"r{born}", "s", staged.fields, held, digest, 1, born, held.size)
    Chain(f"c{born}", "conn", b"h", 0.0, 0.0).commit(one, born)
    return one


def asked_after(anchors, *given, style=None):
    body = json.dumps({"model": "m", "input": list(given)}, separators=style).encode()
    return split(body, known(anchors))


def test_the_first_is_found_by_reading_and_others_are_ranked_only_without():
    short = held_as_a_body(user("a"), said("b"), born=1.0)
    other = held_as_a_body(user("a"), said("b"), born=2.0, style=(", ", " : "))
    first = held_as_a_body(user("a"), said("b"), user("c"), born=3.0)
    asked = asked_after([short, other, first], user("a"), said("b"), user("c"), user("d"))
    assert plan([short, other, first], asked).candidates == (first.chain, short.chain)
    respelled = asked_after(
        [first], user("a"), said("b"), user("c"), user("d"), style=(",  ", ":  ")
    )
    assert plan([first], respelled).candidates == (first.chain,)


@pytest.mark.parametrize(("fields", "before"), [({}, 0), ({"store": True}, 1)])
def test_the_items_that_differ_are_compared_and_described_in_one_reading(
    fields, before, monkeypatch
):
    read, decode = Counter(), items._DECODER.decode
    spy = SimpleNamespace(decode=lambda text: read.update([text]) or decode(text))
    monkeypatch.setattr(items, "_DECODER", spy)
    one = anchor(user("a"), said("b"), user("c"), said("x"))
    asked = request(user("a"), said("b"), user("d"), said("x"), user("e"), **fields)
    made = plan([one], asked)
    assert made.evidence.path == "/content"
    # They are read before to know what is echoed, the held one unless it was compared already.
    assert [before + 1, 1 + 1] == [read[json.dumps(user(text))] for text in "cd"]


def test_a_plan_stays_as_it_was_made():
    made = plan([], request(user("a")))
    with pytest.raises(AttributeError):
        made.reason = Reason.OK


def test_without_any_anchor_there_is_no_baseline():
    made = plan([], request(user("a")))
    assert (made.reason, made.compared, made.eligible) == (Reason.NO_BASELINE, None, False)


def test_changed_fields_are_named_and_the_evidence_holds_both():
    one = anchor(user("a"), said("b"))
    asked = request(user("A"), said("b"), user("c"), model="n", user="u")
    made = plan([one], asked)
    assert (made.reason, made.changed) == (Reason.NON_INPUT_FIELDS_CHANGED, ("model", "user"))
    assert (made.evidence.index, made.evidence.changed_fields) == (0, ("model", "user"))
    assert [(told["field"], told["change"]) for told in made.evidence.field_details] == [
        ("model", "changed"),
        ("user", "added"),
    ]
    assert (made.candidates, made.compared) == ((), one)


def test_a_field_that_the_protocol_does_not_know_is_named_by_a_digest():
    one = anchor(user("a"), said("b"))
    made = plan([one], request(user("a"), said("b"), user("c"), my_own_field=1))
    assert made.reason is Reason.NON_INPUT_FIELDS_CHANGED
    (name,) = made.changed
    assert name.startswith("~")
    shown = plan([one], request(user("a"), said("b"), user("c"), my_own_field=1),
                 policy=Policy(visible_keys=("my_own_field",)))  # fmt: skip
    assert shown.changed == ("my_own_field",)


def test_changed_tools_continue_only_when_relaxed():
    one = anchor(user("a"), said("b"), fields={"tools": [1]})
    asked = request(user("a"), said("b"), user("c"), tools=[2])
    assert plan([one], asked).changed == ("tools",)
    assert plan([one], asked, policy=Policy(tools="relaxed")).reason is Reason.OK


def test_an_edited_prefix_is_a_mismatch_with_its_place():
    one = anchor(user("a"), said("b"), user("c"), said("d"))
    made = plan([one], request(user("a"), said("b"), user("C"), said("d"), user("e")))
    assert (made.reason, made.evidence.index, made.compared) == (Reason.PREFIX_MISMATCH, 2, one)
    assert made.eligible


def test_a_shorter_history_is_a_mismatch_too():
    one = anchor(user("a"), said("b"), user("c"), said("d"))
    assert plan([one], request(user("a"), said("b"))).reason is Reason.PREFIX_MISMATCH


def test_an_empty_delta_continues_only_a_warm_up():
    asked = request(user("a"), said("b"))
    answered = anchor(user("a"), said("b"))
    made = plan([answered], asked)
    assert (made.reason, made.candidates, made.compared) == (Reason.EMPTY_DELTA, (), answered)
    assert plan([anchor(user("a"), said("b"), warmup=True)], asked).reason is Reason.OK


def test_an_empty_delta_is_not_why_a_lost_warm_up_is_not_continued():
    lost = anchor(user("a"), said("b"), live=False, warmup=True, cold=ColdCause.CLOSED)
    made = plan([lost], request(user("a"), said("b")))
    assert (made.reason, made.fallback) == (Reason.CONNECTION_LOST, "closed")


def test_an_opaque_anchor_proves_nothing():
    assert plan([anchor(said("b"), opaque=True)], request(said("b"), user("c"))).candidates == ()
    assert plan([anchor(opaque=True)], request(user("c"))).reason is Reason.NO_BASELINE


def test_an_opaque_anchor_explains_nothing():
    opaque = anchor(said("b"), opaque=True)
    made = plan([opaque], request(said("b"), user("c")), epoch=Epoch(pending="manual"))
    assert (made.reason, made.compared) == (Reason.NO_BASELINE, None)


def test_a_policy_freezes_old_outputs_in_the_decision_and_in_what_explains_it():
    def output(text, meta):
        return {
            "type": "function_call_output",
            "call_id": "c",
            "output": {"_meta": meta, "t": text},
        }

    one = anchor(user("a"), output("x", 1), said("b"))
    asked = request(user("a"), output("x", 2), said("b"), user("c"))
    assert plan([one], asked).reason is Reason.PREFIX_MISMATCH
    assert plan([one], asked, policy=Policy(freeze=("_meta",))).reason is Reason.OK
    lost = anchor(user("a"), output("x", 1), said("b"), live=False, cold=ColdCause.CLOSED)
    made = plan([lost], asked, policy=Policy(freeze=("_meta",)))
    assert (made.reason, made.fallback) == (Reason.CONNECTION_LOST, "closed")
    edited = request(user("a"), output("y", 2), said("b"), user("c"))
    made = plan([one], edited, policy=Policy(freeze=("_meta",), visible_keys=("_meta", "t")))
    assert (made.reason, made.evidence.path) == (Reason.PREFIX_MISMATCH, "/output/t")


ASKED = request(user("a"), said("b"), user("c"))


def test_a_busy_chain_is_not_continued():
    one = anchor(user("a"), said("b"))
    one.chain.stage(2.0)
    assert (plan([one], ASKED).reason, plan([one], ASKED).candidates) == (Reason.CHAIN_BUSY, ())


def test_a_leased_chain_is_continued_by_its_socket_only():
    one = anchor(user("a"), said("b"))
    one.chain.leased_by = "mine"
    theirs = plan([one], ASKED, asker=Asker("theirs", b"h", KEY))
    assert (theirs.reason, theirs.fallback, theirs.candidates) == (Reason.CHAIN_BUSY, "leased", ())
    assert plan([one], ASKED, asker=Asker("mine", b"h", KEY)).reason is Reason.OK


def test_other_handshake_headers_need_another_connection():
    free, mine = anchor(user("a"), said("b")), anchor(user("a"), said("b"))
    mine.chain.leased_by = "mine"
    for one, socket in ((free, None), (free, "mine"), (mine, "mine")):
        made = plan([one], ASKED, asker=Asker(socket, b"x", KEY))
        assert (made.reason, made.fallback, made.candidates, made.compared) == (
            Reason.CONNECTION_LOST, "handshake_changed", (), one,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "reason", "fallback"),
    [
        (ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed"),
        (ColdCause.AFTER_FAILED, Reason.CONNECTION_LOST, "after_failed"),
        (ColdCause.MISSING_OUTPUT_ITEMS, Reason.MISSING_OUTPUT_ITEMS, None),
        (ColdCause.OUTPUT_CONFLICT, Reason.OUTPUT_CONFLICT, None),
        (ColdCause.MISSING_RESPONSE_ID, Reason.MISSING_RESPONSE_ID, None),
        (None, Reason.CONNECTION_LOST, "closed"),
    ],
)
def test_a_cold_anchor_tells_why(cause, reason, fallback):
    one = anchor(user("a"), said("b"), live=False, cold=cause)
    made = plan([one], ASKED)
    assert (made.reason, made.fallback, made.candidates) == (reason, fallback, ())


def test_a_reset_is_told_with_its_word():
    one = anchor(user("a"), said("b"))
    one.chain.cool(ColdCause.EPOCH_RESET, "summarize")
    made = plan([one], ASKED)
    assert (made.reason, made.reset_reason, made.eligible, made.compared) == (
        Reason.EPOCH_RESET,
        "summarize",
        False,
        one,
    )


@pytest.mark.parametrize(
    ("pending", "known", "reason"),
    [("manual", True, Reason.EPOCH_RESET), ("manual", False, Reason.NO_BASELINE),
     ("compaction", False, Reason.EPOCH_RESET), (None, True, Reason.NO_BASELINE)],
)  # fmt: skip
def test_a_request_that_echoes_nothing_after_a_reset(pending, known, reason):
    anchors = [anchor(user("a"), said("b"))] if known else []
    made = plan(anchors, request(user("x")), epoch=Epoch(pending=pending))
    assert made.reason is reason
    assert made.reset_reason == (pending if reason is Reason.EPOCH_RESET else None)


def test_a_request_is_compared_with_the_anchor_that_it_echoes_most():
    one = anchor(user("a"), said("b"), user("c"), said("d"), born=1.0)
    two = anchor(user("a"), said("b"), user("x"), said("y"), born=2.0)
    made = plan([one, two], request(user("A"), said("b"), user("c"), said("d"), user("e")))
    assert made.compared is one


def test_an_id_tells_apart_two_anchors_of_equal_words():
    one = anchor(user("a"), {**said("b"), "id": "m1"}, born=1.0)
    two = anchor(user("a"), {**said("b"), "id": "m2"}, born=2.0)
    made = plan([one, two], request(user("A"), {**said("b"), "id": "m1"}, user("c")))
    assert made.compared is one


def test_siblings_never_take_each_others_chain():
    one, two = anchor(user("a"), said("p"), born=1.0), anchor(user("a"), said("q"), born=2.0)
    for mine, word in ((one, "p"), (two, "q")):
        assert plan([one, two], request(user("a"), said(word), user("z"))).candidates == (
            mine.chain,
        )


def test_items_that_cannot_be_read_match_by_their_bytes_only():
    raw = b'{"type":"message","role":"assistant","content":"a","content":"b"}'
    held = anchor(live=False)
    held.items = (HeldItem(Raw(raw), received=True),)
    chain = Chain("c", "conn", b"h", 0.0, 0.0)
    chain.commit(held, 1.0)
    same = split(b'{"model":"m","input":[' + raw + b',{"role":"user","content":"c"}]}')
    other = split(b'{"model":"m","input":[ ' + raw.replace(b",", b", ") + b',{"role":"user"}]}')
    assert plan([held], same).reason is Reason.OK
    assert plan([held], other).candidates == ()


NEVER_ELIGIBLE = {
    "continuation_off", "client_anchored", "payload_too_large", "ws_rejected", "ws_unavailable",
    "store_unsupported", "no_baseline", "epoch_reset",
}  # fmt: skip


@pytest.mark.parametrize("reason", Reason)
def test_only_what_was_compared_was_eligible(reason):
    assert eligible(reason, compared=True) == (reason.value not in NEVER_ELIGIBLE)
    assert not eligible(reason, compared=False)


WORDS = st.lists(st.sampled_from("abc"), max_size=5)


@given(st.lists(WORDS.filter(bool), max_size=5), WORDS)
def test_the_decision_agrees_with_comparing_lists(histories, asked):
    anchors = [
        anchor(*(said(word) for word in words), born=float(place))
        for place, words in enumerate(histories)
    ]
    made = plan(anchors, request(*(said(word) for word in asked)))
    prefixes = [
        (len(words), place, anchors[place].chain)
        for place, words in enumerate(histories)
        if len(words) < len(asked) and asked[: len(words)] == words
    ]
    assert list(made.candidates) == [
        chain for _, _, chain in sorted(prefixes, key=lambda p: p[:2], reverse=True)
    ]
    assert all(chain.state is ChainState.IDLE for chain in made.candidates)
