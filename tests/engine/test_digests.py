"""Digests tell values apart and tell nothing of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine import digests

KEY = b"k" * 32


def test_parts_are_never_confused_with_their_sum():
    assert digests.mac(KEY, "a", "bc") != digests.mac(KEY, "ab", "c") != digests.mac(KEY, "abc")
    assert digests.mac(KEY, "a:b", "c") != digests.mac(KEY, "a", "b:c")
    assert digests.mac(KEY) != digests.mac(KEY, "")


def test_text_bytes_and_slices_of_equal_bytes_are_one():
    assert (
        digests.mac(KEY, "é")
        == digests.mac(KEY, "é".encode())
        == digests.mac(KEY, Raw("é".encode()))
    )
    assert len(digests.mac(KEY, "\ud800", size=8)) == 8


def test_another_key_gives_another_digest():
    assert digests.mac(KEY, "a") != digests.mac(b"x" * 32, "a")


@pytest.mark.parametrize("raw", [None, Raw(b"null")])
def test_an_absent_value_has_no_digest(raw):
    assert digests.value_digest(KEY, raw) is None


def test_the_digest_of_a_value_ignores_key_order_only():
    def of(text):
        return digests.value_digest(KEY, Raw(text))

    assert of(b'{"a":1,"b":2}') == of(b'{ "b":2, "a":1 }')
    assert of(b"[1,2]") != of(b"[2,1]")
    assert of(b'"nullx"') is not None


@pytest.mark.parametrize("text", [b"[" * 5000 + b"]" * 5000, b'"\xff"', b"1e999"])
def test_a_value_that_cannot_be_read_has_the_digest_of_its_bytes(text):
    assert digests.value_digest(KEY, Raw(text)) == digests.mac(KEY, text).hex()


@given(st.lists(st.binary(max_size=4), max_size=6), st.integers(0, 6))
def test_extending_is_incremental(texts, at):
    raws = [Raw(text) for text in texts]
    halfway = digests.extend(KEY, digests.EMPTY, raws[:at])
    assert digests.extend(KEY, halfway, raws[at:]) == digests.extend(KEY, digests.EMPTY, raws)


def test_order_and_number_of_items_count():
    one, two = Raw(b"1"), Raw(b"2")
    seen = {
        digests.extend(KEY, b"", order) for order in ([], [one], [one, two], [two, one], [one, one])
    }
    assert len(seen) == 5
