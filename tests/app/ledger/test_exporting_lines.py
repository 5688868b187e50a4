import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.csv_export import guard
from app.ledger.exporting_lines import has_odd_cell, in_parts, line_writer

EVERY_BLANK = [chr(code) for code in range(0x110000) if chr(code).isspace() and code != 10]
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\n"), max_size=5)


def lines_of(rows: list[list[str]]) -> bytes:
    """As a database writes them: quoted where they must be, ended by LF."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "'=", *(f"{b}=" for b in EVERY_BLANK)]
)
@pytest.mark.parametrize("place", [0, 1])
def test_every_start_of_a_formula_is_found_in_every_cell(start, place):
    row = ["a", "a"]
    row[place] = start + "1"
    assert guard(row[place]) != row[place]
    assert has_odd_cell(lines_of([["a", "a"], row]), raw=False)
    row[place] = f'{start}1,"'  # in quotes
    assert has_odd_cell(lines_of([row]), raw=False)


def test_ordinary_lines_are_not_odd():
    assert not has_odd_cell(
        b'a,5,,0.5,2027-01-15T08:00:00.007Z,"{""a"":1}"\nb,,"a,b",,,\n', raw=False
    )
    assert not has_odd_cell(b"=1,-5,+,@\n", raw=True)


def test_an_empty_text_in_quotes_is_odd():
    assert has_odd_cell(b'a,"",b\n', raw=True)
    assert has_odd_cell(b'"",b\n', raw=True)
    assert has_odd_cell(b'b,""\n', raw=True)


@given(st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1, max_size=4))
def test_what_is_not_odd_needs_no_guard(rows):
    if not has_odd_cell(lines_of(rows), raw=False):
        assert all(guard(cell) == cell for row in rows for cell in row)


@given(st.lists(st.booleans(), max_size=40))
def test_odd_records_alone_go_the_long_way_and_the_order_stays(odd):
    long_way = []

    def ready(records):
        return None if any(odd[at] for at in records) else b"".join(b"%d," % at for at in records)

    def exact(at):
        long_way.append(at)
        return b"%d!," % at

    made = in_parts(range(len(odd)), ready, exact)
    assert [
        f"{at}!" if is_odd else str(at) for at, is_odd in enumerate(odd)
    ] == made.decode().split(",")[:-1]
    assert [at for at, is_odd in enumerate(odd) if is_odd] == long_way


def test_a_line_is_guarded_in_text_columns_only():
    line = line_writer(("model", "epoch"), raw=False)
    assert b"'=1,-3\r\n" == line(["=1", "-3"])
    assert b'"a,""",\r\n' == line(['a,"', ""])
    assert b"=1,-3\r\n" == line_writer(("model", "epoch"), raw=True)(["=1", "-3"])
