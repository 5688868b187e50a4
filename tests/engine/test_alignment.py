"""Where two transcripts that have parted meet again."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from engine import alignment
from engine.alignment import LOOK_AHEAD, Alignment, align
from engine.chain import HeldItem


def raw(text):
    return Raw(json.dumps({"role": "user", "content": text}).encode())


def meet(before, now):
    return align([HeldItem(raw(text), received=False) for text in before], list(map(raw, now)))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("A", "X", Alignment(1, 0, met=False)),
        ("ABC", "XYZ", Alignment(3, 0, met=False)),
        ("AB", "XB", Alignment(1, 1)),
        ("AB", "B", Alignment(1, 0)),
        ("A", "XA", Alignment(0, 1)),
        ("ABC", "XABC", Alignment(0, 1)),
        ("ABCD", "D", Alignment(3, 0)),
        ("ABCD", "XD", Alignment(3, 1)),
        ("ABCD", "XYZCDn", Alignment(2, 3)),
        ("AB", "BA", Alignment(2, 2, reordered=True)),
        ("ABC", "CABn", Alignment(3, 3, reordered=True)),
        ("ABCD", "BAXD", Alignment(2, 2, reordered=True, further=True)),
        ("ABCD", "CAXD", Alignment(0, 1, reordered=True, further=True)),
        ("ABCD", "XBYD", Alignment(1, 1, further=True)),
        ("ABCD", "BXD", Alignment(1, 0, further=True)),
        ("ABCD", "XB", Alignment(1, 1, further=True)),
    ],
)  # fmt: skip
def test_two_transcripts_meet_at_the_nearest_item_they_share(before, now, expected):
    assert expected == meet(before, now)


def test_an_item_that_stands_only_once_is_believed_before_one_that_is_repeated():
    # "g" (go on) stands everywhere; D tells that five items made way for a summary
    assert Alignment(5, 2) == meet("AgBgCDgEg", "SgDgEgn")


def test_items_in_the_other_spelling_of_the_model_are_equal():
    text = {"type": "message", "role": "assistant", "id": "m",
            "content": [{"type": "output_text", "text": "B"}]}  # fmt: skip
    held = [
        HeldItem(raw("A"), received=False),
        HeldItem(Raw(json.dumps(text).encode()), received=True),
    ]
    assert Alignment(1, 0) == align(held, [Raw(b'{"role":"assistant","content":"B"}')])


def test_items_that_cannot_be_read_meet_nothing():
    broken = Raw(b'{"a":1,"a":1}')
    held = [HeldItem(raw("A"), received=False), HeldItem(raw("B"), received=False)]
    assert Alignment(2, 0, met=False) == align(held, [broken, broken])
    assert Alignment(1, 1) == align(
        [HeldItem(broken, received=False), held[1]], [raw("X"), raw("B")]
    )


def test_items_of_one_content_and_other_ids_are_not_equal():
    one, other = (Raw(json.dumps({"role": "assistant", "content": "B", "id": i}).encode())
                  for i in ("m1", "m2"))  # fmt: skip
    held = [HeldItem(raw("A"), received=False), HeldItem(one, received=True)]
    assert not align(held, [raw("X"), other]).met


def test_a_block_of_equal_contents_with_other_ids_is_no_other_order():
    one, other = (Raw(json.dumps({"role": "assistant", "content": "B", "id": i}).encode())
                  for i in ("m1", "m2"))  # fmt: skip
    assert not align([HeldItem(one, received=True)], [other, raw("n")]).reordered


def respelled(text):
    return Raw(json.dumps({"content": text, "role": "user"}, indent=1).encode())


@pytest.mark.parametrize("distance", [LOOK_AHEAD - 1, 5 * LOOK_AHEAD])
def test_items_in_the_same_spelling_meet_at_any_distance(distance):
    before = [f"b{n}" for n in range(distance)] + ["last"]
    assert Alignment(distance, 0) == meet(before, ["last"])


def test_items_in_another_spelling_meet_within_the_bound():
    held = [HeldItem(raw(f"b{n}"), received=False) for n in range(LOOK_AHEAD + 1)]
    near, far = respelled(f"b{LOOK_AHEAD - 1}"), respelled(f"b{LOOK_AHEAD}")
    assert Alignment(LOOK_AHEAD - 1, 0) == align(held, [near, far])
    assert not align(held, [far]).met


def test_an_item_too_long_to_be_read_is_known_by_its_bytes_only():
    long = "x" * (1 << 18)
    held = [HeldItem(raw(text), received=False) for text in ("A", "B", long)]
    assert Alignment(2, 0) == align(held, [raw(long), raw("n")])
    assert not align(held, [respelled(long), raw("n")]).met


def test_an_item_in_another_spelling_before_one_in_the_same_is_found():
    held = [HeldItem(raw(text), received=False) for text in "ABCD"]
    assert Alignment(2, 0) == align(held, [respelled("C"), raw("D"), raw("n")])
    assert Alignment(2, 1) == align(held, [raw("X"), respelled("C"), raw("D")])


def test_a_long_rest_that_is_equal_is_compared_to_its_end():
    rest = [f"r{n}" for n in range(2 * LOOK_AHEAD)]
    assert Alignment(1, 1) == meet(["A", *rest], ["X", *rest, "n"])
    assert Alignment(1, 1, further=True) == meet(["A", *rest], ["X", *rest[:-1], "n"])


words = st.lists(st.text("abcdefgh", min_size=3, max_size=8), unique=True, min_size=6, max_size=20)


@given(words, st.data())
def test_a_planted_change_of_distinct_items_is_found_as_it_was_planted(history, data):
    """The oracle: what was planted. ``A…`` are new items, which stand nowhere in the history."""
    gone = data.draw(st.integers(0, len(history) - 1))
    new = data.draw(st.integers(0, 4).filter(lambda n: n + gone > 0))
    fresh = [f"A{n}" for n in range(new)]
    assert Alignment(gone, new) == meet(history, [*fresh, *history[gone:], "A new turn"])


@given(words, st.data())
def test_a_planted_permutation_is_found_with_its_length(history, data):
    length = data.draw(st.integers(2, len(history)))
    block = data.draw(st.permutations(history[:length]))
    if any(set(block[:n]) == set(history[:n]) for n in range(1, length)):
        return  # a shorter block is the one that moved
    assert Alignment(length, length, reordered=True) == meet(history, [*block, *history[length:]])


@st.composite
def sides(draw):
    """Few texts in two spellings, with ids or without, so that much meets and much is ambiguous."""

    def item():
        made = {
            "role": draw(st.sampled_from(["user", "assistant"])),
            "content": draw(st.sampled_from("AB")),
        }
        if draw(st.booleans()):
            made["id"] = draw(st.sampled_from(["m1", "m2"]))
        return Raw(json.dumps(made, indent=draw(st.sampled_from([None, 1]))).encode())

    before = [item() for _ in range(draw(st.integers(1, 4)))]
    now = [raw if draw(st.booleans()) else item() for raw in before]
    now += [item() for _ in range(draw(st.integers(0, 2)))]
    received = draw(st.booleans())
    return [HeldItem(raw, received=received) for raw in before], now


@given(sides())
@settings(max_examples=400, deadline=None)
def test_what_goes_on_behind_the_first_item_is_aligned_as_by_the_long_way(both):
    before, now = both
    if before[0].difference(now[0]) is None:
        return
    found = alignment._spelled_alike(before, now, ()) or alignment._spelled_anew(before, now, ())
    assert align(before, now) == (found or Alignment(len(before), 0, met=False))
