"""Evidence of a break: where, what kind, and no word of the content."""

import dataclasses
import json

import pytest
from msgspec import Raw

from engine.chain import HeldItem
from engine.divergence import describe
from engine.model import DivergenceClass

KEY = b"k" * 32


def raw(value):
    return Raw(json.dumps(value).encode())


def user(text):
    return {"role": "user", "content": text}


def tell(before, now, index=0, **options):
    held = [HeldItem(raw(item), received=False) for item in before]
    return describe(held, [raw(item) for item in now], index, key=KEY, **options)


A, B, C, D = (user(t) for t in "abcd")


@pytest.mark.parametrize(
    ("before", "now", "index", "klass"),
    [
        ([A, B], [A], 1, "truncated_tail"), ([A, B], [A, C], 1, "edited"),
        ([A, B, C], [A, C], 1, "removed"), ([A, B], [A, C, B], 1, "inserted"),
        ([A, B, C], [A, C, B], 1, "reordered"), ([A], [{"type": "x"}], 0, "replaced"),
        ([A], [5], 0, "replaced"), ([A, B, C], [B, C], 0, "truncated_head"),
    ],
)  # fmt: skip
def test_the_class_says_what_happened(before, now, index, klass):
    evidence = tell(before, now, index)
    assert (evidence.klass, evidence.index) == (DivergenceClass(klass), index)
    assert (evidence.length_before, evidence.length_now) == (len(before), len(now))


@pytest.mark.parametrize("name", ["id", "call_id"])
def test_another_name_is_another_item_and_no_edit(name):
    one, two = ({"type": "x_call", name: n, "output": n} for n in "ab")
    assert tell([one], [two]).klass is DivergenceClass.REPLACED


def test_an_edit_is_told_by_pointer_offset_and_lengths():
    evidence = tell([user("abc")], [user("abXY")])
    assert (evidence.path, evidence.offset) == ("/content", 2)
    assert (evidence.value_length_before, evidence.value_length_now) == (3, 4)
    assert evidence.digest_before != evidence.digest_now
    assert (evidence.kind_before, evidence.kind_now) == ("message:user", "message:user")


def test_an_edit_inside_json_in_a_string_is_told_by_its_place():
    def out(value):
        return {"type": "function_call_output", "call_id": "c", "output": json.dumps(value)}

    evidence = tell([out({"_meta": {"secret": "ab"}})], [out({"_meta": {"secret": "ac"}})],
                    visible_keys=("_meta",))  # fmt: skip
    assert evidence.path.startswith("/output/_meta/~")
    assert "secret" not in evidence.path
    assert evidence.offset == 1
    assert tell([out([1])], [out([2])]).path == "/output"


def test_no_content_is_in_the_evidence():
    one = {"type": "x_call", "secretkey": {"other": "secretword"}, "call_id": "secretid"}
    two = {**one, "secretkey": {"other": "secretwood"}}
    text = str(dataclasses.asdict(tell([one], [two])))
    assert "secret" not in text


def test_without_a_break_only_the_fields_are_told():
    evidence = tell([A], [A, B], 1, changed=("tools",))
    assert (evidence.index, evidence.klass, evidence.path, evidence.kind_now) == (None,) * 4
    assert evidence.changed_fields == ("tools",)
    assert (evidence.digest_before, evidence.digest_now) == (None, None)


def test_a_fingerprint_groups_causes_and_not_contents_or_places():
    one = tell([A, user("x")], [A, user("y")], 1)
    two = tell([user("longer")], [user("text")], 0)
    assert one.fingerprint == two.fingerprint
    assert one.fingerprint != tell([A, B], [A], 1).fingerprint
    assert one.fingerprint != tell([A], [B], 0, changed=("tools",)).fingerprint


def test_a_fingerprint_ignores_the_index_of_a_part():
    def parts(*texts):
        return {"role": "user", "content": [{"text": t} for t in texts]}

    first, second = (
        tell([parts("a", "b")], [parts("x", "b")]),
        tell([parts("a", "b")], [parts("a", "x")]),
    )
    assert (first.path, second.path) == ("/content/0/text", "/content/1/text")
    assert first.fingerprint == second.fingerprint


def test_values_that_are_no_texts_have_no_offset():
    evidence = tell([{"type": "x", "output": 1}], [{"type": "x", "output": [1]}])
    assert (evidence.offset, evidence.value_length_before, evidence.value_length_now) == (
        None,
        None,
        1,
    )


def test_items_that_cannot_be_read_are_replaced():
    doubled = Raw(b'{"a":1,"a":1}')
    evidence = describe([HeldItem(doubled, received=False)], [raw(A)], 0, key=KEY)
    assert (evidence.klass, evidence.kind_before) == (DivergenceClass.REPLACED, "value")


def test_a_key_that_one_side_lacks_is_told():
    evidence = tell([{"type": "x", "output": "a"}], [{"type": "x"}])
    assert (evidence.path, evidence.offset) == ("/output", None)


def test_no_depth_of_json_in_a_string_raises():
    for depth in range(100, 1100, 20):
        one, two = (
            {"type": "x", "output": '{"a":' + "[" * depth + word + "]" * depth + "}"}
            for word in "12"
        )
        assert tell([one], [two]).klass is DivergenceClass.EDITED
