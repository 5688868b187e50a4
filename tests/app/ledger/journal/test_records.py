from dataclasses import replace
from decimal import Decimal
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.journal import records
from app.ledger.journal.records import (
    Ended,
    NewerVersionError,
    Reader,
    Settled,
    UnderWay,
    begun,
    ended,
    header,
    settled,
    under_way,
)
from app.ledger.rows import COLUMNS, TurnRow
from tests.support.ledger import rows as some_rows
from tests.support.rows import make_begun, make_row, unknown_usage


def read(*lines: bytes):
    reader = Reader()
    return [line.record for line in reader.lines(b"".join(lines))], reader.torn


@given(some_rows)
def test_a_row_is_read_as_it_was_written(row: TurnRow):
    assert ([Ended(row, 0)], 0) == read(header(0), ended(row))


def test_money_stays_exact_and_unknown_stays_unknown():
    row = replace(unknown_usage(), cost_usd=Decimal("0.094000001"))
    assert ([Ended(row, 0)], 0) == read(header(0), ended(row))


def test_ends_are_numbered_from_the_segments_first():
    found, _ = read(
        header(7), ended(make_row()), begun(make_begun()), ended(make_row()), settled(8)
    )
    assert [7, make_begun(), 8, Settled(8)] == [getattr(one, "number", one) for one in found]


def test_what_is_still_under_way_is_read_as_it_was_written():
    assert ([UnderWay(frozenset("ab"))], 0) == read(header(0), under_way("ab"))


def test_a_segment_of_a_newer_version_is_refused(monkeypatch):
    monkeypatch.setattr(records, "VERSION", records.VERSION + 1)
    newer = header(0)
    monkeypatch.undo()
    with pytest.raises(NewerVersionError):
        Reader().record(newer)


ROW, TORN = make_row(turn_id="turn_a"), make_row(turn_id="turn_b")


@given(st.data())
def test_a_line_that_was_torn_or_changed_is_left_out_and_those_before_it_are_read(data):
    before = header(0) + ended(ROW)
    last = ended(TORN)
    if data.draw(st.booleans(), label="cut off"):
        last = last[: data.draw(st.integers(1, len(last) - 1))]
    else:
        at = data.draw(st.integers(0, len(last) - 2))
        same = {10, *last[at : at + 1], *last[at : at + 1].upper(), *last[at : at + 1].lower()}
        other = data.draw(st.integers(0, 255).filter(lambda byte: byte not in same))
        last = last[:at] + bytes([other]) + last[at + 1 :]
    assert ([Ended(ROW, 0)], 1) == read(before, last)


def test_what_an_older_version_wrote_is_read_with_its_new_columns_unknown(monkeypatch):
    monkeypatch.setattr(records, "COLUMNS", COLUMNS[:-3])
    monkeypatch.setattr(records, "_values", attrgetter(*COLUMNS[:-3]))
    older = header(0) + ended(ROW)
    monkeypatch.undo()
    assert ([Ended(ROW, 0)], 0) == read(older)


def test_a_turn_whose_process_ended_is_an_error_of_which_the_rest_is_unknown():
    row = make_begun().row(ended_at=9_000)
    assert ("error", "process_ended", 1_000, 9_000) == (
        row.status, row.error_code, row.started_at, row.ended_at
    )  # fmt: skip
    assert (None, None, None, None, "missing") == (
        row.mode, row.reason, row.duration_ms, row.input_tokens, row.usage_state
    )  # fmt: skip
    assert not row.eligible


def test_a_turn_does_not_end_before_it_began():
    assert make_begun().row(ended_at=5).ended_at == 1_000


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"junk\n",
        b"00000000 []\n",
        b"zzzzzzzz []\n",
        *(records._line(values) for values in ([], ["x"], ["s"], ["u"], ["u", 1], ["h"], ["e", 1])),
    ],
)
def test_nonsense_is_torn(line):
    reader = Reader()
    assert reader.record(line) is None
    assert reader.torn == 1
