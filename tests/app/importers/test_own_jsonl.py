import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.importers.importer import Remark, Skipped
from app.importers.own_jsonl import read as read_jsonl
from app.importers.own_row import REQUIRED
from app.ledger.rows import COLUMNS, TurnRow
from tests.support.importing import as_jsonl, read, rows, torn
from tests.support.rows import make_row


@settings(max_examples=15)
@given(st.lists(rows, max_size=3))
def test_what_was_exported_is_read_as_it_was(found):
    assert found == read(read_jsonl, as_jsonl(found))


def test_columns_may_be_left_out_and_come_in_any_order():
    row = make_row(cost_usd=None)
    columns = [*reversed(REQUIRED), "ended_at", "model"]
    (found,) = read(read_jsonl, as_jsonl([row], columns))
    assert replace(row, **dict.fromkeys(set(COLUMNS) - set(columns) - {"recorded_at"})) == replace(
        found, recorded_at=row.recorded_at
    )


def test_unknown_columns_are_told_once_and_left_out():
    row = make_row()
    line = json.dumps(row.as_dict() | {"from_2030": 1}).encode()
    remark, *found = read(read_jsonl, line + b"\n" + line + b"\n")
    assert isinstance(remark, Remark)
    assert "'from_2030'" in remark.text
    assert [row, row] == found


GOOD = make_row()
LINE = as_jsonl([GOOD])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"secret\n", "line 2: is not one JSON object"),
        (b"[1]\n", "line 2: is not one JSON object"),
        (LINE.strip() + LINE, "line 2: is not one JSON object"),
        (LINE[:99] + b"\n", "line 2: is not one JSON object"),
        (b"\x00\x00\n", "line 2: is not one JSON object"),
        (b'{"turn_id":"\xff"}\n', "line 2: is not one JSON object"),
        (b'{"turn_id":"secret"}\n', "line 2: started_at is missing"),
        (LINE.replace(b'"model":"', b'"model":7,"x":"'), "line 2: model is no text"),
        (LINE.replace(b'"attempts":1', b'"attempts":"secret"'), "line 2: attempts is no whole number"),
        (LINE.replace(b'"evidence":null', b'"evidence":7'), "line 2: evidence is no JSON object"),
        (LINE.replace(b'"changed_fields":null', b'"changed_fields":["a,b"]'),
         "line 2: changed_fields holds a name with a comma"),
        (LINE.replace(b'"changed_fields":null', b'"changed_fields":"tools"'),
         "line 2: changed_fields is no list of names"),
    ],
)  # fmt: skip
def test_a_bad_line_is_told_without_its_content_and_the_others_go_on(bad: bytes, why: str):
    first, *skipped, last = read(read_jsonl, LINE + bad + LINE)
    assert (GOOD, GOOD) == (first, last)
    assert [why] == [str(item) for item in skipped if isinstance(item, Skipped)]
    assert "secret" not in str(skipped)


def test_evidence_that_is_nested_too_deeply_ends_nothing():
    """Somewhere what can just be read can no longer be written."""
    for depth in range(800, 1_001):
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        found = read(read_jsonl, LINE.replace(b'"evidence":null', b'"evidence":' + nested))
        assert [True] == [
            item.reason in ("is nested too deeply", "is not one JSON object")
            for item in found
            if isinstance(item, Skipped)
        ]


def test_a_last_line_that_is_being_written_is_left_for_the_next_time():
    assert [GOOD, Skipped(2, "ends within its record")] == read(read_jsonl, LINE + LINE[:50])
    assert [GOOD, GOOD] == read(read_jsonl, LINE + LINE.strip())


@settings(max_examples=60)
@given(torn(LINE * 4))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    found = read(read_jsonl, data)
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in found)
