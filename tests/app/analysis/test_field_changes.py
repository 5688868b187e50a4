"""What is said of fields that changed."""

import json

import pytest

from app.analysis.field_changes import fields_changed
from tests.support.rows import make_row


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
        ({"field": "tools", "change": "reordered", "at": 1}, "tools came in another order from number 2 on"),
        (
            {"field": "tools", "change": "changed", "name": "x", "path": "/description", "line": 2,
             "offset": 40, "nature": "time"},
            "the tool x was changed at /description, line 2, character 41 (only a date or time differs)",
        ),
        (
            {"field": "tools", "change": "changed", "name": "x", "path": "/strict", "nature": "number"},
            "the tool x was changed at /strict (only a number differs)",
        ),
        (
            {"field": "instructions", "change": "changed", "offset": 0, "nature": "whitespace"},
            "instructions changed from character 1 (only white space differs)",
        ),
        (
            {"field": "instructions", "change": "changed", "line": 7, "offset": 1_311, "nature": "rewritten"},
            "instructions changed from line 7, character 1,312",
        ),
        (
            {"field": "model", "change": "changed", "before": "gpt-5", "now": "gpt-6", "offset": 4},
            "model changed from gpt-5 to gpt-6",
        ),
        (
            {"field": "reasoning", "change": "added", "path": "/effort", "now": "high"},
            "reasoning/effort newly given (high)",
        ),
        (
            {"field": "store", "change": "removed", "before": True},
            "store no longer given (it was true)",
        ),
        ({"field": "text", "change": "changed", "path": "/format"}, "text/format changed"),
    ],
)  # fmt: skip
def test_what_is_known_of_a_field_is_told(detail, words):
    row = changed(detail["field"], evidence={"field_details": [detail]})
    assert fields_changed(row) == f"Sent in full: {words}."


def test_tools_that_came_in_numbers_are_one():
    details = [{"field": "tools", "change": "added", "name": name} for name in "abcde"]
    said = fields_changed(changed("tools", evidence={"field_details": details}))
    assert said == "Sent in full: 5 tools were added (a, b, c and 2 more)."


def test_tools_that_came_and_others_that_went_are_told_apart():
    def tools(change, names):
        return [{"field": "tools", "change": change, "name": name} for name in names]

    both = [*tools("added", "ab"), *tools("removed", "cde"), {"field": "tools", "left_out": 6}]
    said = fields_changed(changed("tools", evidence={"field_details": both}))
    assert said == (
        "Sent in full: the tool a was added, the tool b was added, 3 tools were removed (c, d and e) "
        "and 1 more."
    )
    said = fields_changed(changed("tools", evidence={"field_details": both[2:]}))
    assert said == "Sent in full: 3 tools were removed (c, d and e) and 6 more of tools."


def test_tools_of_one_name_are_told_once():
    added = [{"field": "tools", "change": "added", "name": "a"}] * 2
    assert fields_changed(changed("tools", evidence={"field_details": added})) == (
        "Sent in full: the tool a was added."
    )
    assert fields_changed(changed("tools", evidence={"field_details": added * 2})) == (
        "Sent in full: 4 tools were added (a, a, a and 1 more)."
    )


def test_many_details_are_counted():
    details = [{"field": name, "change": "changed"} for name in "abcde"]
    said = fields_changed(changed("a,b", evidence={"field_details": details}))
    assert said == "Sent in full: a changed, b changed, c changed and 2 more."


def test_a_history_that_changed_beside_the_details_is_mentioned():
    evidence = {"field_details": [{"field": "model", "change": "changed"}], "index": 3}
    said = fields_changed(changed("model", evidence=evidence))
    assert said == "Sent in full: model changed; the history changed too."


def test_details_that_say_nothing_fall_back_to_the_names():
    row = changed("tools", evidence={"field_details": [{"odd": 1}]})
    assert fields_changed(row) == "Sent in full: tools changed."
