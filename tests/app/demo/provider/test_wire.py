"""JSON as it stands on the wire."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.demo.provider.wire import dumps, parse_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_output_is_compact_and_in_characters():
    assert dumps({"a": ["é", 1]}) == '{"a":["é",1]}'
    assert dumps({"a": "\ud800"}) == '{"a":"\\ud800"}'


def test_items_keep_their_exact_text():
    text = (
        ' { "a": [1], "input" : [ {"x":1.50} ,\n"s\\u00e9",  [ ], null ] , "b": {"input": [9]} } '
    )
    assert parse_object(text).input_texts == ('{"x":1.50}', '"s\\u00e9"', "[ ]", "null")


@given(
    before=st.dictionaries(st.text(), VALUES, max_size=3),
    items=st.lists(VALUES, max_size=5),
    after=st.dictionaries(st.text(), VALUES, max_size=3),
    indent=st.sampled_from([None, 1]),
    escape=st.booleans(),
)
def test_each_item_is_found_wherever_it_stands(before, items, after, indent, escape):
    body = {**before, "input": items, **{k: v for k, v in after.items() if k != "input"}}
    parsed = parse_object(json.dumps(body, indent=indent, ensure_ascii=escape))
    assert parsed.value == body
    assert [json.loads(text) for text in parsed.input_texts] == items


@pytest.mark.parametrize("text", ['{"input":"x"}', "{}", '{"input":null}'])
def test_without_an_array_there_are_no_items(text):
    assert parse_object(text).input_texts == ()


def test_the_last_of_two_inputs_counts():
    parsed = parse_object('{"input":[1],"input":[2, 3]}')
    assert (parsed.value["input"], parsed.input_texts) == ([2, 3], ("2", "3"))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"a":1}x', "\ufeff{}"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ValueError):
        parse_object(text)
