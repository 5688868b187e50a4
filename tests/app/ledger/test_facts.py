import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.facts import (
    EVIDENCE_LIMIT,
    INTEGER_LIMIT,
    TOKENS_LIMIT,
    split,
    to_begun,
    to_row,
)
from app.ledger.rows import BOOL_COLUMNS, COLUMNS, INT_COLUMNS, TEXT_COLUMNS, TIME_COLUMNS
from engine.model import (
    DivergenceClass,
    Evidence,
    Kind,
    Mode,
    Reason,
    Status,
    Usage,
    UsageState,
)
from tests.support.clock import START
from tests.support.rows import START_MS, make_facts, make_usage


def row_of(**changes):
    return to_row(make_facts(**changes), gateway_version="0.1.0")


def usage_of(**figures) -> Usage:
    return Usage(**figures, state=UsageState.REPORTED)


# Tokens


def test_cached_tokens_are_part_of_the_input():
    tokens = split(
        usage_of(
            input_tokens=117_231, cached_tokens=115_584, output_tokens=225, total_tokens=117_456
        )
    )
    assert (1_647, 117_456, "reported") == (tokens.non_cached, tokens.total, tokens.state)


def test_more_cached_than_input_is_cut_and_marked_and_the_report_is_kept():
    row = row_of(usage=usage_of(input_tokens=789, cached_tokens=9_984, output_tokens=5))
    assert (789, 789, 0) == (row.input_tokens, row.cached_tokens, row.non_cached_tokens)
    assert "inconsistent" == row.usage_state
    assert {
        "usage_reported": {"input_tokens": 789, "cached_tokens": 9_984, "output_tokens": 5}
    } == row.evidence_object


def test_writes_are_a_third_part_of_the_input_and_nothing_is_lost():
    tokens = split(
        usage_of(input_tokens=100, cached_tokens=40, cache_write_tokens=30, output_tokens=10)
    )
    assert (40, 30, 60, 110) == (
        tokens.cached,
        tokens.cache_write,
        tokens.non_cached,
        tokens.total,
    )
    assert "reported" == tokens.state


def test_where_parts_exceed_the_input_cached_is_kept_first_and_writes_are_cut():
    tokens = split(usage_of(input_tokens=100, cached_tokens=80, cache_write_tokens=40))
    assert (80, 20, "inconsistent") == (tokens.cached, tokens.cache_write, tokens.state)
    tokens = split(usage_of(input_tokens=100, cached_tokens=120, cache_write_tokens=40))
    assert (100, 0) == (tokens.cached, tokens.cache_write)


def test_long_writes_are_part_of_the_writes():
    tokens = split(
        usage_of(
            input_tokens=100, cached_tokens=0, cache_write_tokens=30, cache_write_long_tokens=50
        )
    )
    assert (30, "inconsistent") == (tokens.cache_write_long, tokens.state)


def test_reasoning_is_part_of_the_output_and_not_added_again():
    tokens = split(
        usage_of(
            input_tokens=20_793, output_tokens=2_315, reasoning_tokens=2_303, total_tokens=23_108
        )
    )
    assert (23_108, 2_303, "reported") == (tokens.total, tokens.reasoning, tokens.state)


def test_a_total_that_is_not_the_sum_is_marked():
    tokens = split(usage_of(input_tokens=10, output_tokens=5, total_tokens=20))
    assert (15, "inconsistent", 20) == (
        tokens.total,
        tokens.state,
        tokens.reported["total_tokens"],
    )


def test_zeros_are_reported_zeros():
    tokens = split(usage_of(input_tokens=0, cached_tokens=0, output_tokens=0, total_tokens=0))
    assert (0, 0, 0, 0, 0) == (
        tokens.input,
        tokens.cached,
        tokens.non_cached,
        tokens.output,
        tokens.total,
    )
    assert "reported" == tokens.state


def test_missing_usage_is_unknown_and_not_zero():
    row = row_of(usage=Usage())
    assert "missing" == row.usage_state
    assert {None} == {getattr(row, name) for name in COLUMNS if name.endswith("_tokens")}


def test_usage_without_details_leaves_the_cached_part_unknown():
    tokens = split(usage_of(input_tokens=10, output_tokens=5))
    assert (None, None, 15, "reported") == (
        tokens.cached,
        tokens.non_cached,
        tokens.total,
        tokens.state,
    )


def test_an_impossible_count_is_unknown_and_marked():
    for value in (-1, INTEGER_LIMIT + 1):
        tokens = split(usage_of(input_tokens=10, cached_tokens=value))
        assert (None, "inconsistent") == (tokens.cached, tokens.state)
        assert value == tokens.reported["cached_tokens"]


def test_an_estimate_stays_an_estimate():
    assert "estimated" == split(make_usage(state=UsageState.ESTIMATED)).state


def test_what_the_engine_found_inconsistent_stays_so():
    assert "inconsistent" == split(make_usage(state=UsageState.INCONSISTENT)).state


def test_a_total_fits_its_column_whatever_input_and_output_are():
    for tokens in (TOKENS_LIMIT, TOKENS_LIMIT + 1, INTEGER_LIMIT):
        total = split(Usage(input_tokens=tokens, output_tokens=tokens)).total
        assert total is None or total <= INTEGER_LIMIT
    most = Usage(input_tokens=TOKENS_LIMIT, output_tokens=TOKENS_LIMIT)
    assert 2 * TOKENS_LIMIT == split(most).total


counts = st.none() | st.integers(-5, 60) | st.just(INTEGER_LIMIT + 1)


@given(st.builds(Usage, counts, counts, counts, counts, counts, counts, counts))
def test_parts_always_add_up(usage: Usage):
    tokens = split(usage)
    known_in, known_out = tokens.input, tokens.output
    if known_in is not None:
        assert 0 <= (tokens.cached or 0) + (tokens.cache_write or 0) <= known_in
    if tokens.non_cached is not None:
        assert known_in == tokens.cached + tokens.non_cached
    if tokens.cache_write is not None:
        assert 0 <= (tokens.cache_write_long or 0) <= tokens.cache_write
    if known_in is not None and known_out is not None:
        assert known_in + known_out == tokens.total
    if known_out is not None:
        assert 0 <= (tokens.reasoning or 0) <= known_out


@given(st.builds(Usage, counts, counts, counts, counts, counts, counts, counts))
def test_whatever_was_changed_is_marked_and_kept(usage: Usage):
    tokens = split(usage)
    pairs = [
        (usage.input_tokens, tokens.input),
        (usage.cached_tokens, tokens.cached),
        (usage.cache_write_tokens, tokens.cache_write),
        (usage.output_tokens, tokens.output),
        (usage.reasoning_tokens, tokens.reasoning),
    ]
    if any(before != after for before, after in pairs):
        assert "inconsistent" == tokens.state
        assert tokens.reported is not None
    assert all(after is None for before, after in pairs if before is None)


# Everything else


def test_times_become_milliseconds():
    row = row_of()
    assert (START_MS, START_MS + 1_800) == (row.started_at, row.ended_at)


def test_words_become_plain_text():
    row = row_of(
        kind=Kind.WARMUP, status=Status.FAILED, mode=Mode.WS_FULL, reason=Reason.NO_BASELINE
    )
    assert ("warmup", "failed", "ws_full", "no_baseline") == (
        row.kind,
        row.status,
        row.mode,
        row.reason,
    )
    assert str is type(row.mode)


def test_every_value_has_the_type_of_its_column():
    row = row_of(evidence=Evidence(index=1, klass=DivergenceClass.EDITED), store=False)
    for name in COLUMNS:
        value = getattr(row, name)
        if value is None:
            continue
        kind = (
            str
            if name in TEXT_COLUMNS
            else bool
            if name in BOOL_COLUMNS
            else int
            if name in INT_COLUMNS | TIME_COLUMNS
            else float
        )
        assert kind is type(value), name


def test_names_are_cut_to_128_characters():
    row = row_of(session="s" * 500, prompt_cache_key="k" * 129, model="m" * 128)
    assert (128, 128, 128) == (len(row.session), len(row.prompt_cache_key), len(row.model))


def test_with_pseudonyms_the_names_a_client_chose_are_hashed_and_the_others_are_not():
    row = to_row(
        make_facts(
            session="private name",
            root_session="root",
            turn_group="group",
            prompt_cache_key="cache key",
            model="gpt-5.6-sol",
        ),
        gateway_version="0.1.0",
        pseudonymize=lambda name: f"<{len(name)}>",
    )
    assert ("<12>", "<4>", "<5>", "<9>") == (
        row.session,
        row.root_session,
        row.turn_group,
        row.prompt_cache_key,
    )
    assert "gpt-5.6-sol" == row.model


def test_an_untruncated_name_is_hashed_so_that_long_names_stay_apart():
    seen = []
    to_row(
        make_facts(session="s" * 500),
        gateway_version=None,
        pseudonymize=lambda name: seen.append(name) or "h",
    )
    assert "s" * 500 in seen


@given(st.text(alphabet=st.characters(), max_size=20))
def test_no_text_can_make_a_row_unwritable(text: str):
    row = row_of(session=text, model="\x00\ud800" + text, changed_fields=(text, "\ud800"))
    for name in COLUMNS:
        value = getattr(row, name)
        if isinstance(value, str):
            assert "\x00" not in value
            value.encode("utf-8")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_a_duration_that_cannot_be_is_unknown(value: float):
    assert row_of(ttft_ms=value).ttft_ms is None


def test_durations_keep_microseconds():
    assert 12.346 == row_of(ttft_ms=12.3456789).ttft_ms


def test_counts_beyond_the_column_are_unknown():
    row = row_of(items_total=2**40, bytes_total=2**40, attempts=0)
    assert (None, 2**40, 0) == (row.items_total, row.bytes_total, row.attempts)


def test_evidence_fills_its_columns_and_keeps_the_rest_as_json():
    row = row_of(
        evidence=Evidence(
            index=3,
            kind_before="function_call_output",
            kind_now="message",
            length_before=9,
            length_now=10,
            path="/output",
            offset=17,
            klass=DivergenceClass.EDITED,
            digest_before="d1",
            digest_now="d2",
            changed_fields=("tools",),
            field_details=({"field": "tools", "change": "added", "tool": "grep"},),
            fingerprint="f00",
        ),
        changed_fields=("tools", "instructions"),
    )
    assert (3, "function_call_output", "/output", "edited", "f00") == (
        row.diverged_at,
        row.diverged_kind,
        row.diverged_path,
        row.diverged_class,
        row.fingerprint,
    )
    assert "tools,instructions" == row.changed_fields
    assert {
        "index": 3,
        "kind_before": "function_call_output",
        "kind_now": "message",
        "length_before": 9,
        "length_now": 10,
        "path": "/output",
        "offset": 17,
        "class": "edited",
        "digest_before": "d1",
        "digest_now": "d2",
        "changed_fields": ["tools"],
        "field_details": [{"field": "tools", "change": "added", "tool": "grep"}],
        "fingerprint": "f00",
    } == row.evidence_object


def test_the_kind_of_an_added_item_is_what_stands_there_now():
    assert "message" == row_of(evidence=Evidence(index=0, kind_now="message")).diverged_kind


def test_of_an_inserted_item_the_kind_is_its_own():
    evidence = Evidence(
        index=0, kind_before="reasoning", kind_now="message", klass=DivergenceClass.INSERTED
    )
    assert "message" == row_of(evidence=evidence).diverged_kind


def test_a_detail_too_large_for_the_row_is_counted():
    row = row_of(evidence=Evidence(index=0, field_details=({"field": "x" * EVIDENCE_LIMIT},)))
    assert {
        "index": 0, "length_before": 0, "length_now": 0, "field_details_left_out": 1,
    } == row.evidence_object  # fmt: skip


def test_without_evidence_its_columns_are_unknown():
    row = row_of()
    assert (None, None, None) == (row.diverged_at, row.fingerprint, row.evidence)


def test_evidence_stays_bounded():
    details = tuple({"field": "tools", "tool": "t" * 100} for _ in range(1_000))
    row = row_of(evidence=Evidence(index=0, field_details=details))
    kept = row.evidence_object["field_details"]
    assert list(details[: len(kept)]) == kept
    assert 1_000 == len(kept) + row.evidence_object["field_details_left_out"]
    assert EVIDENCE_LIMIT - 200 < len(row.evidence) <= EVIDENCE_LIMIT
    many = tuple(f"field-{n}" for n in range(1_000))
    row = row_of(evidence=Evidence(index=0, changed_fields=many), changed_fields=many)
    assert (50, 50) == (
        len(row.evidence_object["changed_fields"]),
        len(row.changed_field_names),
    )


def test_a_comma_in_a_field_name_does_not_make_two_names():
    assert ("a%2Cb", "c") == row_of(changed_fields=("a,b", "c")).changed_field_names


def test_lone_surrogates_in_evidence_cannot_break_the_api():
    row = row_of(evidence=Evidence(index=0, field_details=({"tool": "\ud800é"},)))
    assert "?é" == json.loads(row.evidence)["field_details"][0]["tool"]


def test_the_row_says_which_version_wrote_it():
    assert "0.1.0" == row_of().gateway_version
    assert START == make_facts().started_at


# The start


_said = st.none() | st.text(max_size=140)


@given(st.lists(_said, min_size=6, max_size=6), st.sampled_from([None, str.upper]))
def test_a_start_says_what_the_row_will_say(said, pseudonymize):
    names = ("root_session", "turn_group", "client", "client_version", "model", "session")
    facts = make_facts(**dict(zip(names, said, strict=True)), source="sample")
    how = {"gateway_version": "0.1.0", "pseudonymize": pseudonymize}
    row, start = to_row(facts, **how), to_begun(facts, **how)
    assert {n: getattr(row, n) for n in start.__slots__} == {
        n: getattr(start, n) for n in start.__slots__
    }
