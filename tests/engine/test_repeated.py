"""Items that are cut out by the help of known ones are those that a reader of all finds."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine.repeated import repeated, skip, skip_back
from engine.splitting import read
from tests.engine.test_splitting import VALUES, changed, known_of, outcome

_array = msgspec.json.Decoder(list[Raw])
GAPS = [",", ",", ", ", " , ", "\n,\t", ",\r\n  "]
MORE = ['{"a":[1,{"b":2}],"c":"x,y"}', '{"a":[1,{"b":2}],"c":"x,z"}', '",1"', '"1,"', "1,2"[:1], "-1", "1e5"]  # fmt: skip

values = st.sampled_from(VALUES + MORE)


def texts(raws):
    return [bytes(raw) for raw in raws]


@st.composite
def lists(draw):
    """A list, and another in which some items are others, or spelled or parted otherwise."""
    items = draw(st.lists(values, min_size=1, max_size=6))
    other = list(items)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(other) - 1))
        other[at] = draw(values | st.just(other[at].replace(":", " : ")))
    other += draw(st.lists(values, max_size=2))
    between = draw(st.sampled_from(GAPS))
    text = draw(st.sampled_from(["", " "])) + other[0]
    for item in other[1:]:
        text += (between if draw(st.integers(0, 3)) else draw(st.sampled_from(GAPS))) + item
    return items, (text + draw(st.sampled_from(["", " "]))).encode()


@given(lists(), st.sampled_from([b"]", b"],", b'],"x":[1,2]}']))
@settings(max_examples=500, deadline=None)
def test_what_is_cut_is_what_a_reader_of_all_finds(given_, behind):
    known, inside = given_
    body = b"[" + inside + behind
    try:
        expected = texts(_array.decode(b"[" + inside + b"]"))
    except msgspec.DecodeError:  # half of a surrogate pair
        return
    found, end = repeated(body, 1, [Raw(text.encode()) for text in known], first=True)
    assert texts(found) == expected[: len(found)]
    assert body[:end].endswith(expected[len(found) - 1] if found else b"[")
    same = [one == other.encode() for one, other in zip(expected, known, strict=False)]
    assert len(found) >= (same.index(False) if False in same else len(same))


@given(lists(), st.data())
@settings(max_examples=500, deadline=None)
def test_bodies_of_known_items_are_read_as_without_them(given_, data):
    known, inside = given_
    tail = data.draw(st.sampled_from([b"}", b',"store":false}', b', "input":[]}']))
    old = b'{"model":"m","input":[' + ",".join(known).encode() + b"]" + tail
    head = data.draw(st.sampled_from([
        b'{"model":"m","input":[', b'{"input": [', b'{"tools":[{"input":[1]},{"input":{}}],"input":[',
        b'{"a":"\\"input\\":[1","input" : [', b'{"a":{"input":[', b'{"input":[1],"input":[',
    ]))  # fmt: skip
    new = head + inside + b"]" + tail
    bodies = [new, data.draw(changed(new))]
    for body in bodies:
        assert outcome(body, known_of(old)) == outcome(body)


def test_one_item_in_another_spelling_does_not_end_it():
    known = [Raw(text) for text in (b'{"a":1,"b":2}', b'{"c":3}', b"[4]", b"5")]
    body = b'[{"b":2,"a":1}, {"c":3} ,[4],5,6]'
    found, end = repeated(body, 1, known, first=True)
    assert (texts(found), body[end:]) == ([b'{"b":2,"a":1}', b'{"c":3}', b"[4]", b"5"], b",6]")
    found, end = repeated(b'[1,{"b":2,"a":1},{"c":3}]', 2, known, first=False)
    assert (texts(found), end) == ([b'{"b":2,"a":1}', b'{"c":3}'], 24)


@pytest.mark.parametrize(
    "body",
    [
        b'["a",["b"],{"c":3}]',  # two items stand where one stood
        b'[{"a":"\xff"},{"c":3}]',
        b'[{"a":1}{"c":3}]',
        b'[,{"c":3}]',
        b'[ {"c":3}]',
        b'["a,{"c":3}',
        b'[12 3,{"c":3}',
    ],
)
def test_what_is_no_single_value_before_a_known_item_is_not_cut(body):
    assert repeated(body, 1, [Raw(b"1"), Raw(b'{"c":3}')], first=True) == ([], 1)


def test_a_text_that_holds_the_next_item_does_not_deceive():
    known = [Raw(b'{"t":1}'), Raw(b"7")]
    assert texts(repeated(b'["x,7",7,8]', 1, known, first=True)[0]) == [b'"x,7"', b"7"]
    assert texts(repeated(b'["' + b",7" * 9 + b'",7]', 1, known, first=True)[0]) == []


def test_nothing_is_cut_where_nothing_is_known_or_nothing_follows():
    assert repeated(b"[1,2]", 1, [], first=True) == ([], 1)
    assert repeated(b"[1]", 2, [Raw(b"2")], first=False) == ([], 2)
    assert repeated(b"[34]", 1, [Raw(b"2")], first=True) == ([], 1)
    assert repeated(b"[12]", 1, [Raw(b"1")], first=True) == ([], 1)


def test_blanks_are_passed_over_in_both_directions():
    text = b"1" + b" \t\r\n" * 3000 + b"2"
    assert (skip(text, 1), skip_back(text, len(text) - 1)) == (len(text) - 1, 1)
    assert (skip(b" ", 0), skip_back(b" ", 1), skip_back(b"", 0)) == (1, 0, 0)


def test_items_behind_another_are_those_of_the_request():
    old = json.dumps({"model": "m", "input": [{"n": n} for n in range(9)]}).encode()
    new = old.replace(b'{"n": 4}', b'{"n":4}').replace(b'{"n": 8}', b'{"n": 8}, 9')
    (known,) = known_of(old)
    items = read(new, [known])[1]
    assert (len(items) - len(items.rest), len(items), bytes(items[4])) == (4, 10, b'{"n":4}')
    assert texts(items) == texts(read(new)[1])


def test_a_list_in_another_that_looks_like_the_known_one_is_no_opening():
    (known,) = known_of(b'{"input":[{"a":"' + b"long" * 8 + b'"},2]}')
    items = b'{"a":"' + b"long" * 8 + b'"} ,2 ,3]}'
    new = b'{"x":{"input":[' + items + b',"input":[' + items
    assert outcome(new, [known]) == outcome(new)
    assert texts(read(new, [known])[1].rest) == [b"3"]
