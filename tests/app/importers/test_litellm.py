import base64
import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings

from app.importers.importer import NotReadable, Remark, Skipped
from app.importers.litellm import LITELLM, OWN_SESSIONS, recognizes
from app.ledger.rows import TurnRow
from tests.support.grown import differing
from tests.support.importing import imported, stored, torn

T_MS = 1_800_000_000_000
DETAILS = {"cached_tokens": 28_928, "cache_write_tokens": 300}
USAGE = {
    "prompt_tokens": 29_423,
    "completion_tokens": 210,
    "total_tokens": 29_633,
    "prompt_tokens_details": DETAILS,
    "completion_tokens_details": {"reasoning_tokens": 150},
}


def call(number: int, **changes: Any) -> dict[str, Any]:
    """A row of the table as the API answers it."""
    return {
        "request_id": f"resp_{number}",
        "call_type": "aresponses",
        "api_key": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
        "spend": 0.004,
        "total_tokens": 29_633,
        "prompt_tokens": 29_423,
        "completion_tokens": 210,
        "startTime": f"2027-01-15T08:00:{number:02}.250Z",
        "endTime": f"2027-01-15T08:00:{number:02}.900Z",
        "completionStartTime": f"2027-01-15T08:00:{number:02}.600Z",
        "model": "gpt-5.6",
        "model_group": "fast",
        "custom_llm_provider": "openai",
        "api_base": "https://user:secret@api.openai.com/v1",
        "user": "secret",
        "metadata": {
            "status": "success",
            "user_api_key": "secret",
            "usage_object": USAGE,
            "additional_usage_values": {"prompt_tokens_details": None, "service_tier": "default"},
        },
        "cache_hit": "False",
        "cache_key": "Cache OFF",
        "request_tags": ["secret"],
        "messages": {"secret": 1},
        "response": {"secret": 1},
        "proxy_server_request": {"input": "secret"},
        "session_id": "s1",
        "status": "success",
        "litellm_call_id": f"call-{number}",
    } | changes


def metadata(**changes: Any) -> dict[str, Any]:
    return call(0)["metadata"] | changes


def split(data: bytes) -> list[Any]:
    return list(LITELLM.read(LITELLM.split(io.BufferedReader(io.BytesIO(data)))))


def of(*calls: dict[str, Any]) -> list[Any]:
    return split(json.dumps(calls).encode())


def jsonl(*calls: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in calls)


def dump(*calls: dict[str, Any]) -> bytes:
    """As PostgreSQL copies the table: times without a zone, JSON as text, nothing for null."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(call(0))
    for one in calls:
        writer.writerow(
            json.dumps(value)
            if isinstance(value, dict | list)
            else value.replace("T", " ").removesuffix("Z")
            if name.endswith("Time") and value
            else value
            for name, value in one.items()
        )
    return text.getvalue().encode()


def test_a_call_is_told_with_all_that_its_row_says_and_nothing_of_what_was_said():
    (row,) = of(call(1))
    assert ("import:litellm", "s1", "gpt-5.6", "api.openai.com", "default", "resp_1") == (
        row.source, row.session, row.model, row.upstream, row.service_tier, row.response_id
    )  # fmt: skip
    assert (29_423, 28_928, 495, 300, 210, 150, 29_633, "reported") == (
        row.input_tokens, row.cached_tokens, row.non_cached_tokens, row.cache_write_tokens,
        row.output_tokens, row.reasoning_tokens, row.total_tokens, row.usage_state,
    )  # fmt: skip
    assert (T_MS + 1_250, T_MS + 1_900, 350, 650, "completed", "generation") == (
        row.started_at, row.ended_at, row.ttft_ms, row.duration_ms, row.status, row.kind
    )  # fmt: skip
    assert (None, None, False) == (row.mode, row.reason, row.eligible)
    assert "secret" not in str(row)


def test_an_array_lines_printed_objects_and_a_dump_of_the_table_make_the_same_rows():
    calls = [call(1), call(2, session_id="s2", cache_hit=""), call(3, completionStartTime=None)]
    rows = of(*calls)
    assert 3 == len(rows)
    printed = b"\n".join(json.dumps(one, indent=2).encode() for one in calls)
    texts = [one | {"metadata": json.dumps(one["metadata"])} for one in calls]
    for data in (b"\n" + jsonl(*calls), printed, jsonl(*texts), dump(*calls)):
        assert recognizes(data)
        assert rows == split(data)


def test_what_litellm_answered_from_its_own_cache_asked_no_provider():
    hit = call(2, request_id="resp_1_cache_hit1800000000.5", cache_hit="True")
    first, skipped = of(call(1), hit)
    assert "resp_1" == first.response_id
    assert "line 1: was answered from LiteLLM's own cache: no provider was asked" == str(skipped)


def test_a_call_that_was_not_streamed_tells_no_time_to_the_first_token():
    (row,) = of(call(1, completionStartTime="2027-01-15T08:00:01.900Z"))
    assert (None, 650) == (row.ttft_ms, row.duration_ms)


@pytest.mark.parametrize(
    ("usage", "given", "read", "written", "long"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 900, 0, None, None),
        ({"prompt_tokens_details": None}, 900, None, None, None),
        ({"cache_read_input_tokens": 500, "cache_creation_input_tokens": 50}, 900, 500, 50, None),
        ({"cache_read_input_tokens": 0, "prompt_tokens_details": {"cached_tokens": 400,
          "cache_creation_tokens": 60,
          "cache_creation_token_details": {"ephemeral_1h_input_tokens": 20}}}, 900, 400, 60, 20),
        # The figure of Anthropic as it is, which leaves the cache out.
        ({"cache_read_input_tokens": 2_495, "cache_creation_input_tokens": 100}, 3_495, 2_495, 100,
         None),
    ],
)  # fmt: skip
def test_the_parts_of_the_input_are_told_as_the_provider_told_them(
    usage, given, read, written, long
):
    (row,) = of(call(1, prompt_tokens=900, metadata=metadata(usage_object=usage)))
    assert (given, read, written, long) == (
        row.input_tokens, row.cached_tokens, row.cache_write_tokens, row.cache_write_long_tokens
    )  # fmt: skip


def test_zeros_that_nobody_told_are_no_usage_and_zeros_that_were_told_are_some():
    bare = call(1, prompt_tokens=0, completion_tokens=0, metadata="{}")
    told = call(2, prompt_tokens=0, completion_tokens=0,
                metadata=metadata(usage_object={"prompt_tokens": 0}))  # fmt: skip
    assert [(None, "missing"), (0, "reported")] == [
        (row.input_tokens, row.usage_state) for row in of(bare, told)
    ]


@pytest.mark.parametrize(
    ("error", "status", "http_status", "code"),
    [
        ({"error_code": "429", "error_class": "RateLimitError"}, "rate_limited", 429,
         "RateLimitError"),
        ({"error_code": "500", "error_class": ""}, "error", 500, None),
        ({"error_code": "model_not_found", "error_class": None}, "error", None, "model_not_found"),
        (None, "error", None, None),
    ],
)  # fmt: skip
def test_a_failure_is_named_and_what_it_says_stays_out(error, status, http_status, code):
    told = None if error is None else error | {"error_message": "secret", "traceback": "secret"}
    (row,) = of(
        call(1, request_id="call-1", prompt_tokens=0, completion_tokens=0,
             metadata={"status": "failure", "error_information": told})
    )  # fmt: skip
    assert (status, http_status, code, None, "missing") == (
        row.status, row.http_status, row.error_code, row.response_id, row.usage_state
    )  # fmt: skip
    assert "secret" not in str(row)


def test_the_providers_id_is_told_where_litellm_has_wrapped_it_and_its_own_is_none():
    plain = "litellm:custom_llm_provider:openai;model_id:abc;response_id:resp_068"
    wrapped = "resp_" + base64.b64encode(plain.encode()).decode()
    found = of(*(call(n, request_id=name)
                 for n, name in enumerate([wrapped, "chatcmpl-7", "resp_08f", "call-3"])))  # fmt: skip
    assert ["resp_068", "chatcmpl-7", "resp_08f", None] == [row.response_id for row in found]


@pytest.mark.parametrize("odd", [[], {}, 7, True, "", "x" * 999])
def test_values_of_another_type_than_they_should_have_are_unknown(odd):
    names = call(1).keys() - {"startTime", "call_type", "cache_hit"}
    (row,) = of(call(1, **dict.fromkeys(names, odd)))
    assert T_MS + 1_250 == row.started_at
    (row,) = of(call(1, metadata=dict.fromkeys([*metadata(), "error_information"], odd)))
    assert (29_423, None) == (row.input_tokens, row.cached_tokens)
    of(call(1, call_type=odd), call(1, startTime=odd))


def test_rows_without_an_id_are_known_by_what_they_say():
    found = of(*(call(n, request_id=name) for n, name in enumerate(["", "", "None", None])))
    assert 4 == len({row.turn_id for row in found})
    assert {None} == {row.response_id for row in found}


def test_other_calls_and_rows_without_a_time_are_told():
    found = of(call(1, call_type="aembedding"), call(2, startTime="soon"), call(3, call_type=""))
    assert [
        "line 1: is of a call that generates nothing",
        "line 1: startTime is no time in ISO 8601 with Z or an offset",
    ] == [str(item) for item in found[:2]]
    assert isinstance(found[2], TurnRow)
    (compaction,) = of(call(1, call_type="acompact_responses"))
    assert "compaction" == compaction.kind


def test_sessions_that_litellm_made_up_are_told_as_such():
    assert [Remark(OWN_SESSIONS)] == of(call(1, session_id="a"), call(2, session_id="b"))[2:]
    assert [] == of(call(1, session_id="a"), call(2, session_id="b"), call(3, session_id="a"))[3:]


def test_a_row_that_is_torn_costs_itself_and_content_of_any_length_is_passed_over():
    long = call(2, messages=["x" * 300_000])
    data = dump(call(1), long) + b"torn,\n" + dump(call(3)).split(b"\n", 1)[1]
    assert ["resp_1", "resp_2", None, "resp_3"] == [
        getattr(item, "response_id", None) for item in split(data)
    ]


def test_columns_that_are_separated_by_something_else_are_told():
    data = b"request_id;startTime;prompt_tokens\n"
    assert recognizes(data)
    with pytest.raises(NotReadable, match="commas"):
        split(data)


def test_it_is_recognized_also_where_its_first_row_is_longer_than_what_is_looked_at():
    head = json.dumps([call(1, messages=["x" * 99_000])]).encode()[:65_536]
    assert recognizes(head)
    summed_up = b'[{"startTime":"2027-01-15","spend":0.1,"users":{},"models":{}}]'
    assert not recognizes(summed_up)


def test_what_is_read_while_it_is_written_changes_nothing_when_it_is_read_again():
    assert [] == differing(LITELLM.read, jsonl(call(1), call(2, session_id="s2"), call(3)))


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_file_of_one_endless_line_is_imported(engine, tmp_path):
    path = tmp_path / "spend.json"
    path.write_bytes(json.dumps([call(n, messages=["x" * 40_000]) for n in range(30)]).encode())
    report = imported(engine, path)
    assert ("litellm", 30, {}) == (
        report.files[0].format, report.counts.new, dict(report.counts.skipped)
    )  # fmt: skip
    assert 30 == len(stored(engine))


@settings(max_examples=60)
@given(torn(json.dumps([call(1), call(2)]).encode()) | torn(dump(call(1), call(2))))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    try:
        found = split(data)
    except NotReadable:
        return
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in found)
