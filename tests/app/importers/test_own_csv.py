from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.importers.importer import NotReadable, Remark, Skipped
from app.importers.lines import Line
from app.importers.own_csv import read as read_csv
from app.importers.own_row import REQUIRED
from app.ledger.rows import COLUMNS, TurnRow
from tests.support.importing import as_csv, read, rows, torn
from tests.support.rows import make_row


@settings(max_examples=15)
@given(st.lists(rows, max_size=3), st.booleans())
def test_what_was_exported_is_read_as_it_was(found, bom):
    assert found == read(read_csv, as_csv(found, bom=bom))


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("text", ["=1+1", "\t-x", " @a", "+", "'", "'a", "it's", 'a "b",\r\nc'])
def test_text_is_the_same_again_guarded_or_raw(text: str, raw):
    row = make_row(session=text, session_key="k", model=text)
    assert [row] == read(read_csv, as_csv([row], raw=raw))


def test_columns_may_be_left_out_and_come_in_any_order():
    row = make_row()
    columns = [*reversed(REQUIRED), "ended_at", "recorded_at", "model"]
    (found,) = read(read_csv, as_csv([row], columns))
    assert replace(row, **dict.fromkeys(set(COLUMNS) - set(columns))) == found


def test_a_spreadsheet_may_have_written_it():
    row = make_row()
    text = as_csv([row]).replace(b"true", b"TRUE").replace(b"\r\n", b"\n")
    assert [row] == read(read_csv, text + b"\n\n")


def test_unknown_columns_are_told_and_left_out():
    data = as_csv([make_row(turn_id="t")]).replace(b"\r\n", b",x\r\n")
    remark, row = read(read_csv, data)
    assert isinstance(remark, Remark)
    assert "'x'" in remark.text
    assert "t" == row.turn_id


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"turn_id;started_at\n", "with commas"),
        (b"turn_id,started_at,turn_id\n", "'turn_id' twice"),
        (b"turn_id,started_at,model\n", "lacks .* source, kind, .* usage_state. Export it again"),
        (b"\xff\n", "UTF-8"),
        (b"", "with commas"),
    ],
)
def test_a_first_line_that_is_no_use_is_told(data: bytes, message: str):
    with pytest.raises(NotReadable, match=message):
        read(read_csv, data)


GOOD = make_row(evidence='{"path":"/a"}')
HEADER, LINE = as_csv([GOOD]).split(b"\r\n")[:2]
LINE += b"\r\n"


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"secret\r\n", "line 3: has not 76 cells as the first line has"),
        (LINE[:90] + b"\r\n", "line 3: has not 76 cells as the first line has"),
        (LINE.strip() + LINE, "line 3: has not 76 cells as the first line has"),
        (LINE.replace(b"reported", b"secret"), "line 3: usage_state is none of the words that this version knows"),
        (LINE.replace(b"Z", b"", 1), "line 3: started_at is no time in ISO 8601 with Z or an offset"),
        (LINE.replace(b",1000,", b",1e3,"), "line 3: input_tokens is no whole number"),
        (LINE.replace(b",1800.0,", b",secret,"), "line 3: duration_ms is no number"),
        (LINE.replace(b"gpt", b"\xff"), "line 3: is not UTF-8"),
        (LINE.replace(b"gpt", b"\x00"), "line 3: model holds a NUL"),
        (LINE.replace(b"gpt", b'"secret"x'), "line 3: is no CSV"),
        (LINE.replace(b"gpt", b'"secret'), "line 3: has a quote that is not closed"),
    ],
)  # fmt: skip
def test_a_bad_line_is_told_without_its_content_and_the_others_go_on(bad: bytes, why: str):
    first, skipped, *others = read(read_csv, HEADER + b"\r\n" + LINE + bad + LINE * 3)
    assert (GOOD, why, [GOOD] * 3) == (first, str(skipped), others)
    assert "secret" not in str(skipped)


def test_quotes_that_nobody_closes_take_nothing_with_them():
    bad = LINE.replace(b"gpt", b'"gpt')
    found = read(read_csv, HEADER + b"\r\n" + (bad + LINE + LINE) * 3)
    # Two open quotes close each other: what lies between them is one record that is none.
    assert all(item == GOOD for item in found if not isinstance(item, Skipped))
    assert GOOD == found[-1]
    long = [bad] + [LINE] * 300
    found = read(read_csv, HEADER + b"\r\n" + b"".join(long))
    assert [GOOD] * 300 == found[1:]


def test_very_many_bad_lines_cost_no_stack():
    found = read(read_csv, HEADER + b"\r\n" + b'"\r\n' + (b"x\r\n" * 120 + b'"\r\n') * 40 + LINE)
    assert GOOD == found[-1]


def test_a_line_that_is_too_long_is_told_also_within_a_quote():
    lines = [Line(1, HEADER), Line(2, b'"x'), Line(3, b"", too_long=True), Line(4, LINE.strip())]
    first, second, row = read_csv(lines)
    assert (2, 3, "is too long", GOOD) == (first.line, second.line, second.reason, row)


@pytest.mark.parametrize("length", [1, 60, len(LINE) - 2])
def test_a_last_line_that_is_being_written_is_left_for_the_next_time(length: int):
    found = read(read_csv, HEADER + b"\r\n" + LINE + LINE[:length])
    assert [GOOD, Skipped(3, "has no end: the file was cut, or is being written")] == found


@settings(max_examples=60)
@given(torn(HEADER + b"\r\n" + LINE * 4))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    try:
        found = read(read_csv, data)
    except NotReadable:
        return
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in found)
