import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.importers import json_values
from app.importers.json_values import first_objects, one_a_line, split
from app.importers.lines import Line


def lines(data: bytes, limit: int = 10_000) -> list[Line]:
    return list(split(io.BufferedReader(io.BytesIO(data)), limit))


def values(data: bytes) -> list[Any]:
    return [json.loads(line.data) for line in lines(data)]


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":[1]}\n{"b":"}"}\n',
        b'[{"a":[1]},{"b":"}"}]',
        b'\xef\xbb\xbf [\n  {"a": [1]},\n  {"b": "}"}\n]\n',
        b'{\n  "a": [1]\n}\n{\n  "b": "}"\n}\n',
        b'[{"a":[1]}]\n[{"b":"}"}]\n',
        b'[7,"{",null,[{"inner":1}],{"a":[1]},{"b":"}"}]',
    ],
)
def test_the_objects_of_a_file_are_found_however_they_lie_in_it(data: bytes):
    assert [{"a": [1]}, {"b": "}"}] == values(data)


def test_an_object_is_known_by_the_line_where_it_begins():
    assert [2, 5] == [line.number for line in lines(b'[\n{\n"a":1},\n\n{"b":2}]')]


def test_a_line_of_objects_one_a_line_costs_no_more_than_itself():
    assert [b'{"torn', b'{"a":1}'] == [line.data for line in lines(b'{"torn\n{"a":1}\n')]


@pytest.mark.parametrize("chunk", [9, 1 << 20])
def test_an_object_that_is_cut_or_too_long_is_told_and_its_neighbours_are_there(chunk, monkeypatch):
    monkeypatch.setattr(json_values, "_CHUNK", chunk)
    assert [Line(1, b'{"a":1}'), Line(2, b'{"b', whole=False)] == lines(b'[{"a":1},\n{"b')
    data = b'[{"a":1},{"b":"' + b"x" * 99 + b'"},{"c":3}]'
    assert [(7, False), (0, True), (7, False)] == [
        (len(line.data), line.too_long) for line in lines(data, 50)
    ]


def test_brackets_that_nobody_closes_take_no_memory(monkeypatch):
    monkeypatch.setattr(json_values, "_CHUNK", 1_024)
    file = io.BufferedReader(io.BytesIO(b'[{"a":1},' + b"[" * 100_000))
    tracemalloc.start()
    try:
        assert [b'{"a":1}'] == [line.data for line in split(file)]
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_of_an_object_that_is_too_long_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(json_values, "_CHUNK", 9)
    (line,) = lines(b'[\n{"a":"' + b"x\n" * 99, 50)
    assert (2, b"", False, True) == (line.number, line.data, line.whole, line.too_long)


def test_of_a_head_the_last_object_may_be_a_part():
    assert [b'{"a":1}', b'{"b":'] == first_objects(b'[{"a":1},{"b":')
    assert [b'{"a":1}', b'{"b":'] == first_objects(b'{"a":1}\n{"b":')
    assert 10 == len(first_objects(b"[" + b"{}," * 20))


def test_an_array_and_a_brace_that_stands_alone_are_no_lines():
    assert [True, True, False, False] == [
        one_a_line(data) for data in (b"", b'{"a":1}\n', b" [1", b"\n{\r\n")
    ]


_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text('"\\{}[]a\n'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\{a', max_size=3), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=40)
@given(
    st.lists(st.dictionaries(st.sampled_from(["a", '"b\\']), _json, min_size=1), max_size=5),
    st.integers(1, 9),
    st.none() | st.integers(0, 2),
)
def test_wherever_the_pieces_of_a_file_end_its_objects_are_the_same(found, size, indent):
    """Pieces are some bytes long here, and a million else."""
    data = json.dumps(found, indent=indent).encode()
    before, json_values._CHUNK = json_values._CHUNK, size
    try:
        assert found == values(data)
    finally:
        json_values._CHUNK = before
