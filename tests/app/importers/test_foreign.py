import json

import pytest

from app.importers.foreign import (
    Epochs,
    chain_of,
    eligible,
    host_of,
    milliseconds,
    row_of,
    turn_id,
)
from app.importers.identity import UNPLACED
from engine.model import DivergenceClass, Evidence, Usage, UsageState


def test_an_id_follows_from_the_format_and_each_part_of_the_record():
    ids = {
        turn_id("a", "x", 1),
        turn_id("b", "x", 1),
        turn_id("a", "x1"),
        turn_id("a", "x", None),
        turn_id("a", "x", ""),
        turn_id("a", "", "x"),
        turn_id("a", "x"),
    }
    assert 7 == len(ids)
    assert turn_id("a", "x", 1) == turn_id("a", "x", "1")
    assert chain_of("a", "x") != turn_id("a", "x")[-16:]
    assert 16 == len(chain_of("a", "x"))


def test_an_epoch_begins_where_something_lies_between_two_requests():
    epochs = Epochs()
    assert [
        (1, 1, "resumed"),
        (1, 2, None),
        (2, 1, "compaction"),
        (3, 1, "branch"),
        (3, 2, None),
    ] == [
        tuple(epochs.next(reset).values())
        for reset in ("resumed", None, "compaction", "branch", None)
    ]
    assert {"epoch": 3, "epoch_turn": 3, "epoch_reset_reason": None} == epochs.next(None)


def test_a_row_knows_what_it_was_told_and_whose_it_is_the_run_says():
    row = row_of(
        "x", ("1",), started_at=1_000, usage=Usage(), model="m", mode=None, duration_ms=7.6
    )
    assert ("import:x", turn_id("x", "1"), "m", "missing") == (
        row.source, row.turn_id, row.model, row.usage_state
    )  # fmt: skip
    assert (1_000, 1_008, 1_008) == (row.started_at, row.ended_at, row.recorded_at)
    assert (UNPLACED, UNPLACED) == (row.tenant, row.session_key)
    assert (None, None, False, "unknown") == (row.mode, row.attempts, row.eligible, row.upstream)


def test_an_end_never_comes_before_its_start():
    assert 5 == row_of("x", (), started_at=5, ended_at=3, usage=Usage()).ended_at


def test_a_row_is_recorded_when_it_ended_unless_something_else_is_known():
    assert 9 == row_of("x", (), started_at=5, ended_at=9, usage=Usage()).recorded_at
    assert 7 == row_of("x", (), started_at=5, ended_at=9, recorded_at=7, usage=Usage()).recorded_at


def test_figures_that_contradict_each_other_are_cut_and_kept_as_reported():
    usage = Usage(input_tokens=3, cached_tokens=4, state=UsageState.REPORTED)
    row = row_of("x", (), started_at=5, usage=usage)
    assert (3, 3, 0, "inconsistent") == (
        row.input_tokens, row.cached_tokens, row.non_cached_tokens, row.usage_state
    )  # fmt: skip
    assert {"usage_reported": {"input_tokens": 3, "cached_tokens": 4}} == json.loads(row.evidence)


def test_texts_are_cleaned_and_names_left_whole_for_the_run():
    row = row_of("x", (), started_at=5, usage=Usage(), model="m\x00" + "n" * 200, session="s" * 200)
    assert "m\ufffd" + "n" * 126 == row.model
    assert "s" * 200 == row.session


def test_evidence_has_its_columns():
    found = Evidence(index=3, kind_before="reasoning", klass=DivergenceClass.TRUNCATED_TAIL)
    row = row_of("x", (), started_at=5, usage=Usage(), evidence=found)
    assert (3, "reasoning", "truncated_tail") == (
        row.diverged_at, row.diverged_kind, row.diverged_class
    )  # fmt: skip
    assert 3 == json.loads(row.evidence)["index"]


@pytest.mark.parametrize(
    ("mode", "reason", "could"),
    [
        ("ws_full", "prefix_mismatch", True),
        ("ws_incremental", "ok", True),
        (None, "ok", False),
        ("ws_full", None, False),
        ("ws_full", "epoch_reset", False),
        ("ws_full", "no_baseline", False),
        ("ws_full", "another_word", False),
    ],
)
def test_only_a_word_that_we_know_tells_that_a_call_could_have_been_continued(mode, reason, could):
    assert could == eligible(mode, reason)


def test_times_are_iso_with_an_offset_or_unknown():
    assert [1_000, None, None, None] == [
        milliseconds(value) for value in ("1970-01-01T00:00:01Z", "1970-01-01T00:00:01", 1, None)
    ]


def test_of_an_address_only_the_host_is_told():
    assert ["a.example", None, None, None] == [
        host_of(value) for value in ("https://user:secret@a.example:8/v1?key=k", "[", "a", 7)
    ]
