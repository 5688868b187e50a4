"""What the provider holds, kept as one body and what differs from it: as if each item were kept."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import items as rules
from engine.baseline import Baseline, HeldItem, grown, matched
from engine.request import own_copy, split
from engine.spelling import Items, Known


def raw(value):
    return Raw((value if isinstance(value, str) else json.dumps(value)).encode())


def said(text, **more):
    return {"type": "message", "role": "assistant", "content": text, **more}


# --- one held item ------------------------------------------------------------------------------------


def test_a_spelling_is_measured_against_what_is_held():
    """Without ids two spellings could walk from one item to another, step by step."""
    held = HeldItem(raw(said("x", id="m1")), received=True)
    bare = held.spelled(raw(said("x")))
    assert bare.difference(raw(said("x"))) is None
    assert bare.difference(raw(said("x", id="m1"))) is None
    assert bare.difference(raw(said("x", id="m2"))) == ("id",)
    assert (bare.held, bare.echo) == (held.held, raw(said("x")))


def test_a_spelling_has_memory_of_its_own():
    body = b'[{"a":1},{"a": 1}]'
    held = HeldItem(Raw(memoryview(body)[1:8]), received=False)
    twin = held.spelled(Raw(memoryview(body)[9:17]))
    assert (bytes(twin.held), bytes(twin.echo)) == (b'{"a":1}', b'{"a": 1}')
    assert (twin.held.copy() is twin.held, twin.echo.copy() is twin.echo) == (True, True)
    assert twin.spelled(Raw(b'{"a": 1}')) is twin
    assert twin.size == 15
    assert twin.spelled(Raw(b'{"a":1}')).echo == Raw(b'{"a": 1}')


KEYS = ["id", "status", "type", "role", "content", "summary", "encrypted_content", "arguments",
        "call_id", "name", "x"]  # fmt: skip
PARTS = ['"a"', '"b"', '""', "null", "1", "1.0", "[]", "{}", '{"a":1,"a":1}', '"reasoning"',
         '"function_call"', '"message"', '"assistant"', '[{"text":"a"}]', '[{"a":1,"a":2}]', '"{\\"a\\": 1}"']  # fmt: skip


@st.composite
def spelled(draw, pairs):
    """The pairs as a client may write them: another order, fields gone, added or changed."""
    pairs = draw(st.permutations(pairs)) if draw(st.booleans()) else list(pairs)
    pairs = [
        pair for pair in pairs if pair[0] not in draw(st.sets(st.sampled_from(["id", "status"])))
    ]
    if draw(st.integers(0, 3)) == 0:
        pairs.append((draw(st.sampled_from(KEYS)), draw(st.sampled_from(PARTS))))
    colon = draw(st.sampled_from([":", ": "]))
    return "{" + ",".join(f'"{key}"{colon}{part}' for key, part in pairs) + "}"


ITEMS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(PARTS), max_size=6).map(dict.items)


@given(st.data())
@settings(max_examples=600, deadline=None)
def test_an_expected_echo_is_one_that_does_not_differ(data):
    pairs = list(data.draw(ITEMS))
    held, now = raw(data.draw(spelled(pairs))), raw(data.draw(spelled(pairs)))
    plain, expecting = HeldItem(held, received=True), HeldItem(held, received=True)
    expecting.expect()
    assert expecting.difference(now) == plain.difference(now)


def test_the_usual_echoes_are_expected(monkeypatch):
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "n", "arguments": "{}"}
    held = HeldItem(raw({**call, "status": "completed"}), received=True)
    held.expect()
    monkeypatch.setattr(rules, "difference", pytest.fail)
    assert held.difference(raw(call)) is None
    assert (
        held.difference(raw({k: call[k] for k in ("name", "type", "arguments", "call_id")})) is None
    )


# --- baselines ----------------------------------------------------------------------------------------

WORDS = st.sampled_from("abc")
ROLES = st.sampled_from(["user", "assistant"])


@st.composite
def messages(draw):
    made = {"role": draw(ROLES), "content": draw(WORDS)}
    if draw(st.booleans()):
        made["type"] = "message"
    if draw(st.integers(0, 2)) == 0:
        made["id"] = draw(WORDS)
    if draw(st.integers(0, 5)) == 0:
        made = {"n": draw(st.sampled_from([1, 1.0, True, None]))}
    return made


@st.composite
def written(draw, value):
    """One of the spellings of a message: key order, spaces, without its id, with a status."""
    pairs = list(value.items())
    if draw(st.integers(0, 3)) == 0:
        pairs = draw(st.permutations(pairs))
    if draw(st.integers(0, 3)) == 0:
        pairs = [pair for pair in pairs if pair[0] != "id"]
    if draw(st.integers(0, 5)) == 0:
        pairs.append(("status", "done"))
    if draw(st.integers(0, 7)) == 0:
        pairs.append(("metadata", {"a": 1}))
    return json.dumps(dict(pairs), separators=draw(st.sampled_from([(",", ":"), (", ", ": ")])))


class Plain:
    """The rule, item by item: what is held stays, each proven spelling is the client's latest."""

    def __init__(self, held=()):
        self.held = list(held)

    def matched(self, sent):
        for index, (item, now) in enumerate(zip(self.held, sent, strict=False)):
            if item.difference(raw(now)) is not None:
                return index
        return min(len(self.held), len(sent))

    def grown(self, sent, outputs):
        known = [HeldItem(item.held, received=item.received, echo=raw(now))
                 for item, now in zip(self.held, sent, strict=False)]  # fmt: skip
        new = [HeldItem(raw(now), received=False) for now in sent[len(known) :]]
        return Plain([*known, *new, *(HeldItem(raw(out), received=True) for out in outputs)])


def body(sent, style):
    comma, head, tail = style
    return ("{" + head + '"input":[' + comma.join(sent) + "]" + tail + "}").encode()


STYLES = st.sampled_from([(",", "", ""), (", ", '"a":1,', ""), (",", '"a":1,', ',"t":[1]'), (",", "", ',"t":[1]')])  # fmt: skip


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_a_chain_of_turns_holds_what_it_would_hold_item_by_item(data):
    plain, held, known = Plain(), (), []
    values = []
    style = data.draw(STYLES)
    former = []
    for _ in range(data.draw(st.integers(1, 4))):
        values += data.draw(st.lists(messages(), max_size=3))
        same = data.draw(st.booleans())
        echoes = [bytes(item.echo).decode() for item in plain.held]
        sent = [
            echoes[i] if same and i < len(echoes) and json.loads(echoes[i]) == value
            else data.draw(written(value))
            for i, value in enumerate(values)
        ]  # fmt: skip
        style = style if data.draw(st.integers(0, 3)) else data.draw(STYLES)
        named = isinstance(held, Baseline) and data.draw(st.integers(0, 4)) == 0
        if named:
            sent = [*echoes, *sent[len(echoes) :]]
            now = Items(tuple(raw(text) for text in sent[len(echoes) :]), base=held)
        else:
            request = split(body(sent, style), known)
            now = request.items
        assert [bytes(item).decode() for item in now] == sent
        assert matched(held, now) == plain.matched(sent)
        for other, count in former:
            assert matched(other, now) == Plain(plain.held[:count]).matched(sent)
        if plain.matched(sent) < len(plain.held):
            return
        outputs = [json.dumps(one) for one in data.draw(st.lists(messages(), max_size=2))]
        plain, before = plain.grown(sent, outputs), held
        held = grown(held, now, [raw(out) for out in outputs])
        if isinstance(before, Baseline):
            before.give_way(held)
            former.append((before, len(before)))
        values += [json.loads(out) for out in outputs]
        assert [(bytes(i.echo), i.received) for i in held] == [
            (bytes(i.echo), i.received) for i in plain.held
        ]
        assert all(
            rules.same_json(rules.parse(one.held), rules.parse(other.held))
            for one, other in zip(held, plain.held, strict=True)
        )
        if not named:
            known = (
                [] if held.spelling is None else [Known(held.spelling, own_copy(request.fields))]
            )
        assert held.spelling is None or held.size >= len(held.spelling.body)


def request(values, known=(), **fields):
    return split(json.dumps({"model": "m", "input": values, **fields}).encode(), known)


def test_what_is_held_is_one_body_and_the_answer():
    asked = request([said("a" * 1000)])
    held = grown((), asked.items, [raw(said("b" * 100))])
    assert len(asked.body) + 150 < held.size < len(asked.body) + 300
    assert held.spelling.body is asked.body


def test_a_baseline_that_was_extended_is_looked_up_in_the_one_after_it():
    first = grown((), request([said("a")]).items, [raw(said("b"))])
    later = grown(first, request([said("a"), said("b"), said("c")]).items, [])
    first.give_way(later)
    assert (first.size, first.spelling, len(first)) == (0, None, 2)
    assert [bytes(item.held) for item in first] == [bytes(raw(said(t))) for t in "ab"]
    assert (first[1].received, first[-1].echo) == (True, raw(said("b")))
    assert matched(first, [raw(said("a")), raw(said("X"))]) == 1
    last = grown(later, request([said(t) for t in "abcd"]).items, [])
    later.give_way(last)
    assert [bytes(item.held) for item in first] == [bytes(raw(said(t))) for t in "ab"]


def test_a_baseline_gives_way_to_none_that_did_not_grow_from_it():
    first = grown((), request([said("a")]).items, [])
    first.give_way(grown((), request([said("x"), said("y")]).items, []))
    assert bytes(first[0].held) == bytes(raw(said("a")))
    assert first.size > 0


def test_to_name_one_baseline_proves_nothing_of_another():
    named, other = (grown((), request([said(text)]).items, []) for text in "ab")
    now = Items((raw(said("c")),), base=named)
    assert (matched(named, now), matched(other, now)) == (1, 0)


def test_what_the_provider_holds_is_kept_beside_an_echo_that_says_less():
    first = grown((), request([said("a")]).items, [raw(said("b", id="m1"))])
    later = grown(first, request([said("a"), said("b")]).items, [])
    assert matched(later, [raw(said("a")), raw(said("b", id="m2"))]) == 1
    assert matched(later, [raw(said("a")), raw(said("b", id="m1"))]) == 2


def test_a_user_item_that_equals_itself_in_other_bytes_is_kept_once():
    first = grown((), split(b'{"input":[{"a":1,"b":2}]}').items, [])
    later = grown(first, split(b'{"input":[{"b":2,"a":1}]}').items, [])
    assert (later.odd, bytes(later[0].held)) == ((), b'{"b":2,"a":1}')


def test_an_input_that_is_a_string_is_kept_as_its_item():
    held = grown((), split(b'{"input":"hi"}').items, [raw(said("b"))])
    assert (held.spelling, len(held), held.size > 0) == (None, 2, True)
    assert bytes(held[0].held) == b'{"role":"user","content":"hi"}'
