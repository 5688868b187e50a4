import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.explain import LOST, RESETS, WhyKind, explain
from engine.model import NOT_ELIGIBLE, ColdCause, EpochReason, Mode, Reason, Status
from tests.support.rows import make_row

FULL = {"mode": "ws_full", "items_total": 40, "items_sent": 40}


def full(reason, **changes):
    eligible = reason not in NOT_ELIGIBLE and reason != "ok"
    return make_row(**(FULL | {"reason": str(reason), "eligible": eligible} | changes))


@pytest.mark.parametrize("reason", [r for r in Reason if r is not Reason.OK])
@pytest.mark.parametrize("mode", ["ws_full", "http_full", None])
def test_every_reason_has_one_sentence_of_its_own(reason, mode):
    why = explain(full(reason, mode=mode))
    assert re.fullmatch(r"[A-Z].*[^ ]\.", why.sentence)
    assert str(reason) not in why.sentence or reason == "epoch_reset"
    others = {explain(full(other)).sentence for other in Reason if other not in (reason, "ok")}
    assert explain(full(reason)).sentence not in others


@pytest.mark.parametrize("reason", [r for r in Reason if r is not Reason.OK])
def test_what_could_have_been_continued_is_a_break_and_all_else_is_expected(reason):
    expected = WhyKind.EXPECTED if reason in NOT_ELIGIBLE else WhyKind.BREAK
    assert explain(full(reason)).kind is expected


def test_a_continued_turn_tells_what_was_sent():
    why = explain(make_row(items_sent=2, items_total=41, bytes_total=1000, bytes_sent=30))
    assert why.sentence == "Continued: 2 new items of 41 sent, 97 % fewer bytes."
    assert why.kind is WhyKind.CONTINUED
    assert (
        explain(make_row(items_sent=1, items_total=1)).sentence
        == "Continued: 1 new item of 1 sent."
    )
    assert explain(make_row()).sentence == "Continued: only what is new was sent."


def test_ok_without_an_incremental_wire_is_not_called_continued():
    why = explain(make_row(mode="http_full", reason="ok"))
    assert why.sentence == "The prefix was unchanged, yet the turn was sent as http_full."
    assert why.kind is WhyKind.UNKNOWN


@pytest.mark.parametrize("reason", [Reason.NO_BASELINE, Reason.EPOCH_RESET])
def test_benign_reasons_are_said_to_be_benign(reason):
    assert re.search(
        "normal|planned", explain(full(reason, epoch_reset_reason="summarize")).sentence
    )


def test_the_first_turn_of_a_session_is_told_from_a_side_request():
    first = explain(full(Reason.NO_BASELINE, epoch=0, epoch_turn=1)).sentence
    side = explain(full(Reason.NO_BASELINE, epoch=0, epoch_turn=7)).sentence
    assert "first turn of its session" in first
    assert "echoes no earlier answer" in side


@pytest.mark.parametrize("word", list(EpochReason))
def test_every_reset_has_its_words(word):
    assert RESETS[word] in explain(full(Reason.EPOCH_RESET, epoch_reset_reason=word)).sentence


def test_a_callers_own_reset_word_is_kept():
    assert "“nightly”" in explain(full(Reason.EPOCH_RESET, epoch_reset_reason="nightly")).sentence
    assert "as planned" in explain(full(Reason.EPOCH_RESET)).sentence


@pytest.mark.parametrize("reason", [Reason.WS_REJECTED, Reason.WS_UNAVAILABLE])
def test_the_fallback_says_what_happened(reason):
    known = explain(full(reason, fallback_reason="connect_failed")).sentence
    assert known.endswith("(no connection could be made).")
    refused = explain(full(reason, fallback_reason="upgrade_426")).sentence
    assert refused.endswith("(it answered the upgrade with 426).")
    assert "(closed_4242)" in explain(full(reason, fallback_reason="closed_4242")).sentence
    assert "(" not in explain(full(reason)).sentence


@pytest.mark.parametrize("word", [*LOST, None, "closed_4242"])
def test_a_lost_connection_says_how_it_was_lost(word):
    why = explain(full(Reason.CONNECTION_LOST, fallback_reason=word))
    said = LOST.get(word, "the connection that held the conversation was gone")
    assert why.sentence.startswith(f"Sent in full: {said}")
    assert word is None or word in LOST or word in why.sentence
    assert why.kind is WhyKind.BREAK


def test_every_cause_of_the_engine_has_words():
    of_their_own = {"output_conflict", "missing_output_items", "missing_response_id"}
    assert {str(cause) for cause in ColdCause} - of_their_own <= set(LOST)


def test_a_conversation_that_another_socket_holds_is_told_from_a_busy_one():
    leased = explain(full(Reason.CHAIN_BUSY, fallback_reason="leased")).sentence
    assert "another client's socket" in leased
    assert "still being answered" in explain(full(Reason.CHAIN_BUSY)).sentence


def test_a_client_that_continues_by_itself_is_continued():
    own = explain(full(Reason.CLIENT_ANCHORED, mode="ws_incremental"))
    assert own.kind is WhyKind.CONTINUED
    assert own.sentence.startswith("Continued by the client itself")
    assert explain(full(Reason.CLIENT_ANCHORED)).kind is WhyKind.EXPECTED


def test_a_request_too_large_tells_its_size():
    why = explain(full(Reason.PAYLOAD_TOO_LARGE, bytes_total=17_000_000))
    assert "17,000,000 bytes" in why.sentence


@pytest.mark.parametrize(
    ("shadow", "words"),
    [
        (None, "continuation is off for it."),
        ("ok", "it could have been continued."),
        ("no_baseline", "could not have been continued either (no_baseline)."),
        (
            "prefix_mismatch",
            "either: the history is no longer what the provider holds.",
        ),
        (
            "non_input_fields_changed",
            "either: a setting of the request beside its input changed.",
        ),
    ],
)
def test_an_observed_turn_tells_what_could_have_been(shadow, words):
    why = explain(full(Reason.CONTINUATION_OFF, shadow_reason=shadow))
    assert why.sentence.endswith(words)


def test_an_observed_turn_tells_place_and_cause_of_what_could_not_have_been():
    details = [{"field": "tools", "change": "reordered", "at": 1}]
    why = explain(
        full(
            Reason.CONTINUATION_OFF,
            shadow_reason="non_input_fields_changed",
            evidence=json.dumps({"field_details": details}),
        )
    )
    assert why.sentence.endswith("either: tools came in another order from number 2 on.")
    assert "Sort the tools" in why.remedy
    assert why.kind is WhyKind.EXPECTED
    fine = explain(full(Reason.CONTINUATION_OFF, shadow_reason="ok"))
    assert (fine.cause, fine.remedy) == (None, None)


def test_an_importers_word_is_kept():
    row = full("missing_baseline_request", source="import:lingtai", eligible=False)
    assert explain(row).sentence == "Recorded by import:lingtai as “missing_baseline_request”."
    assert explain(row).kind is WhyKind.UNKNOWN


def test_without_a_reason_nothing_is_made_up():
    why = explain(make_row(mode=None, reason=None, eligible=False, source="import:codex"))
    assert why.sentence == "Nothing is recorded of why this turn was sent as it was."
    assert why.kind is WhyKind.UNKNOWN
    assert "http_full" in explain(make_row(mode="http_full", reason=None)).sentence


@pytest.mark.parametrize(
    "status", [s for s in Status if s not in ("completed", "incomplete", "client_closed")]
)
def test_a_turn_that_did_not_succeed_says_so_first(status):
    row = make_row(status=str(status), http_status=429, error_code="rate_limit_exceeded")
    why = explain(row)
    assert why.kind is WhyKind.FAULT
    assert why.sentence.endswith("(HTTP 429, rate_limit_exceeded).")
    assert explain(make_row(status=str(status))).sentence.endswith(".")


def test_an_error_that_was_answered_is_told_apart_from_a_turn_without_an_end():
    answered = explain(make_row(status="error", http_status=400, error_code="invalid_type"))
    assert "The turn was answered with an error (HTTP 400, invalid_type)." == answered.sentence
    assert "The turn never came to an end." == explain(make_row(status="error")).sentence


def test_a_client_that_left_is_no_fault():
    assert explain(make_row(status="client_closed")).kind is WhyKind.EXPECTED


def test_an_incomplete_turn_is_explained_like_a_completed_one():
    assert explain(make_row(status="incomplete")).kind is WhyKind.CONTINUED


@pytest.mark.parametrize(("kind", "word"), [("warmup", "warm-up"), ("compaction", "compaction")])
def test_warm_ups_and_compactions_are_told_as_such(kind, word):
    why = explain(full(Reason.NO_BASELINE, kind=kind))
    assert word in why.sentence
    assert why.kind is WhyKind.EXPECTED
    assert (
        "answered here" in explain(make_row(kind="warmup", mode=None)).sentence or kind != "warmup"
    )


@pytest.mark.parametrize("mode", list(Mode))
def test_markup_in_names_is_left_for_the_page_to_show_as_text(mode):
    row = full("<img src=x>", source="import:<b>", mode=str(mode), evidence=json.dumps({}))
    assert "<img src=x>" in explain(row).sentence


def test_a_break_tells_its_usual_cause_and_remedy():
    evidence = {"kind_before": "function_call_output", "path": "/output/_meta", "nature": "removed"}
    why = explain(full(Reason.PREFIX_MISMATCH, diverged_class="edited", diverged_at=4,
                       diverged_path="/output/_meta", evidence=json.dumps(evidence)))  # fmt: skip
    assert why.cause.startswith("Metadata moves to the newest result")
    assert why.remedy.startswith("Keep it out of what the model reads")


def test_changed_fields_tell_their_cause_by_detail_or_by_name():
    detail = json.dumps({"field_details": [{"field": "tools", "change": "reordered"}]})
    told = explain(full(Reason.NON_INPUT_FIELDS_CHANGED, evidence=detail))
    assert "a map or a set" in told.cause
    named = explain(full(Reason.NON_INPUT_FIELDS_CHANGED, changed_fields="model"))
    assert "another model" in named.cause
    both = explain(full(Reason.NON_INPUT_FIELDS_CHANGED, changed_fields="model,tools"))
    assert "at once" in both.cause
    assert explain(full(Reason.NON_INPUT_FIELDS_CHANGED)).cause is None


def test_tools_in_the_history_have_the_causes_of_tools():
    evidence = {"kind_before": "additional_tools", "path": "/tools/1", "nature": "reordered"}
    columns = {"diverged_class": "edited", "diverged_at": 0}
    plain = explain(full(Reason.PREFIX_MISMATCH, evidence=json.dumps(evidence), **columns))
    assert plain.cause == "The list of tools in the history changed."
    evidence["field_details"] = [{"field": "tools", "item": 0, "change": "reordered", "at": 1}]
    told = explain(full(Reason.PREFIX_MISMATCH, evidence=json.dumps(evidence), **columns))
    assert "Sort the tools" in told.remedy


def test_a_break_without_evidence_has_no_cause():
    why = explain(full(Reason.PREFIX_MISMATCH))
    assert (None, None) == (why.cause, why.remedy)


def test_reasons_that_need_no_evidence_tell_their_cause():
    assert "repeats a request" in explain(full(Reason.EMPTY_DELTA)).cause
    lost = explain(full(Reason.CONNECTION_LOST, fallback_reason="limit_reached"))
    assert "age" in lost.cause


@pytest.mark.parametrize("changes", [{}, {"status": "failed"}, {"status": "client_closed"},
                                     {"reason": None}, {"kind": "warmup"}, {"mode": "ws_full"}])  # fmt: skip
def test_where_nothing_went_wrong_with_the_prefix_there_is_no_cause(changes):
    why = explain(make_row(**changes))
    assert (None, None) == (why.cause, why.remedy)


WORDS = ["index", "kind_before", "kind_now", "class", "path", "offset", "line", "nature", "items_gone",
         "items_new", "further", "field_details", "field", "change", "name", "at", "before", "now",
         "tools", "added", "reordered", "changed", "time", "edited", "removed"]  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=15,
)  # fmt: skip
details = st.lists(st.dictionaries(st.sampled_from(WORDS), anything, max_size=6), max_size=3)


@given(
    st.dictionaries(st.sampled_from(WORDS), anything, max_size=8),
    details | anything,
    st.sampled_from([Reason.PREFIX_MISMATCH, Reason.NON_INPUT_FIELDS_CHANGED]),
)
def test_whatever_stands_in_the_evidence_a_sentence_is_made_of_it(evidence, told, reason):
    """Rows come from imports and from other versions too."""
    why = explain(full(reason, evidence=json.dumps({**evidence, "field_details": told})))
    assert re.fullmatch(r"Sent in full: .+\.", why.sentence)
    assert (why.cause is None) == (why.remedy is None)


def test_a_client_that_wants_nothing_stored_is_told_apart_from_an_upstream_that_keeps_nothing():
    asked = explain(full(Reason.STORE_UNSUPPORTED, fallback_reason="store_false")).sentence
    assert asked.startswith("Sent in full: the client asks not to store")
    assert explain(full(Reason.STORE_UNSUPPORTED)).sentence.startswith(
        "Sent in full: this upstream"
    )
