import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.divergences import where_all_parted
from app.analysis.explain import explain, explain_all
from app.ledger.rows import TurnRow
from engine import fingerprint
from engine.model import DivergenceClass, Evidence, Nature
from tests.support.rows import make_row


def parted(klass, **changes):
    values = {"reason": "prefix_mismatch", "mode": "ws_full", "diverged_at": 11}
    values |= {"diverged_kind": "function_call_output", "diverged_class": klass}
    evidence = changes.pop("evidence", None)
    text = None if evidence is None else json.dumps(evidence)
    return make_row(**(values | changes | {"evidence": text}))


def prefix_mismatch(row: TurnRow) -> str:
    return explain(row).sentence


def test_an_edit_tells_item_place_and_lengths():
    evidence = {"offset": 313, "value_length_before": 1204, "value_length_now": 1180}
    row = parted("edited", diverged_path="/output", evidence=evidence)
    assert prefix_mismatch(row) == (
        "Sent in full: item 12 (function_call_output) was edited at /output, character 314 "
        "(1,204 → 1,180 characters)."
    )


def test_an_edit_without_more_evidence_tells_the_item():
    assert prefix_mismatch(parted("edited")) == (
        "Sent in full: item 12 (function_call_output) was edited."
    )


def test_lengths_of_values_that_are_no_text_are_not_called_characters():
    evidence = {"value_length_before": 3, "value_length_now": 2}
    row = parted("edited", diverged_path="/output/_meta", evidence=evidence)
    assert prefix_mismatch(row).endswith("at /output/_meta (3 → 2).")


@pytest.mark.parametrize(
    ("klass", "words"),
    [
        ("inserted", "a new item was inserted before item 12"),
        ("removed", "item 12 (function_call_output) was removed"),
        ("reordered", "in another order"),
        ("replaced", "was replaced by another"),
        ("truncated_head", "the beginning of the history was dropped"),
        ("truncated_tail", "shorter than what the provider holds"),
        (None, "is not what the provider holds"),
        ("rotated", "differs (rotated)"),
    ],
)
def test_every_class_has_its_words(klass, words):
    assert words in prefix_mismatch(parted(klass))


def test_all_classes_are_told_apart():
    sentences = {prefix_mismatch(parted(str(klass))) for klass in DivergenceClass}
    assert len(sentences) == len(DivergenceClass)


@pytest.mark.parametrize(("now", "words"), [(39, "is 1 item shorter"), (30, "is 10 items shorter")])
def test_a_shorter_history_tells_by_how_much(now, words):
    evidence = {"length_before": 40, "length_now": now}
    assert words in prefix_mismatch(parted("truncated_tail", evidence=evidence))


def test_a_mismatch_without_any_place_still_has_a_sentence():
    row = parted(None, diverged_at=None, diverged_kind=None)
    assert prefix_mismatch(row) == "Sent in full: the history is no longer what the provider holds."


@pytest.mark.parametrize("nature", Nature)
def test_every_nature_of_an_edit_has_its_words(nature):
    evidence = {"nature": str(nature)}
    said = prefix_mismatch(parted("edited", diverged_path="/output", evidence=evidence))
    assert said.startswith("Sent in full: item 12 (function_call_output) ")
    assert said.endswith(" at /output.")
    others = [prefix_mismatch(parted("edited", diverged_path="/output", evidence={"nature": str(n)}))
              for n in Nature if n is not nature]  # fmt: skip
    assert said not in others


def test_a_line_is_told_before_the_character():
    evidence = {"nature": "time", "line": 7, "offset": 313}
    row = parted("edited", diverged_path="/output", evidence=evidence)
    assert prefix_mismatch(row) == (
        "Sent in full: item 12 (function_call_output) has another date or time at /output, line 7, "
        "character 314."
    )


@pytest.mark.parametrize(
    ("klass", "evidence", "words"),
    [
        ("removed", {"items_gone": 1}, "item 12 (function_call_output) was removed from the history."),
        ("removed", {"items_gone": 1_200}, "and what followed it (1,200 items) were removed from the history."),
        ("inserted", {"items_new": 1, "kind_now": "message:user", "kind_before": "reasoning"},
         "a new item (message:user) was inserted before item 12 (reasoning) of the history."),
        ("inserted", {"items_new": 3, "kind_now": "message:user", "kind_before": "reasoning"},
         "3 new items (message:user) were inserted before item 12 (reasoning) of the history."),
        ("truncated_head", {"items_gone": 8}, "the beginning of the history was dropped (8 items)."),
        ("truncated_head", {"items_gone": 1}, "was dropped (1 item)."),
        ("reordered", {"items_gone": 2}, "is in another order (2 items)."),
        ("replaced", {"items_gone": 32, "items_new": 1}, "on, 32 items were replaced by 1."),
        ("replaced", {"items_gone": 1, "items_new": 2}, "on, 1 item was replaced by 2."),
        ("replaced", {"items_gone": 1, "items_new": 1, "kind_now": "reasoning"},
         "(function_call_output) was replaced by another (reasoning)."),
        ("replaced", {"items_gone": 32}, "on, the history was replaced by another."),
        ("edited", {"further": True}, "was edited; more differs after it."),
    ],
)  # fmt: skip
def test_how_many_items_are_concerned_is_told(klass, evidence, words):
    assert prefix_mismatch(parted(klass, evidence=evidence)).endswith(words)


@pytest.mark.parametrize(
    ("klass", "words"),
    [
        ("edited", "an earlier item (function_call_output) was edited at /content/*/text"),
        ("inserted", "a new item (reasoning) was inserted into the history"),
        ("removed", "an earlier item (function_call_output) was removed from the history"),
        ("reordered", "the history is in another order"),
        ("replaced", "an earlier item (function_call_output) was replaced by another (reasoning)"),
        ("truncated_head", "the beginning of the history was dropped"),
        ("truncated_tail", "the history is shorter than what the provider holds"),
        (None, "the history is no longer what the provider holds"),
    ],
)
def test_of_all_breaks_of_one_fingerprint_no_place_count_or_length_is_told(klass, words):
    evidence = {"kind_now": "reasoning", "items_gone": 3, "length_before": 9, "length_now": 4}
    evidence |= {"line": 5, "offset": 8, "value_length_before": 9, "value_length_now": 90}
    row = parted(klass, diverged_path="/content/12/text", evidence=evidence)
    assert explain_all(row).sentence == f"Sent in full: {words}."
    assert explain_all(row).cause == explain(row).cause


def test_of_an_observed_turn_it_is_told_how_all_like_it_parted():
    observed = {"mode": "http_full", "reason": "continuation_off"}
    row = parted("removed", **observed | {"shadow_reason": "prefix_mismatch"})
    assert explain_all(row).sentence.endswith(
        "either: an earlier item (function_call_output) was removed from the history."
    )


EVIDENCE = st.builds(
    Evidence,
    index=st.sampled_from([1, 2]),
    kind_before=st.just("reasoning"),
    kind_now=st.sampled_from(["reasoning", "message:user"]),
    length_before=st.sampled_from([3, 4]),
    length_now=st.sampled_from([3, 4]),
    path=st.sampled_from(["/content/0/text", "/content/1/text"]),
    line=st.sampled_from([None, 2]),
    klass=st.sampled_from([DivergenceClass.EDITED] * 9 + [None, *DivergenceClass]),
    nature=st.sampled_from([None, *Nature]),
    items_gone=st.sampled_from([None, 1, 2]),
    items_new=st.sampled_from([None, 1, 2]),
)


@given(st.lists(EVIDENCE, min_size=20, max_size=40))
def test_breaks_of_one_fingerprint_have_one_sentence(several):
    told: dict[str, set[str]] = {}
    for evidence in several:
        row = parted(
            evidence.klass, diverged_at=evidence.index, diverged_kind=evidence.kind_before,
            diverged_path=evidence.path,
            evidence={
                "kind_now": evidence.kind_now, "nature": evidence.nature, "line": evidence.line,
                "length_before": evidence.length_before, "length_now": evidence.length_now,
                "items_gone": evidence.items_gone, "items_new": evidence.items_new,
            },
        )  # fmt: skip
        told.setdefault(fingerprint.of(b"k" * 32, evidence), set()).add(where_all_parted(row))
    assert {len(sentences) for sentences in told.values()} == {1}
