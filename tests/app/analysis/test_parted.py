"""Evidence as typed values, whoever wrote the row."""

import json

from app.analysis.parted import parted
from tests.support.rows import make_row


def of(evidence, **columns):
    return parted(make_row(evidence=None if evidence is None else json.dumps(evidence), **columns))


def test_columns_and_evidence_are_one():
    found = of(
        {"kind_now": "reasoning", "length_before": 4, "length_now": 5, "offset": 0, "line": 2,
         "nature": "time", "value_length_before": 6, "value_length_now": 7, "items_gone": 1,
         "items_new": 0, "further": True, "field_details": [{"field": "model"}]},
        diverged_at=3, diverged_kind="message:user", diverged_class="edited", diverged_path="/content",
    )  # fmt: skip
    assert (3, "message:user", "message:user", "reasoning") == (
        found.index, found.kind, found.kind_before, found.kind_now,
    )  # fmt: skip
    assert ("edited", "/content", 0, 2, "time") == (
        found.klass, found.path, found.offset, found.line, found.nature,
    )  # fmt: skip
    assert (4, 5, 6, 7, 1, 0) == (
        found.length_before, found.length_now, found.value_before, found.value_now, found.gone, found.new,
    )  # fmt: skip
    assert (True, ({"field": "model"},)) == (found.further, found.details)


def test_a_row_without_evidence_tells_nothing():
    found = of(None)
    assert (None, None, None, False, ()) == (
        found.index, found.kind, found.klass, found.further, found.details,
    )  # fmt: skip


def test_the_evidence_stands_in_for_columns_that_are_not_filled():
    found = of({"index": 2, "class": "removed", "path": "/x", "kind_before": "reasoning"})
    assert (2, "removed", "/x", "reasoning") == (found.index, found.klass, found.path, found.kind)


def test_values_of_another_type_are_unknown():
    found = of({"offset": True, "line": "7", "nature": 5, "further": 1, "field_details": [5, {"a": 1}],
                "kind_before": ["x"]})  # fmt: skip
    assert (None, None, None, False, None) == (
        found.offset, found.line, found.nature, found.further, found.kind,
    )  # fmt: skip
    assert ({"a": 1},) == found.details
    assert () == of({"field_details": "x"}).details


def test_kinds_are_told_apart():
    kinds = ("function_call_output", "function_call", "message:developer", "message:user")
    told = [of({"kind_before": kind}) for kind in kinds]
    assert [True, False, False, False] == [each.is_output for each in told]
    assert [False, True, False, False] == [each.is_call for each in told]
    assert [False, False, True, False] == [each.is_instruction for each in told]
