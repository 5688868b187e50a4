"""One item that the provider holds: which spellings of it are the same, and what a digest proves."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import held as module
from engine import items as rules
from engine.condensed import Condensed, Entry
from engine.errors import NotKept
from engine.held import Digested, HeldItem, Odd
from tests.support.transcripts import raw, said


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
    assert twin.spelled(Raw(b'{"a":1}')).echo == Raw(b'{"a":1}')


def test_a_spelling_takes_no_more_memory_than_it_needs():
    body = b'[{"a":1},{"a": 1}]'
    one, other = Raw(memoryview(body)[1:8]), Raw(memoryview(body)[9:17])
    same = HeldItem(one, received=False).spelled(Raw(b'{"a":1}'))
    assert same.echo is same.held
    respelled = HeldItem(one, received=False, echo=other).spelled(Raw(b'{"a": 1}'))
    assert bytes(respelled.echo) == b'{"a": 1}'
    assert respelled.echo.copy() is respelled.echo


def cut_out(value):
    """An item as a slice of a body, which would keep all of it in memory."""
    body = bytes(raw([value]))
    return Raw(memoryview(body)[1:-1])


def test_what_is_held_is_cut_out_even_if_its_spelling_is():
    one, other = cut_out(said("x", id="m")), raw(said("x"))
    twin = HeldItem(one, received=True, echo=other).spelled(raw(said("x")))
    assert (twin.held, twin.echo) == (one, other)
    assert twin.held.copy() is twin.held


def test_what_is_kept_beside_an_echo_has_memory_of_its_own():
    item = HeldItem(cut_out(said("x", id="m")), received=True)
    kept = item.odd(raw(said("x"))).held
    assert (kept, kept.copy() is kept) == (item.held, True)


def test_an_item_weighs_what_it_holds_and_once_what_is_the_same():
    one, other = raw(said("x")), raw(said("x", id="m"))
    assert len(bytes(one)) == HeldItem(one, received=True).size
    assert len(bytes(one) + bytes(other)) == HeldItem(one, received=True, echo=other).size


def test_each_field_of_an_expected_echo_has_its_weight():
    weights = []
    for more in ({}, {"a": 1}, {"a": 1, "b": 1, "c": 1}):
        item = HeldItem(raw(said("x", id="m", **more)), received=True)
        assert item.weight_of_expected == 0
        item.expect()
        weights.append(item.weight_of_expected)
    assert weights[0] > 0
    assert weights[2] - weights[1] == 2 * (weights[1] - weights[0]) > 0


PLAIN = [
    f'[{{"type":"output_text",{more}"text":"a"}}]'
    for more in ("", '"annotations":[],"logprobs":[],', '"refusal":"b",', '"x":1,', '"text":"b",')
]
KEYS = ["id", "status", "type", "role", "content", "summary", "encrypted_content", "arguments",
        "call_id", "name", "x"]  # fmt: skip
PARTS = ['"a"', '"b"', '""', "null", "1", "1.0", "[]", "{}", '{"a":1,"a":1}', '"reasoning"',
         '"function_call"', '"message"', '"assistant"', '[{"text":"a"}]', *PLAIN, '[{"a":1,"a":2}]', '"{\\"a\\": 1}"']  # fmt: skip


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
@settings(max_examples=250, deadline=None)
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
    assert held.difference(raw({**call, "status": "in_progress"})) is None
    assert (
        held.difference(raw({k: call[k] for k in ("name", "type", "arguments", "call_id")})) is None
    )


def compact(value):
    return Raw(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def test_of_an_expected_echo_that_is_as_short_as_can_be_no_key_is_counted(monkeypatch):
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
    held = HeldItem(raw(call | {"status": "completed"}), received=True)
    held.expect()
    monkeypatch.setattr(module, "_fields_of", pytest.fail)
    assert held.difference(compact(call)) is None
    assert held.difference(compact(call | {"status": "done"})) is None


def text_part(text, **more):
    return {"type": "output_text", **more, "text": text}


def test_a_message_is_expected_with_what_clients_keep_of_its_parts(monkeypatch):
    parts = [text_part("a", annotations=[], logprobs=[]), text_part("é", annotations=[])]
    message = {"type": "message", "role": "assistant"}
    whole = {"id": "m", "status": "completed", "content": parts} | message
    held = HeldItem(compact(whole), received=True)
    held.expect()
    monkeypatch.setattr(rules, "difference", pytest.fail)
    kept = compact(message | {"content": [text_part("a"), text_part("é")]})
    assert held.difference(kept) is None
    plain = HeldItem(compact(message | {"content": "aé"}), received=True)
    plain.expect()
    assert held.weight_of_expected - plain.weight_of_expected > len(kept)


def test_a_text_that_is_expected_anew_has_its_weight():
    def weight(length):
        message = {"type": "message", "role": "assistant", "id": "m"}
        parts = [text_part("a" * length, annotations=[])]
        held = HeldItem(compact(message | {"content": parts}), received=True)
        held.expect()
        return held.weight_of_expected

    assert 1_000 == weight(1_001) - weight(1)


@pytest.mark.parametrize(
    ("held", "now", "where"),
    [
        (text_part("a", annotations=[]), text_part("b"), ("content", 0, "text")),
        (text_part("a", refusal="no"), text_part("a"), ("content", 0, "refusal")),
        ({"type": "refusal", "refusal": "no"}, text_part("a"), ("content", 0, "type")),
        ({"type": "output_text"}, text_part("a"), ("content", 0, "text")),
        ({"text": "a"}, text_part("a"), ("content", 0, "type")),
    ],
)
def test_what_clients_leave_out_of_a_part_is_never_what_the_model_reads(held, now, where):
    message = {"type": "message", "role": "assistant"}
    item = HeldItem(compact(message | {"content": [held, text_part("b")]}), received=True)
    item.expect()
    assert item.difference(compact(message | {"content": [now, text_part("b")]})) == where


TWICE = Raw(b'{"type":"message","role":"assistant","content":"a","content":"b"}')
DEEP = Raw(b'{"type":"message","role":"assistant","content":' + b"[" * 5000 + b"]" * 5000 + b"}")


@pytest.mark.parametrize("odd", [TWICE, DEEP])
def test_what_cannot_be_read_is_the_same_by_its_bytes_only(odd):
    spaced, plain = Raw(bytes(odd) + b" "), raw(said("b"))
    for received in (True, False):
        item = HeldItem(odd, received=received)
        item.expect()
        assert (item.difference(odd), item.difference(spaced)) == (None, ())
        assert (item.difference(plain), HeldItem(plain, received=received).difference(odd)) == (
            (),
            (),
        )
        assert HeldItem(plain, received=received, echo=odd).difference(odd) is None
        assert HeldItem(odd, received=received, echo=plain).difference(odd) is None
        assert (item.model_made, item.kind) == (received, "value")
        assert item.echo_key == rules.echo_key(None)
        assert item.odd(spaced) == Odd(odd, received)


def test_the_place_that_is_told_is_the_first_in_what_is_held():
    item = HeldItem(raw({"type": "t", "a": "x", "b": "x"}), received=True)
    assert item.difference(raw({"b": "y", "a": "y", "type": "t"})) == ("a",)


def test_an_item_knows_who_made_it_and_how_it_is_found():
    one, other = raw(said("x", id="m")), raw({"role": "user", "content": "x"})
    assert HeldItem(one, received=False).model_made is True
    assert HeldItem(other, received=False).model_made is False
    assert HeldItem(other, received=True).model_made is True
    for text in (one, other):
        item = HeldItem(text, received=False)
        assert (item.kind, item.echo_key) == (
            rules.kind(rules.parse(text)),
            rules.echo_key(rules.parse(text)),
        )
        assert item.spelled(raw(said("y"))).echo_key == item.echo_key


@pytest.mark.parametrize(
    ("held", "now", "where"),
    [
        ({"type": "reasoning"}, {"type": "reasoning"}, ("encrypted_content",)),
        ({"type": "reasoning", "id": "r"}, {"type": "reasoning", "id": "r"}, None),
        ({"type": "reasoning", "id": "r"}, {"type": "reasoning"}, ("encrypted_content",)),
        (said("x", id="a"), said("x", id="b"), ("id",)),
        (said("x", id="a"), said("x"), None),
        (said("x", status="done"), said("x", status=None), None),
        (said("x"), said("x", status="done"), None),
        (said("x"), said("x", status={"a": 1}), None),
        (said("x"), said("x", more=1), None),
        (said("x"), said("y"), ("content", 0, "text")),
    ],
)
def test_what_is_expected_is_no_looser_than_the_rule(held, now, where):
    item = HeldItem(raw(held), received=True)
    item.expect()
    spaced = Raw(bytes(raw(now)).replace(b":", b" :"))
    assert item.difference(spaced) == where


def test_what_is_sent_in_the_place_of_an_expected_echo_may_be_anything():
    item = HeldItem(raw(said("x")), received=True)
    item.expect()
    odd = [
        TWICE,
        DEEP,
        Raw(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        raw([1]),
        raw('"x"'),
    ]
    assert [item.difference(now) for now in odd] == [()] * len(odd)


def test_an_expected_echo_with_bytes_that_are_no_text_proves_nothing():
    item = HeldItem(raw(said("x")), received=True)
    item.expect()
    assert item.difference(Raw(b'{"status":"\xff",' + bytes(raw(said("x")))[1:])) == ()


def test_an_expected_echo_that_names_a_key_twice_proves_nothing():
    item = HeldItem(raw(said("x")), received=True)
    item.expect()
    text = bytes(raw(said("x")))
    assert item.difference(Raw(text[:-1] + b', "content": "x"}')) == ()
    assert item.difference(Raw(text[:-1] + b', "status": "a", "status": "b"}')) == ()
    assert item.difference(Raw(text[:-1] + b', "status": {"a": 1, "a": 1}}')) == ()


@pytest.mark.parametrize("part", ['{"a":1,"a":1}', '[{"a":1,"a":1}]', '[[{"b":{"a":1,"a":1}}]]'])
@pytest.mark.parametrize("received", [True, False])
def test_a_key_that_stands_twice_inside_proves_nothing_in_another_order(part, received):
    item = HeldItem(Raw(b'{"x":%s,"y":1}' % part.encode()), received=received)
    assert item.difference(Raw(b'{"y":1,"x":%s}' % part.encode())) == ()
    once = part.replace('"a":1,"a":1', '"a":1')
    item = HeldItem(Raw(b'{"x":%s,"y":1}' % once.encode()), received=received)
    assert item.difference(Raw(b'{"y":1,"x":%s}' % once.encode())) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("id", '"r"', None), ("id", "null", ("encrypted_content",)), ("id", '""', ("encrypted_content",)),
     ("encrypted_content", '"e"', None), ("encrypted_content", "null", ("encrypted_content",)),
     ("encrypted_content", '""', ("encrypted_content",))],
)  # fmt: skip
@pytest.mark.parametrize("received", [True, False])
def test_reasoning_that_nothing_identifies_is_not_the_same_in_another_order(
    name, value, expected, received
):
    item = HeldItem(
        Raw(b'{"type":"reasoning","summary":[],"%s":%s}' % (name.encode(), value.encode())),
        received=received,
    )
    now = Raw(b'{"%s":%s,"summary":[],"type":"reasoning"}' % (name.encode(), value.encode()))
    assert item.difference(now) == expected
    assert item.difference(item.held) is None


def output(text, meta):
    return raw(
        {"type": "function_call_output", "call_id": "c", "output": {"t": text, "_meta": meta}}
    )


def test_only_outputs_that_say_something_else_are_frozen():
    held = HeldItem(output("x", 1), received=False)
    respelled = Raw(bytes(output("x", 1)).replace(b":", b" :"))
    assert [held.freezes(now) for now in (output("x", 1), respelled, output("x", 2))] == [
        False,
        False,
        True,
    ]
    assert HeldItem(raw(said("x")), received=True).freezes(raw(said("y"))) is False
    frozen = held.spelled(output("x", 2))
    assert (frozen.frozen, bytes(frozen.held), bytes(frozen.echo)) == (
        True,
        bytes(output("x", 1)),
        bytes(output("x", 2)),
    )
    assert frozen.freezes(output("x", 2)) is True
    assert frozen.odd(output("x", 2)) == Odd(output("x", 1), received=False, frozen=True)
    back = frozen.spelled(output("x", 1))
    assert (back.frozen, bytes(back.echo)) == (False, bytes(output("x", 1)))


@pytest.mark.parametrize("received", [True, False])
def test_what_differs_from_its_spelling_is_kept_beside_it(received):
    held = raw(said("x", id="m", more={"a": 1, "b": 2}))
    same_json = raw(dict(reversed(said("x", id="m", more={"b": 2, "a": 1}).items())))
    item = HeldItem(held, received=received)
    assert item.odd(held) == (Odd(None, received=True) if received else None)
    assert item.odd(same_json) == (Odd(held, received=True) if received else None)
    kept = item.odd(raw(said("x")))
    assert kept == Odd(held, received)
    assert kept.held.copy() is kept.held


# --- an item of which only the digest is kept -----------------------------------------------------


def digested(value, *, received=True, sealed=False, frozen=False):
    entry = Entry(raw(value), received, sealed, frozen)
    return Digested(Condensed(b"k").and_then([entry]), 0)


def test_a_digest_proves_the_same_bytes_and_nothing_else():
    item = digested(said("x"))
    assert item.difference(raw(said("x"))) is None
    assert item.difference(raw(said("x", id="m1"))) == ()
    assert item.difference(Raw(bytes(raw(said("x"))) + b" ")) == ()


def test_what_is_not_kept_is_never_made_up():
    item = digested(said("x"))
    for name in ("held", "echo", "echo_key"):
        with pytest.raises(NotKept):
            getattr(item, name)


def test_of_a_digested_item_kind_length_and_maker_are_known():
    item = digested(said("x"), received=False)
    assert (item.kind, item.length, item.model_made) == (
        "message:assistant",
        len(bytes(raw(said("x")))),
        True,
    )
    assert digested({"role": "user", "content": "x"}, received=False).model_made is False
    assert digested({"type": "function_call_output"}, received=False).model_made is False
    assert digested({"type": "function_call"}, received=False).model_made is True
    assert digested({"type": "shell_call_output"}, received=True).model_made is True
    assert (item.is_whole, HeldItem(raw("x"), received=False).is_whole, item.size) == (
        False,
        True,
        0,
    )


def test_a_spelling_that_is_at_hand_again_has_memory_of_its_own():
    back = digested(said("x")).spelled(cut_out(said("x")))
    assert (back.held, back.held.copy() is back.held) == (raw(said("x")), True)


@pytest.mark.parametrize("received", [True, False])
@pytest.mark.parametrize("sealed", [True, False])
def test_repeated_it_is_what_it_was_and_spelled_anew_it_is_sealed(received, sealed):
    item = digested(said("x"), received=received, sealed=sealed)
    same, other = raw(said("x")), raw(said("x", status="done"))
    if sealed or received:
        assert item.odd(same) == Odd(None, received, sealed=sealed)
    else:
        assert item.odd(same) is None
    assert item.odd(other) == Odd(None, received, sealed=True)
    back, anew = item.spelled(same), item.spelled(other)
    assert (bytes(back.held), back.received, back.sealed) == (bytes(same), received, sealed)
    assert (bytes(anew.held), anew.received, anew.sealed) == (bytes(other), received, True)


def test_a_freeze_policy_that_held_is_remembered():
    item = digested({"type": "function_call_output", "output": "x"}, sealed=True, frozen=True)
    same = raw({"type": "function_call_output", "output": "x"})
    assert (item.freezes(same), item.spelled(same).freezes(same)) == (True, True)
    assert item.odd(same) == Odd(None, received=True, frozen=True, sealed=True)


def test_of_a_sealed_item_the_proven_spelling_alone_counts():
    """What is held was thrown away; the projection says nothing of what it would have equalled."""
    open_, sealed = (HeldItem(raw(said("x")), received=True, sealed=s) for s in (False, True))
    assert (open_.difference(raw(said("x", id="m2"))), sealed.difference(raw(said("x")))) == (
        None,
        None,
    )
    assert sealed.difference(raw(said("x", id="m2"))) == ()
    assert sealed.difference(raw(said("y"))) == ("content", 0, "text")
    assert sealed.odd(raw(said("x"))) == Odd(None, received=True, sealed=True)
    assert sealed.spelled(raw(said("x"))).sealed is True


def test_a_sealed_item_stays_sealed_and_frozen_in_memory_of_its_own():
    body = bytes(raw([said("x")]))
    item = HeldItem(Raw(memoryview(body)[1:-1]), received=True, sealed=True, frozen=True)
    twin = item.spelled(raw(said("x")))
    assert (twin is item, twin.sealed, twin.frozen) == (False, True, True)
    assert twin.odd(raw(said("x"))) == Odd(None, received=True, frozen=True, sealed=True)
