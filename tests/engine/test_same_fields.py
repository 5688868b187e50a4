"""An item whose fields are the held one's, byte for byte, is judged as if it had been read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import freezing, items
from engine.baseline import Baseline
from engine.errors import UnreadableRequest
from engine.held import HeldItem, Odd, same_fields
from engine.matching import matched
from engine.request import split

KEYS = ['"id"', '"status"', '"type"', '"role"', '"content"', '"summary"', '"encrypted_content"',
        '"output"', '"call_id"', '"x"', '"ty\\u0070e"', '"\\ud800"', '"é"']  # fmt: skip
PARTS = ['"a"', '"b"', '""', "null", "1", "1.0", "1e0", "-0", "0", "1" * 40, "[]", "{}", "[ ]", '{"a":1,"a":1}',
         '[{"a":{"b":1,"b":2}}]', '"reasoning"', '"reason\\u0069ng"', '"function_call_output"', '"message"',
         '"assistant"', '"item_reference"', '[{"text":"a"}]', '[{"text": "a"}]', '"é"', '"\\u00e9"', '"\\ud83d\\ude00"',
         '"\\ud800"', '"{\\"a\\": 1}"', '"{\\"a\\":1,\\"_meta\\":2}"', '"\udcff"', '"\ud800"', "[" * 1100 + "]" * 1100]  # fmt: skip


def encoded(text):
    """Its bytes; U+DCFF stands for one that no text has."""
    return Raw(text.encode("utf-8", "surrogatepass").replace(b"\xed\xb3\xbf", b"\xff"))


@st.composite
def written(draw, pairs):
    """The pairs as a client may write them; now and then with one that is gone, new, or twice."""
    pairs = draw(st.permutations(pairs)) if draw(st.booleans()) else list(pairs)
    if pairs and draw(st.integers(0, 4)) == 0:
        pairs.pop()
    if draw(st.integers(0, 4)) == 0:
        pairs.append((draw(st.sampled_from(KEYS)), draw(st.sampled_from(PARTS))))
    if pairs and draw(st.integers(0, 4)) == 0:
        pairs.append(draw(st.sampled_from(pairs)))
    colon, comma = draw(st.sampled_from([(":", ","), (": ", ", "), (" :\n", "\t,")]))
    return "{" + comma.join(key + colon + part for key, part in pairs) + "}"


def judged(held, now, freeze, *, received):
    """The slow way: both are read whole."""
    if now == held:
        return None
    try:
        try:
            made = received or items.made_by_model(items.parse(held))
        except (ValueError, RecursionError):
            made = received
        one, other = items.parse(held), items.parse(now)
        return freezing.difference(one, other, model_made=made, freeze=freeze)
    except (ValueError, RecursionError):
        return ()


@given(st.data(), st.booleans(), st.booleans(), st.sampled_from([(), ("_meta",), ("a",)]))
@settings(max_examples=400, deadline=None)
def test_the_short_way_judges_as_the_long_one(data, received, expecting, freeze):
    pairs = data.draw(
        st.dictionaries(st.sampled_from(KEYS), st.sampled_from(PARTS), max_size=5).map(dict.items)
    )
    held = encoded(data.draw(written(list(pairs))))
    item = HeldItem(held, received=received)
    if received and expecting:
        item.expect()
    for _ in range(2):
        now = encoded(data.draw(written(list(pairs))))
        assert item.difference(now, freeze) == judged(held, now, freeze, received=received)


READ = [part for part in PARTS if "\udcff" not in part and "\ud800" not in part]


@given(st.data(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_pairs_that_are_found_alike_at_once_are_the_same_one_by_one(data, received):
    pairs = data.draw(
        st.dictionaries(st.sampled_from(KEYS), st.sampled_from(READ), max_size=4).map(dict.items)
    )
    held, now = (encoded(data.draw(written(list(pairs)))) for _ in range(2))
    if same_fields([held], [now]) == [True] and held != now:
        assert judged(held, now, (), received=received) is None


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_request_repeats_as_many_items_as_one_by_one(data):
    """Some items are spelled anew, or are others; the list is longer than what is read at once."""
    objects = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(READ), max_size=4)
    drawn = data.draw(st.lists(objects, min_size=1, max_size=4))
    some = [list(drawn[n % len(drawn)].items()) for n in range(data.draw(st.integers(1, 70)))]
    plain = ["{" + ",".join(f"{k}:{v}" for k, v in pairs) + "}" for pairs in some]
    other = ["{" + ",".join(f"{k}:{v}" for k, v in reversed(pairs)) + "}" for pairs in some]
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(other) - 1))
        other[at] = data.draw(written(list(drawn[0].items())))
    try:
        old, new = (split(bytes(encoded(f'{{"input":[{",".join(t)}]}}'))) for t in (plain, other))
    except UnreadableRequest:
        return
    baseline = Baseline(old.items.spelling, (), ())
    expected = next(
        (
            n
            for n, (one, two) in enumerate(zip(plain, other, strict=True))
            if judged(encoded(one), encoded(two), (), received=False) is not None
        ),
        len(plain),
    )
    assert matched(baseline, new.items) == expected


def test_items_that_are_spelled_anew_are_judged_a_few_at_once_and_not_one_by_one(monkeypatch):
    asked = []

    def counted(held, now):
        asked.append(len(held))
        return same_fields(held, now)

    monkeypatch.setattr("engine.matching.same_fields", counted)
    monkeypatch.setattr(HeldItem, "difference", pytest.fail)
    old = split(b'{"input":[' + b",".join(b'{"n":%d,"a":1}' % n for n in range(70)) + b"]}")
    new = split(b'{"input":[' + b",".join(b'{"a":1,"n":%d}' % n for n in range(70)) + b",1]}")
    assert matched(Baseline(old.items.spelling, (), ()), new.items) == 70
    assert asked == [32, 32, 6]


def test_what_is_held_otherwise_than_it_is_spelled_is_judged_by_itself():
    old = split(b'{"input":[{"id":"a","n":1},{"n":2,"m":1}]}')
    held = Odd(Raw(b'{"id":"b","n":1}'), received=False)
    known = Baseline(old.items.spelling, ((0, held),), ())
    assert matched(known, split(b'{"input":[{"n":1,"id":"a"},{"m":1,"n":2}]}').items) == 0
    assert matched(known, split(b'{"input":[{"n":1,"id":"b"},{"m":1,"n":2}]}').items) == 2
    last = HeldItem(Raw(b'{"n":3,"m":1}'), received=False)
    known = Baseline(old.items.spelling, (), (last,))
    plain = b'{"input":[{"id":"a","n":1},{"n":2,"m":1},{"m":1,"n":%d}]}'
    assert [matched(known, split(plain % n).items) for n in (3, 4)] == [3, 2]
    assert known.as_spelled([0, 2]) == [(0, old.items[0])]


def test_what_is_nested_too_deeply_to_be_cut_is_never_alike():
    deep = "[" * 1100 + "]" * 1100
    one, other = f'{{"x":{deep},"y":1}}', f'{{"y":1,"x":{deep}}}'
    assert same_fields([encoded(one)], [encoded(other)]) == [False]


def test_what_names_a_key_twice_is_never_alike():
    twice = Raw(b'{"a":1,"a":1}')
    assert same_fields([twice, Raw(b'{"a":1}')], [Raw(b'{"a":1 ,"a":1}'), twice]) == [False, False]
    assert same_fields([Raw(b'{"a":1,"b":2}')], [Raw(b'{"b":2,"a":1}')]) == [True]
    assert same_fields([Raw(b'{"a":1,"b":2}')], [Raw(b'{"a":2,"b":1}')]) == [False]
    assert same_fields([Raw(b"1"), Raw(b"{}")], [Raw(b"2"), Raw(b"{}")]) == [False, False]


@pytest.mark.parametrize(
    "plain",
    [
        '{"type":"function_call_output","call_id":"c","output":"é\\n"}',
        '{"role":"user","content":[{"type":"input_text","text":"a"}],"x":{}}',
        '{"type":"reasoning","encrypted_content":"e","summary":[]}',
        '{"type":"reasoning","id":"rs","encrypted_content":null}',
    ],
)
def test_an_item_with_its_fields_in_another_order_is_not_read(monkeypatch, plain):
    held = encoded(plain)
    now = encoded("{" + ", ".join(reversed(fields_of(plain))) + "}")
    assert judged(held, now, (), received=False) is None
    monkeypatch.setattr(freezing, "difference", pytest.fail)
    assert HeldItem(held, received=False).difference(now) is None


def fields_of(plain):
    inside, cut, depth = plain[1:-1], [""], 0
    for letter in inside:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            cut.append("")
        else:
            cut[-1] += letter
    return cut


@pytest.mark.parametrize(
    "odd",
    [
        '{"type":"reasoning","id":"","encrypted_content":""}',
        '{"type":"reasoning","id":1,"encrypted_content":null}',
        '{"type":"reason\\u0069ng","summary":[]}',
        '{"x":{"a":1,"a":1},"y":1}',
        '{"x":"\udcff","y":1}',
    ],
)
def test_what_would_not_equal_itself_is_left_to_the_long_way(odd):
    held = encoded(odd)
    now = encoded("{" + ",".join(reversed(fields_of(odd))) + "}")
    expected = judged(held, now, (), received=False)
    assert HeldItem(held, received=False).difference(now) == expected
    assert (expected is None) == ('"id":1' in odd)


def test_what_is_sealed_is_the_same_by_its_bytes_only():
    item = HeldItem(Raw(b'{"a":1,"b":2}'), received=False, sealed=True)
    assert item.difference(Raw(b'{"b":2,"a":1}')) == ()
    assert item.difference(Raw(b'{"a":1,"b":2}')) is None
