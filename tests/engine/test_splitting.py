"""A body that goes on from a known one is read like any other, only faster."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import splitting
from engine.errors import UnreadableRequest
from engine.request import own_copy, split
from engine.spelling import Known
from engine.splitting import names_a_key_twice, read

VALUES = [
    "1", "12", "-0", "1.5", "1e3", "true", "null", '""', '"a"', '"a\\u0062"', '"é"', '"\\\\"', '"]"',
    '"],\\"input\\":[1"', '"\\"input\\":["', '{"a":1}', '{ "a" : 1 }', '{"a":1,"a":2}', "[]", "[ 1 ]",
    '{"input":[1]}', '[{"input":[1,12]}]', '{"a":{"input":[{"a":1}]}}', '"\\ud800"', '"\\ud83d\\ude00"',
    '{"type":"message","role":"user","content":"é"}', '{"role":"assistant","content":"x"}',
]  # fmt: skip
KEYS = ['"model"', '"tools"', '"store"', '"m\\u006fdel"', '"é"', '"a\\"input"', '"\\\\"', '"inputs"',
        '"input"', '"\\u0069nput"']  # fmt: skip
SPACES = ["", "", "", " ", "\n ", "\t"]

values, spaces = st.sampled_from(VALUES), st.sampled_from(SPACES)


@st.composite
def lists(draw, least=()):
    gap = draw(spaces)
    cut = [*least, *draw(st.lists(values, max_size=4))]
    return "[" + draw(spaces) + f"{gap},{draw(spaces)}".join(cut) + draw(spaces) + "]"


@st.composite
def objects(draw):
    """Texts of objects with a list of items; some name a key twice, some are not JSON at all."""
    colon = draw(spaces) + ":" + draw(spaces)
    comma = draw(spaces) + "," + draw(spaces)
    pairs = [
        draw(st.sampled_from(KEYS[:8])) + colon + draw(values)
        for _ in range(draw(st.integers(0, 3)))
    ]
    for _ in range(draw(st.sampled_from([1, 1, 1, 1, 1, 1, 0, 2]))):
        key = draw(st.sampled_from(KEYS[8:] if draw(st.integers(0, 9)) == 0 else KEYS[8:9]))
        pairs.insert(draw(st.integers(0, len(pairs))), key + colon + draw(lists()))
    return (draw(spaces) + "{" + draw(spaces) + comma.join(pairs) + draw(spaces) + "}").encode()


SPLICES = [b"", b",", b"]", b"}", b"[", b"1", b"2", b".5", b"e1", b'"', b"\\", b" ", b"\xff", b"\xc3", b",1", b"],",
           b',{"a":1}', b',"x"', b'"input":[', b',"model":1', b',"input":[]', b"true", b"u", b"\x00"]  # fmt: skip


@st.composite
def changed(draw, body):
    """The body with something else in one place or two; mostly at an end of the list."""
    for _ in range(draw(st.integers(1, 2))):
        marks = [i for i, byte in enumerate(body) if byte in b'],[:"'] or [0]
        at = draw(st.sampled_from(marks[-12:]) | st.integers(0, len(body))) + draw(
            st.integers(0, 1)
        )
        gone = draw(st.sampled_from([0, 0, 0, 1, 2, 5]))
        body = body[:at] + draw(st.sampled_from(SPLICES)) + body[at + gone :]
    return body


def outcome(body, known=()):
    try:
        fields, found = read(body, known)
    except UnreadableRequest:
        return None
    if found.spelling is not None:
        spelling = found.spelling
        assert [bytes(raw) for raw in spelling.items()] == [bytes(raw) for raw in found]
        assert spelling.count == len(found)
        assert body[spelling.start - 1 : spelling.close] == bytes(fields["input"])
        around = {**spelling.head, **spelling.tail}
        assert {**around, "input": fields["input"]} == dict(fields)
    if found.proven is not None:
        count = len(found) - len(found.rest)
        old = [bytes(raw) for raw in found.proven.items()[:count]]
        assert [bytes(raw) for raw in found.whole()[:count]] == old
    return [(name, bytes(raw)) for name, raw in fields.items()], [bytes(raw) for raw in found]


def known_of(*bodies):
    found = []
    for body in bodies:
        try:
            request = split(body)
        except UnreadableRequest:
            continue
        if request.items.spelling is not None:
            found.append(Known(request.items.spelling, own_copy(request.fields)))
    return found


@given(st.data())
@settings(max_examples=600, deadline=None)
def test_the_short_way_reads_what_the_long_way_reads_and_refuses_what_it_refuses(data):
    old = data.draw(objects())
    known = known_of(old, data.draw(objects()))
    new = data.draw(changed(old) | changed(old) | objects())
    assert outcome(new, known) == outcome(new)
    known = known_of(new, old)
    newer = data.draw(changed(new))
    assert outcome(newer, known) == outcome(newer)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_list_that_grows_is_continued(data):
    head = [(f'"h{i}"', data.draw(values)) for i in range(data.draw(st.integers(0, 2)))]
    tail = [(f'"t{i}"', data.draw(values)) for i in range(data.draw(st.integers(0, 2)))]
    first = data.draw(st.lists(values, min_size=1, max_size=3))
    more = data.draw(st.lists(values, max_size=3))
    comma, colon = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]))

    def body(items, tail):
        pairs = [*head, ('"input"', "[" + comma.join(items) + "]"), *tail]
        return ("{" + comma.join(f"{k}{colon}{v}" for k, v in pairs) + "}").encode()

    known = known_of(body(first, tail))
    new = body([*first, *more], data.draw(st.sampled_from([tail, [], [*tail, ('"x"', "1")]])))
    assert outcome(new, known) == outcome(new)
    if known and outcome(new) is not None:
        assert read(new, known)[1].proven is known[0].spelling


def texts(items):
    return [bytes(raw) for raw in items]


OLD = b'{"model":"m","input":[{"a":1},1],"tools":["t"]}'


def continues(new, old=OLD):
    """The items of a body that is continued; None where it is read as a whole."""
    known = known_of(old)
    found = split(new, known).items
    whole = found.repeats(known[0].spelling) == known[0].spelling.count
    return texts(found) if whole else None


@pytest.mark.parametrize(
    "new",
    [
        b'{"model":"m","input":[{"a":1},12],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1.5],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1e5],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1}],"tools":["t"]}',
        b'{"model":"m","x":{"input":[{"a":1},1,2]},"input":[2],"tools":["t"]}',
        b'{"model":"m","x":"\\"input\\":[{1,2]","input":[2],"tools":["t"]}',
        b'{"a\\"input":[{"a":1},1],"input":[2],"tools":["t"]}',
    ],
)
def test_bytes_that_only_look_alike_prove_nothing(new):
    assert continues(new) is None


@pytest.mark.parametrize(
    "new",
    [
        b'{"model":"m","input":[{"a":1},1,2],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1 , 2 ],"tools":["u"]}',
        b'{"model":"m","input":[ {"a":1},1,2],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1} ,\t1, 2],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1,2]}',
        b'{"model":"n", "z":{"input":[{"a":1},1,3]}, "input" : [{"a":1},1,2], "tools":["t"]}',
        b'{"tools":["t"],"input":[{"a":1},1,2],"model":"m"}',
    ],
)
def test_the_same_bytes_of_the_items_are_enough(new):
    assert continues(new) == [b'{"a":1}', b"1", b"2"]


@pytest.mark.parametrize(
    "new",
    [
        b'{"model":"m","input":[{"a":1},1,],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1,2],"model":"n"}',
        b'{"model":"m","input":[{"a":1},1,2],"input":[3]}',
        b'{"model":"m","input":[{"a":1},1,2],"m\\u006fdel":"n"}',
        b'{"model":"m","input":[{"a":1},1,2],"tools":["t"]}}',
        b'{"model":"m","input":[{"a":1},1,2],"tools":["t"]',
        b'{"model":"m","input":[{"a":1},1,2]],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1,"\xff"],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1,"\\ud800"],"tools":["t"]}',
        b'{"model":"m","input":[{"a":1},1,"\xff"],"tools":["u"]}',
        b'{"tools":1,"input":[{"a":1},1,2],"tools":["t"]}',
        b'{"input":[],"input":[{"a":1},1,2],"tools":["t"]}',
        b'{"model":"\xff","input":[{"a":1},1,2],"tools":["t"]}',
        b'\xef\xbb\xbf{"model":"m","input":[{"a":1},1,2],"tools":["t"]}',
    ],
)
def test_what_is_refused_is_refused_behind_known_bytes_too(new):
    with pytest.raises(UnreadableRequest):
        split(new, known_of(OLD))


def test_items_that_begin_alike_prove_nothing_elsewhere():
    text = "x" * 2000
    old, new = ({"input": [{"a": text + end}, 1]} for end in "ab")
    assert continues(json.dumps({"model": 1, **new}).encode(), json.dumps(old).encode()) is None


ITEM = '{"a":1}'
LIST = f'{{"input":[{ITEM},1]}}'


@pytest.mark.parametrize(
    ("before", "proven"),
    [([ITEM] * 63, True), ([ITEM] * 64, False), ([LIST] * 3, True), ([LIST] * 4, False)],
)
def test_beyond_a_few_places_that_look_alike_the_body_is_read_as_a_whole(before, proven):
    new = f'{{"x":[{",".join(before)}],"input":[{ITEM},1,2]}}'.encode()
    old = LIST.encode()
    (known,) = known_of(old)
    assert proven == (splitting._continued(new, [known]) is not None)
    assert texts(read(new, [known])[1]) == texts(read(new)[1])
    assert [b'{"a":1}', b"1", b"2"] == texts(split(new, known_of(old)).items)


def test_what_is_looked_for_elsewhere_is_looked_for_once(monkeypatch):
    looked_for = []
    opening = splitting._opening
    monkeypatch.setattr(
        splitting, "_opening", lambda body, first: looked_for.append(first) or opening(body, first)
    )
    known = known_of(*(f'{{"n":{n},"input":[{ITEM},{n}]}}'.encode() for n in range(3)))
    new = f'{{"x":1,"input":[{ITEM},1,2]}}'.encode()
    found = split(new, known).items
    assert (found.proven, texts(found.rest)) == (known[1].spelling, [b"2"])
    assert looked_for == [ITEM.encode()]


@pytest.mark.parametrize("first", [" ", ""])
def test_the_longest_of_those_that_begin_like_it_is_cut_out(first):
    long = f'{{"n":1,"input":[{first}{ITEM},1,2,3]}}'.encode()
    known = known_of(f'{{"n":0,"input":[{ITEM},1]}}'.encode(), long)
    new = f'{{"x":1,"input": [ {ITEM} , 1, 2 ,3 ,4]}}'.encode()
    found = split(new, known).items
    assert (found.proven, texts(found.rest)) == (known[1].spelling, [b"4"])


@pytest.mark.parametrize(
    ("gap", "items"),
    [(", ", [b"3"]), (" ,\t", [b"3"]), ("}", None), ("]", None), (" ", None), (":", None)],
)
def test_items_with_other_gaps_are_those_between_commas_only(gap, items):
    known = known_of(b'{"input":[{"a":1},1,2]}')
    new = f'{{"x":1,"input":[{gap.join([ITEM, "1", "2"])},3]}}'.encode()
    assert outcome(new, known) == outcome(new)
    assert items == (texts(split(new, known).items.rest) if outcome(new) is not None else None)


def test_items_with_other_gaps_are_not_cut_out(monkeypatch):
    known = known_of(b'{"input":[{"a":1},1,2]}')
    monkeypatch.setattr(type(known[0].spelling), "items", pytest.fail)
    new = split(b'{"x":1, "input": [{"a":1}, 1, 2, 3]}', known).items
    assert (new.proven, texts(new.rest)) == (known[0].spelling, [b"3"])


def test_an_empty_list_is_continued_from_its_bracket():
    old = b'{"model":"m","input":[ ],"tools":[]}'
    assert continues(b'{"model":"m","input":[ 1],"tools":[]}', old) == [b"1"]
    with pytest.raises(UnreadableRequest):
        split(b'{"model":"m","input":[,1],"tools":[]}', known_of(old))


def test_the_longest_known_body_is_continued():
    longer = OLD.replace(b"1]", b"1,2]")
    known = known_of(OLD, longer)
    found = split(OLD.replace(b"1]", b"1,2,3]"), known).items
    assert (found.proven, texts(found.rest)) == (known[1].spelling, [b"3"])


def test_fields_that_are_known_are_not_kept_twice():
    known = known_of(OLD)
    new = split(OLD.replace(b"1]", b"1,2]").replace(b'["t"]', b'["t"],"x":1'), known)
    assert new.fields["tools"] is known[0].fields["tools"]
    assert own_copy(new.fields)["model"] is new.items.spelling.head["model"]


def test_a_key_in_a_list_of_tools_hides_no_list_of_items():
    tools = [{"properties": {"input": {"type": "string"}}}] * 40
    old = json.dumps({"tools": tools, "input": [{"a": 1}]}).encode()
    new = json.dumps({"x": 1, "tools": tools, "input": [{"a": 1}, 2]}).encode()
    assert continues(new, old) == [b'{"a": 1}', b"2"]


@given(
    names=st.lists(st.sampled_from("abcdefgh"), max_size=9),
    value=st.sampled_from(["1", "10", "[]", '"xy"', '{"a":1,"a":2}', "1234567"]),
    style=st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]),
)
def test_a_key_that_stands_twice_is_found_in_every_style(names, value, style):
    comma, colon = style
    text = ("{" + comma.join(f'"{name}"{colon}{value}' for name in names) + "}").encode()
    fields = {name: Raw(value.encode()) for name in names}
    assert names_a_key_twice(text, fields) == (len(set(names)) < len(names))


@pytest.mark.parametrize("name", ["model", "mod\\u0065l"])
def test_space_is_passed_over_in_blocks(name):
    """A body of nothing but space would hold up all others if each byte of it were a step."""
    space = " \t\n\r" * 50_000
    parts = ("{", f'"{name}"', ":", '"m"', ",", '"input"', ":", "[1,2", "]", "}", "")
    body = space.join(parts).encode()
    steps = 0

    def count(*_):
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        found = read(body)[1]
    finally:
        sys.settrace(before)
    assert [b"1", b"2"] == texts(found)
    assert steps < len(space)
