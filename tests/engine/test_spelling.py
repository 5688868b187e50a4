"""The items of a request, cut out only where somebody looks."""

import json
import tracemalloc
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine import spelling
from engine.baseline import Baseline
from engine.held import HeldItem
from engine.request import own_copy, split
from engine.spelling import Items, Known

NUMBERS = st.lists(st.integers(0, 20), max_size=5)


def body(numbers, **fields):
    return json.dumps({"model": "m", "input": numbers, **fields}).encode()


def known_of(text):
    request = split(text)
    return Known(request.items.spelling, own_copy(request.fields))


def raws(numbers):
    return tuple(Raw(str(number).encode()) for number in numbers)


def texts(items):
    return [bytes(raw) for raw in items]


@given(NUMBERS, NUMBERS, st.integers(-12, 12), st.integers(-12, 12), st.sampled_from([1, 2, -1]))
def test_items_are_a_sequence_like_any_other(old, new, start, stop, step):
    plain = raws(old + new)
    sequences = [
        Items(plain),
        split(body(old + new), [known_of(body(old))]).items,
        Items(
            raws(new),
            base=Baseline(None, (), tuple(HeldItem(raw, received=False) for raw in raws(old))),
        ),
    ]
    for one in sequences:
        assert len(one) == len(plain)
        assert texts(one[start:stop:step]) == texts(plain[start:stop:step])
        assert texts(one[start:]) == texts(plain[start:])
        assert texts(one) == texts(plain)
        if -len(plain) <= start < len(plain):
            assert one[start] == plain[start]
        else:
            with pytest.raises(IndexError):
                one[start]


def test_only_the_new_items_are_cut_out():
    items = split(body([1, 2, 3]), [known_of(body([1, 2]))]).items
    assert texts(items[2:]) == texts(items.rest) == [b"3"]
    assert (items[-1], len(items), bool(items)) == (Raw(b"3"), 3, True)
    assert items._whole is None
    assert texts(items[1:]) == [b"2", b"3"]


@given(NUMBERS, NUMBERS)
def test_items_repeat_a_body_whole_or_not_at_all(old, new):
    spelling = known_of(body(old)).spelling
    starts = new[: len(old)] == old
    assert split(body(new)).items.repeats(spelling) == (len(old) if starts else 0)
    assert Items(raws(new)).repeats(spelling) == 0


@given(NUMBERS, NUMBERS, st.sampled_from([(",", ":"), (", ", ": "), (" , ", ":")]))
def test_items_in_common_are_those_before_the_first_that_differs(old, new, style):
    one, other = (
        json.dumps({"model": "m", "input": numbers, "x": 1}, separators=style).encode()
        for numbers in (old, new)
    )
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    count, end = known_of(one).spelling.shared(other)
    if style[0] == " , ":
        assert count == 0
    elif same is not None:
        assert count == same
        assert json.loads(other[:end] + b"]}")["input"] == new[:same]
    assert json.loads(other[:end] + b"]}")["input"] == new[:count]


def test_of_items_that_are_parted_in_several_ways_none_is_in_common():
    old = known_of(b'{"input":[1,2,  3]}').spelling
    assert old.shared(b'{"input":[1,2,  4]}') == (0, old.start)


def test_long_bodies_are_compared_in_blocks():
    old, new = (["x" * 1000] * 100 + [last] for last in "ab")
    spelling = known_of(body(old)).spelling
    count, end = spelling.shared(body(new))
    assert (count, body(new)[end:]) == (100, b', "b"]}')
    found = split(body(new), [known_of(body(old))]).items
    assert (len(found), texts(found.rest)) == (101, [b'"b"'])


def test_a_number_that_goes_on_is_another_item():
    assert split(b'{"input":[12]}').items.repeats(known_of(b'{"input":[1]}').spelling) == 0
    assert split(b'{"input":[1.5]}').items.repeats(known_of(b'{"input":[1]}').spelling) == 0
    assert split(b'{"input":[1 ,5]}').items.repeats(known_of(b'{"input":[1]}').spelling) == 1


def test_what_is_cut_already_is_not_cut_again():
    known = known_of(body([1, 2]))
    for is_cut in (False, True):
        items = split(body([1, 2, 3]), [known]).items
        assert texts(items) == [b"1", b"2", b"3"]
        assert (known.spelling.is_cut, items.spelling.is_cut) == (is_cut, not is_cut)
        known.spelling.items()


@pytest.mark.parametrize("gap", [",", ", ", ",  "])
@pytest.mark.parametrize(("length", "most"), [(1, 60), (2_000, 250)])
def test_what_slices_weigh_is_what_they_take_and_short_ones_take_little(length, most, gap):
    count = 1_000
    text = gap.join([json.dumps("x" * length)] * count)
    old = known_of(f'{{"input":[{text}]}}'.encode()).spelling
    tracemalloc.start()
    try:
        taken, weights = [tracemalloc.get_traced_memory()[0]], [old.weight_of_cut]
        for known_now in (old.ends, old.items):
            known_now()
            taken.append(tracemalloc.get_traced_memory()[0])
            weights.append(old.weight_of_cut)
    finally:
        tracemalloc.stop()
    for n in (1, 2):
        assert taken[n] - taken[0] == pytest.approx(weights[n] - weights[0], rel=0.03, abs=1_000)
    # Short ones are cut by the decoder: in less time, and into a fifth of the memory.
    assert taken[2] - taken[1] < most * count


# --- what is the same -----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 3, 4, 64])
@given(one=st.binary(max_size=20), other=st.binary(max_size=20), most=st.integers(0, 24))
def test_bytes_in_common_are_those_before_the_first_that_differs(block, one, other, most):
    one, other = (bytes(byte & 1 for byte in text) for text in (one, other))
    former, spelling._BLOCK = spelling._BLOCK, block
    try:
        same = spelling._same_bytes(one, other, most)
    finally:
        spelling._BLOCK = former
    parted = (
        index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]
    )
    assert min(most, len(one), len(other), *[*parted][:1]) == same


@pytest.mark.parametrize(
    ("new", "expected"),
    [(b'{"input":[1,22]}', True), (b'{"input":[1,22,3]}', True), (b'{"input":[1,2]}', False),
     (b'{"input":[1,22', True), (b'{"input":[1,2', False), (b' {"input":[1,22]}', False),
     (b'{"input":[1,23]}', False)],
)  # fmt: skip
def test_a_body_begins_like_another_up_to_its_last_item(new, expected):
    assert expected is known_of(b'{"input":[1,22],"model":"m"}').spelling.begins(new)


@pytest.mark.parametrize("behind", [b",", b"]", b" ", b"\t", b"\n", b"\r"])
def test_items_stand_elsewhere_if_what_is_behind_them_ends_the_last(behind):
    old = known_of(b'{"model":"m","input":[1,22]}').spelling
    for text in (b"1,22" + behind, b"xx1,22" + behind + b"1,22"):
        assert old.stands_at(text, text.index(b"1"))
        assert not old.stands_at(text, text.index(b"1") + 1)


@pytest.mark.parametrize("behind", [b"", b"3", b".", b"e", b"E", b":", b"}", b'"'])
def test_items_do_not_stand_where_their_last_may_go_on(behind):
    assert not known_of(b'{"model":"m","input":[1,22]}').spelling.stands_at(b"1,22" + behind, 0)


def test_no_items_stand_everywhere():
    assert known_of(b'{"input":[]}').spelling.stands_at(b"123", 1)


def test_what_differs_before_the_first_item_has_none_in_common():
    old = known_of(b'{"a":1,"input":[1,2]}').spelling
    assert (0, 0) == old.shared(b'{"a":2,"input":[1,2]}')
    assert (0, old.start) == old.shared(b'{"a":1,"input":[')
    assert (0, old.start) == old.shared(b'{"a":1,"input":[3,2]}')
    assert (1, old.start + 1) == old.shared(b'{"a":1,"input":[1,3]}')
    assert (0, old.start) == old.shared(b'{"a":1,"input":[12]}')


@pytest.mark.parametrize("gap", [",", ", "])
def test_items_end_before_the_gap_and_the_last_at_the_end(gap):
    texts = [b"1", b"22", b'"a,b"']
    old = known_of(b'{"input":[' + gap.encode().join(texts) + b"]}").spelling
    assert [old.body.index(text) + len(text) for text in texts] == old.ends()
    assert old.end == old.ends()[-1]


@pytest.mark.parametrize("long", [0, 512])
@given(
    st.lists(
        st.sampled_from(["1", "12", '"a,b"', '", "', '",1"', "[1, 2]", '{"a":1, "b":","}', "[]"])
    ),
    st.sampled_from([",", ", "]),
    st.lists(st.sampled_from([",", ", ", ",  ", " ,", "\n,\t"]), min_size=9, max_size=9),
    st.integers(0, 9),
    st.sampled_from(["", " "]),
)
def test_items_cut_by_their_lengths_are_those_that_a_reader_finds(
    long, texts_, gap, gaps, odd, around
):
    between = [gap if n >= odd else other for n, other in enumerate(gaps)]
    inside = "".join(
        text + (between[n % 9] if n < len(texts_) - 1 else "") for n, text in enumerate(texts_)
    )
    for place in (split, lambda new: split(new, [known_of(b'{"input":[1,12]}')])):
        old = place(f'{{"input":[{around}{inside}{around}]}}'.encode()).items.spelling
        with patch.object(spelling, "_LONG", long):
            assert texts(old.items()) == [text.encode() for text in texts_]
        assert list(old.lengths) == list(map(len, texts_))
        ends = old.ends()
        assert not ends or [
            old.body[:end].endswith(text.encode()) for end, text in zip(ends, texts_, strict=True)
        ] == [True] * len(texts_)


def test_a_body_that_goes_on_repeats_what_is_ahead_and_another_what_stands_in_it():
    first, second = (known_of(body(numbers)) for numbers in ([1, 2], [1, 2, 3]))
    items = split(body([1, 2, 3, 4]), [first]).items
    assert (2, 3) == (items.repeats(first.spelling), items.repeats(second.spelling))
    assert 0 == items.repeats(known_of(body([2])).spelling)
    parted = split(body([1, 5]), [first]).items
    assert (parted.proven, parted.repeats(first.spelling)) == (first.spelling, 1)


TEXTS = st.sampled_from(["1", "12", '"a,b"', '", "', "[1, 2]", '{"a":1, "b":","}', "[]"])


@given(
    st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=2), st.sampled_from([",", ", "]),
    st.sampled_from([",", ", ", " ,\n"]), st.sampled_from([1, 2, 64]), st.data(),
)  # fmt: skip
def test_items_end_where_a_reader_finds_them_with_other_gaps(old, more, gap, other, at_once, data):
    known = split(f'{{"input":[{gap.join(old)}]}}'.encode()).items.spelling
    new = [*old, *more]
    if new and data.draw(st.integers(0, 2)) == 0:
        new[data.draw(st.integers(0, len(new) - 1))] = data.draw(TEXTS)
    with patch.object(spelling, "_AT_ONCE", at_once):
        end = known.end_at(f"[{other.join(new)}]".encode(), 1, other.encode())
    is_there = new[: len(old)] == old != []
    assert end == (len(f"[{other.join(old)}") if is_there else None)
