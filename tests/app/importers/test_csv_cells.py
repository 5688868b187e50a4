import pytest

from app.importers.csv_cells import count_cell, header, milliseconds_cell, text_cell, words
from app.importers.importer import NotReadable
from app.importers.lines import Line
from app.importers.own_row import BadCell


@pytest.mark.parametrize("between", [",", ";", "\t", ", "])
def test_names_of_columns_are_told_whatever_is_between_them(between: str):
    assert {"t", "a b", "input"} == words(between.join(["t", '"a b"', "input\r"]).encode())
    assert {"t|input", "\ufffd"} == words(b"t|input,\xff")


def test_the_first_line_names_the_columns():
    assert ["t", "a b", "input"] == header(
        Line(1, b'\xef\xbb\xbft,"a b",input\r'), frozenset({"t", "input"})
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b't,"input', "Its first line cannot be read as CSV in UTF-8."),
        (b"t,input,\xff", "Its first line cannot be read as CSV in UTF-8."),
        (b"t;input", "Its columns are not separated by commas. Save it as CSV with commas."),
        (b"", "Its columns are not separated by commas. Save it as CSV with commas."),
        (b"t,input,t", "It has the column 't' twice."),
    ],
)
def test_columns_that_cannot_be_told_are_not_read(data: bytes, said: str):
    with pytest.raises(NotReadable) as caught:
        header(Line(1, data), frozenset({"t", "input"}))
    assert said == str(caught.value)


def test_cells_are_texts_of_values():
    assert 12 == count_cell("n", "12")
    assert 1.5 == milliseconds_cell("n", "1.5")
    assert ["=1", "'", "a"] == [text_cell("n", cell) for cell in ("'=1", "'", "a")]


@pytest.mark.parametrize(
    ("kind", "cell", "why"),
    [
        (count_cell, "1e3", "is no whole number"),
        (count_cell, "-1", "is no whole number"),
        (count_cell, "\u0663", "is no whole number"),
        (count_cell, str(2**31), "is below 0 or too great"),
        (count_cell, "1" * 5_000, "is below 0 or too great"),
        (milliseconds_cell, "x", "is no number"),
        (milliseconds_cell, "nan", "is below 0 or too great"),
        (milliseconds_cell, "-1", "is below 0 or too great"),
        (text_cell, "a\x00", "holds a NUL"),
    ],
)
def test_a_cell_that_is_none_is_refused(kind, cell: str, why: str):
    with pytest.raises(BadCell) as caught:
        kind("n", cell)
    assert why == caught.value.reason
