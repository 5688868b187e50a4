"""Which entry of the catalogue tells of which evidence."""

import json

import pytest

from app.analysis.catalogue import AFTER_A_FAULT, FIELDS, HISTORY, LOST, REASONS
from app.analysis.lookup import of_field, of_fields, of_history, of_reason
from app.analysis.parted import parted
from engine.model import DivergenceClass, Nature, Reason
from tests.support.rows import make_row

KINDS = ["message:user", "message:assistant", "message:system", "message:developer", "reasoning",
         "function_call", "function_call_output", "custom_tool_call_output", "additional_tools",
         "compaction", "item_reference", "unknown"]  # fmt: skip
PATHS = [None, "/content", "/content/0/text", "/id", "/call_id", "/encrypted_content", "/output",
         "/output/_meta", "/output/0/text/_meta/~ab", "/arguments/list/0", "/tools/0/name"]  # fmt: skip


def history(klass, kind=None, *, at=3, **told):
    if kind is not None:
        told.setdefault("kind_before", kind)
    return of_history(parted(make_row(diverged_class=klass, diverged_at=at, diverged_kind=kind,
                                      evidence=json.dumps(told))))  # fmt: skip


EXAMPLES = [
    ("rewound", history("truncated_tail", "message:assistant")),
    ("window", history("truncated_head", "message:user", items_gone=8)),
    ("summarized_history", history("replaced", "message:user", items_gone=32, items_new=1)),
    ("replaced_item", history("replaced", "reasoning", items_gone=1, items_new=1)),
    ("replaced_item", history("replaced", "reasoning", items_gone=1, items_new=3)),
    ("branched", history("replaced", "message:user", items_gone=32)),
    (
        "outputs_reordered",
        history("reordered", "function_call_output", kind_now="function_call_output"),
    ),
    ("items_reordered", history("reordered", "message:user", kind_now="function_call_output")),
    ("reasoning_dropped", history("removed", "reasoning", items_gone=1)),
    ("answer_dropped", history("removed", "message:assistant", items_gone=1)),
    ("note_dropped", history("removed", "message:developer", items_gone=1)),
    ("tool_items_dropped", history("removed", "function_call_output", items_gone=2)),
    ("block_dropped", history("removed", "function_call_output", items_gone=3)),
    ("item_dropped", history("removed", "compaction", items_gone=1)),
    ("note_inserted", history("inserted", "message:user", kind_now="message:developer")),
    ("output_inserted", history("inserted", "message:user", kind_now="function_call_output")),
    ("item_inserted", history("inserted", "message:user", kind_now="message:assistant")),
    ("item_inserted", history("inserted", "message:user", kind_now="reasoning")),
    (
        "metadata_moved",
        history("edited", "function_call_output", path="/output/_meta", nature="removed"),
    ),
    (
        "metadata_moved",
        history("edited", "custom_tool_call_output", path="/output/0/text/metadata"),
    ),
    ("ids_remade", history("edited", "message:assistant", path="/id", nature="identifier")),
    ("ids_remade", history("edited", "function_call_output", path="/call_id")),
    (
        "ciphertext_lost",
        history("edited", "reasoning", path="/encrypted_content", nature="removed"),
    ),
    ("field_dropped", history("edited", "message:assistant", path="/phase", nature="removed")),
    ("field_dropped", history("edited", "function_call", path="/namespace", nature="removed")),
    ("answer_edited", history("edited", "message:assistant", path="/content/1", nature="removed")),
    ("tool_definitions", history("edited", "additional_tools", path="/tools/0")),
    (
        "first_message_volatile",
        history("edited", "message:user", at=0, path="/content", nature="time"),
    ),
    ("first_message", history("edited", "message:user", at=0, path="/content", nature="rewritten")),
    (
        "instruction_volatile",
        history("edited", "message:system", at=0, path="/content", nature="number"),
    ),
    ("instruction", history("edited", "message:developer", path="/content", nature="shortened")),
    (
        "output_shortened",
        history("edited", "function_call_output", path="/output", nature="shortened"),
    ),
    (
        "output_volatile",
        history("edited", "function_call_output", path="/output/~ab", nature="time"),
    ),
    (
        "output_respelled",
        history("edited", "function_call_output", path="/output", nature="reserialized"),
    ),
    (
        "output_changed",
        history("edited", "function_call_output", path="/output", nature="rewritten"),
    ),
    ("output_changed", history("edited", "function_call_output")),
    (
        "arguments_reordered",
        history("edited", "function_call", path="/arguments/~ab/0", nature="reordered"),
    ),
    ("call_changed", history("edited", "function_call", path="/arguments", nature="rewritten")),
    (
        "text_trimmed",
        history("edited", "message:assistant", path="/content/0/text", nature="whitespace"),
    ),
    (
        "text_trimmed",
        history("edited", "function_call_output", path="/output", nature="whitespace"),
    ),
    ("unicode_normalized", history("edited", "message:user", path="/content", nature="unicode")),
    (
        "unicode_normalized",
        history("edited", "function_call_output", path="/output", nature="unicode"),
    ),
    (
        "answer_edited",
        history("edited", "message:assistant", path="/content/0/text", nature="rewritten"),
    ),
    ("message_volatile", history("edited", "message:user", path="/content", nature="time")),
    ("message_edited", history("edited", "message:user", path="/content", nature="rewritten")),
    ("item_changed", history("edited", "compaction", path="/summary")),
    (None, history(None)),
    (None, history("of another version")),
]


@pytest.mark.parametrize(("expected", "found"), EXAMPLES)
def test_evidence_of_the_history_has_its_entry(expected, found):
    assert expected == found


def test_every_entry_of_the_history_is_found_by_some_evidence():
    assert set(HISTORY) == {expected for expected, _ in EXAMPLES} - {None}


@pytest.mark.parametrize("klass", DivergenceClass)
def test_whatever_the_evidence_an_entry_is_found(klass):
    for kind in [None, *KINDS]:
        for path in PATHS:
            for nature in [None, *Nature]:
                assert history(klass, kind, path=path, nature=nature) in HISTORY


FIELD_EXAMPLES = [
    ("tools_reordered", {"field": "tools", "change": "reordered"}),
    ("tools_set", {"field": "tools", "change": "added", "name": "a"}),
    ("tools_set", {"field": "tools", "change": "removed", "name": "a"}),
    ("tool_volatile", {"field": "tools", "change": "changed", "name": "a", "nature": "time"}),
    ("tool_changed", {"field": "tools", "change": "changed", "name": "a", "nature": "rewritten"}),
    ("tool_changed", {"field": "tools"}),
    ("instructions_volatile", {"field": "instructions", "nature": "identifier"}),
    ("instructions_trimmed", {"field": "instructions", "nature": "whitespace"}),
    ("instructions", {"field": "instructions"}), ("model", {"field": "model"}),
    ("reasoning", {"field": "reasoning"}), ("prompt_cache_key", {"field": "prompt_cache_key"}),
    ("text", {"field": "text"}), ("tool_choice", {"field": "tool_choice"}),
    ("identity", {"field": "user"}), ("identity", {"field": "safety_identifier"}),
    ("field", {"field": "~0123"}), ("field", {}), ("field", {"field": 5}),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "detail"), FIELD_EXAMPLES)
def test_a_changed_field_has_its_entry(expected, detail):
    assert expected == of_field(detail)


def test_every_entry_of_the_fields_is_found_by_some_detail():
    assert set(FIELDS) == {expected for expected, _ in FIELD_EXAMPLES} | {"several"}


@pytest.mark.parametrize(
    ("expected", "details"),
    [
        (None, []), ("model", [{"field": "model"}]),
        ("tools_set", [{"field": "tools", "change": "added"}, {"field": "tools", "change": "removed"}]),
        ("several", [{"field": "tools", "change": "removed"}, {"field": "parallel_tool_calls"}]),
        ("several", [{"field": "model"}, {"field": "instructions"}]),
        ("tools_reordered", [{"field": "model"}, {"field": "tools", "change": "reordered"}]),
        ("instructions_volatile", [{"field": "model"}, {"field": "instructions", "nature": "time"}]),
    ],
)  # fmt: skip
def test_several_fields_have_one_entry(expected, details):
    assert expected == of_fields(details)


@pytest.mark.parametrize("name", ["field", "identity", "tool_changed"])
def test_a_field_that_is_named_like_an_entry_is_a_field(name):
    assert "field" == of_field({"field": name})


@pytest.mark.parametrize("reason", Reason)
def test_reasons_have_the_entry_of_their_name(reason):
    assert REASONS.get(reason) == of_reason(reason, None)


def test_a_lost_connection_is_told_by_what_lost_it():
    assert all(of_reason(Reason.CONNECTION_LOST, word) is LOST[word] for word in LOST)
    assert AFTER_A_FAULT is of_reason(Reason.CONNECTION_LOST, "after_timeout")
    assert of_reason(Reason.CONNECTION_LOST, "rejected") is None
