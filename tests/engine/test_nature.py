"""The nature of a change between two texts, in one word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.nature import first_difference, of_texts


@pytest.mark.parametrize(
    ("nature", "before", "now"),
    [
        ("whitespace", "a b", "a  b"), ("whitespace", "text\r\n", "text\n"),
        ("whitespace", " padded ", "padded"), ("unicode", "caf\u00e9", "cafe\u0301"),
        ("time", "at 2026-11-30T08:39:22Z", "at 2026-12-01T00:00:07Z"),
        ("time", "at 2026-11-30 08:39:22.123456+01:00", "at 2026-11-30 08:39:23.5+01:00"),
        ("time", "Mon, 30 Nov 2026, 8:39 PM", "Tuesday, 1 Dec 2026, 12:00 AM"),
        ("time", "November 30, 2026", "Dec 1, 2026"), ("time", "1/12/2026", "30/11/2026"),
        ("time", "2026/1/2", "2026/11/30"),
        ("time", "ts=1790000000", "ts=1790000123456"), ("time", "ts=1790000000.25", "ts=1790000001"),
        ("number", "tokens left: 41200", "tokens left: 9"), ("number", "v1.2", "v1.10"),
        ("number", "on 2026-11-30 there were 5", "on 2026-12-01 there were 6"),
        ("identifier", "id 0f8fad5b-d9cb-469f-a165-70867728950e", "id 7c9e6679-7425-40de-944b-e07fc1f90ae7"),
        ("identifier", "sha 3fa9c1d", "sha 8bc1eef0"),
        ("identifier", "call_a1B2c3D4e5F6", "call_Z9y8X7w6V5u4"),
        ("identifier", "sha 3fa9c1d, 5 files", "sha 8bc1eef0, 6 files"),
        ("shortened", "x" * 100, "x" * 80), ("shortened", "a" * 100, "b" * 40),
        ("shortened", "head" * 20 + "m" * 50 + "tail" * 20, "head" * 20 + "…" + "tail" * 20),
        ("shortened", "something", ""),
        ("lengthened", "x" * 80, "x" * 100), ("lengthened", "b", "abc def"),
        ("rewritten", "a cat sat", "a dog sat"), ("rewritten", "x" * 100, "x" * 99),
        ("rewritten", "may I", "can I"), ("rewritten", "deadbeef", "effaced beyond"),
    ],
)  # fmt: skip
def test_the_nature_is_told_in_one_word(nature, before, now):
    assert nature == of_texts(before, now)


@pytest.mark.parametrize("around", ["", "words " * 50, "\n" * 9])
@pytest.mark.parametrize(
    ("nature", "before", "now"),
    [("time", "08:39:22", "08:40:07"), ("number", "12", "130"), ("whitespace", " a", "a ")],
)
def test_equal_text_around_it_changes_nothing(nature, before, now, around):
    assert nature == of_texts(f"{around}<{before}>{around}", f"{around}<{now}>{around}")


def test_a_date_is_seen_whole_though_only_its_last_digit_differs():
    assert "time" == of_texts("Today is 2026-11-30.", "Today is 2026-11-31.")
    assert "time" == of_texts("x" * 99 + " 08:39", "x" * 99 + " 08:38")


texts = st.text(alphabet="ab1 \n", max_size=40)


@given(texts, texts)
def test_the_first_difference_is_where_a_naive_comparison_finds_it(one, other):
    expected = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                    min(len(one), len(other)))  # fmt: skip
    assert expected == first_difference(one, other)


def test_a_difference_too_long_to_be_read_is_told_by_its_length():
    before, now = ("\n".join(f"{n + shift} files" for n in range(20_000)) for shift in (0, 1))
    assert "rewritten" == of_texts(before, now)
    assert "number" == of_texts("1 file\n" * 7_000, "22 file\n" * 7_000)
    assert "whitespace" == of_texts(before, before.replace("\n", "\r\n"))


def test_a_difference_far_on_is_found():
    assert 10_000 == first_difference("x" * 10_000 + "a", "x" * 10_000 + "b")
    assert 8192 == first_difference("x" * 8192, "x" * 9000)


@given(texts, texts)
def test_a_change_and_its_reverse_are_of_one_nature(one, other):
    mirrored = {"shortened": "lengthened", "lengthened": "shortened"}
    if one != other:
        nature = of_texts(one, other)
        assert mirrored.get(nature, nature) == of_texts(other, one)
