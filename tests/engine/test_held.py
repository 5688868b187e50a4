"""One item that the provider holds: which spellings of it are the same, and what a digest proves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

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
