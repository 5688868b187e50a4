import json

import pytest

from app.analysis.divergences import fields_changed, prefix_mismatch
from engine.model import DivergenceClass
from tests.support.rows import make_row


def parted(klass, **changes):
    values = {"reason": "prefix_mismatch", "mode": "ws_full", "diverged_at": 11}
    values |= {"diverged_kind": "function_call_output", "diverged_class": klass}
    evidence = changes.pop("evidence", None)
    text = None if evidence is None else json.dumps(evidence)
    return make_row(**(values | changes | {"evidence": text}))


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


def changed(names, **changes):
    evidence = changes.pop("evidence", None)
    values = {"reason": "non_input_fields_changed", "mode": "ws_full", "changed_fields": names}
    text = None if evidence is None else json.dumps(evidence)
    return make_row(**(values | changes | {"evidence": text}))


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (None, "Sent in full: a setting of the request beside its input changed."),
        ("tools", "Sent in full: tools changed."),
        ("model,tools", "Sent in full: model and tools changed."),
        ("a,b,c,d,e", "Sent in full: a, b, c and 2 more changed."),
    ],
)
def test_changed_fields_are_named(names, sentence):
    assert fields_changed(changed(names)) == sentence


def test_a_history_that_changed_too_is_mentioned():
    assert fields_changed(changed("model", diverged_at=3)).endswith("; the history changed too.")


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ({"field": "tools", "change": "added", "name": "exec"}, "the tool exec was added"),
        ({"field": "tools", "change": "removed", "name": "exec"}, "the tool exec was removed"),
        ({"field": "tools", "change": "changed", "name": "exec"}, "the tool exec was changed"),
        ({"field": "tools", "change": "reordered", "name": "x"}, "the tool x changed its place"),
        ({"field": "tools", "change": "reordered"}, "tools came in another order"),
        (
            {"field": "instructions", "change": "changed", "line": 7},
            "instructions changed from line 7",
        ),
        ({"field": "reasoning", "change": "added"}, "reasoning newly given"),
        ({"field": "text", "change": "changed", "name": "format"}, "format in text was changed"),
    ],
)
def test_what_is_known_of_a_field_is_told(detail, words):
    row = changed(detail["field"], evidence={"field_details": [detail]})
    assert fields_changed(row) == f"Sent in full: {words}."


def test_details_that_say_nothing_fall_back_to_the_names():
    row = changed("tools", evidence={"field_details": [{"odd": 1}]})
    assert fields_changed(row) == "Sent in full: tools changed."
