"""Evidence of a break: where, what kind, and no word of the content."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from app.ledger.facts import to_row
from engine.chain import HeldItem
from engine.divergence import describe
from engine.model import DivergenceClass
from engine.places import Teller
from engine.request import changed_fields
from tests.support.rows import make_facts

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
    assert tell([out([1])], [out([2])]).path == "/output/0"
    assert tell([out([1])], [out({})]).path == "/output"


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


def test_what_is_nested_too_deeply_to_be_compared_still_has_its_index(monkeypatch):
    def too_deep(*_):
        raise RecursionError

    monkeypatch.setattr(Teller, "place", too_deep)
    evidence = tell([A, B, C], [A, D, C], 1)
    assert (evidence.index, evidence.klass, evidence.path) == (1, "replaced", None)
    assert evidence.fingerprint is not None


def test_no_depth_of_json_in_a_string_raises():
    for depth in range(100, 1100, 20):
        one, two = (
            {"type": "x", "output": '{"a":' + "[" * depth + word + "]" * depth + "}"}
            for word in "12"
        )
        assert tell([one], [two]).klass is DivergenceClass.EDITED


# Which class it is: each case as it happens to clients.

SYSTEM = {"role": "system", "content": "be kind"}
REASON = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}


def said(text):
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(n, arguments="{}"):
    return {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": arguments}


def out(n, text="ok"):
    return {"type": "function_call_output", "call_id": f"c{n}", "output": text}


LONG = [
    item for n in range(10) for item in (user(f"q {n} {'z' * n}"), call(n), out(n), said(f"a {n}"))
]
N = user("what is new")


@pytest.mark.parametrize(
    ("name", "before", "now", "index", "klass", "gone", "new", "further"),
    [
        ("a summarized history", LONG, [user("sum of all before"), *LONG[32:], N], 0, "replaced", 32, 1, False),
        ("a summary after the system message", [SYSTEM, *LONG], [SYSTEM, user("sum"), *LONG[32:], N], 1,
         "replaced", 32, 1, False),
        ("a dropped reasoning item", [A, REASON, said("b")], [A, said("b"), N], 1, "removed", 1, 0, False),
        ("all reasoning items dropped", [A, REASON, said("b"), B, {**REASON, "id": "r2"}, said("c")],
         [A, said("b"), B, said("c"), N], 1, "removed", 1, 0, True),
        ("a rewritten first message", LONG, [user("other"), *LONG[1:], N], 0, "edited", 1, 1, False),
        ("a rewritten system message", [SYSTEM, *LONG], [{**SYSTEM, "content": "is it 5?"}, *LONG, N], 0, "edited", 1, 1, False),
        ("a sliding window", LONG, [*LONG[8:], N], 0, "truncated_head", 8, 0, False),
        ("a sliding window after the system message", [SYSTEM, *LONG], [SYSTEM, *LONG[8:], N], 1, "truncated_head", 8, 0, False),
        ("a system message left out", [SYSTEM, *LONG], [*LONG, N], 0, "removed", 1, 0, False),
        ("a block left out of the middle", LONG, [*LONG[:4], *LONG[20:], N], 4, "removed", 16, 0, False),
        ("an output left out", LONG, [*LONG[:6], *LONG[7:], N], 6, "removed", 1, 0, False),
        ("a note put in", LONG, [*LONG[:4], SYSTEM, *LONG[4:], N], 4, "inserted", 0, 1, False),
        ("an edit and a note", LONG, [*LONG[:2], out(0, "other"), LONG[3], SYSTEM, *LONG[4:], N], 2, "edited", 1, 1, True),
        ("an edit with a note at once", LONG, [*LONG[:2], out(0, "other"), SYSTEM, *LONG[3:], N], 2, "edited", 1, 1, True),
        ("a lost item and an edit at once", [A, REASON, call(1), out(1)], [A, call(1, '{"a":1}'), out(1), N], 1, "replaced", 2, 1, False),
        ("a lost item and an edit at the end", [A, REASON, said("what the model said")], [A, said("what the model said."), N], 1,
         "removed", 1, 0, True),
        ("a note and an edit at the end", [A, call(1), out(1)], [A, SYSTEM, call(1, '{"a":1}'), N], 1, "inserted", 0, 1, True),
        ("two outputs edited", [A, call(1), call(2), out(1), out(2)], [A, call(1), call(2), out(1, "x"), out(2, "y"), N], 3, "edited", 1, 1, True),
        ("outputs in another order", [A, call(1), call(2), out(1), out(2)], [A, call(1), call(2), out(2), out(1), N], 3, "reordered", 2, 2, False),
        ("other order and an edit", LONG[:8], [LONG[0], LONG[2], LONG[1], said("other"), *LONG[4:8], N], 1, "reordered", 2, 2, True),
        ("an answer left out", [A, said("b"), REASON, said("refusal")], [A, said("b"), N], 2, "removed", 2, 0, False),
        ("back to an earlier message", LONG, [*LONG[:8], user("another way")], 8, "replaced", 32, None, False),
        ("back to an earlier message with a slip", [A, B, *LONG], [A, user("b, but"), N], 1, "edited", 1, 1, True),
        ("a request sent again", LONG, LONG[:-1], 39, "truncated_tail", 1, 0, False),
        ("made up ids", [A, {**said("b"), "id": "m1"}], [A, {**said("b"), "id": "m2"}, N], 1, "edited", 1, 1, False),
        ("made up call ids", [call(1)], [{**call(1), "call_id": "c7"}, N], 0, "edited", 1, 1, False),
        ("another call", [call(1)], [{**call(7), "name": "g"}, N], 0, "replaced", 1, None, False),
        ("another kind", [A, call(1), out(1)], [A, said("b"), out(1), N], 1, "replaced", 1, 1, False),
    ],
)  # fmt: skip
def test_each_case_from_the_field_has_its_class(
    name, before, now, index, klass, gone, new, further
):
    evidence = tell(before, now, index)
    found = (evidence.klass, evidence.items_gone, evidence.items_new, evidence.further)
    assert (klass, gone, new, further) == found


def test_the_index_of_each_case_is_the_first_difference():
    """The cases above are told from the index on that the engine would find."""
    held = [HeldItem(raw(item), received=False) for item in LONG]
    assert all(item.difference(raw(again)) is None for item, again in zip(held, LONG, strict=True))


def test_made_up_ids_are_told_at_the_id():
    one, two = ({**said("b"), "id": name} for name in ("m1", "m2"))
    assert "/id" == tell([one], [two]).path
    assert "/call_id" == tell([call(1)], [{**call(1), "call_id": "c7"}]).path


def test_an_item_of_the_same_kind_in_its_place_is_compared():
    one, two = {**call(1), "name": "exec"}, {**call(7), "name": "read"}
    evidence = tell([one], [two])
    assert evidence.klass is DivergenceClass.REPLACED
    assert evidence.path in ("/call_id", "/name")


def test_what_has_no_place_has_the_digests_of_whole_items():
    one = tell([A, B, C], [A, C], 1)
    same, other = tell([A, B, C], [A, C, N], 1), tell([A, D, C], [A, C], 1)
    assert one.digest_before == same.digest_before != other.digest_before
    assert one.digest_now == same.digest_now is not None
    assert tell([A, B], [A], 1).digest_now is None


def test_a_text_of_lines_is_told_by_line():
    evidence = tell(
        [SYSTEM | {"content": "one\ntwo\nthree"}], [SYSTEM | {"content": "one\ntwo\n3"}]
    )
    assert (3, 8, "/content") == (evidence.line, evidence.offset, evidence.path)


def test_definitions_in_the_history_are_told_as_tools():
    def tools(*names):
        listed = [{"type": "function", "name": name} for name in names]
        return {"type": "additional_tools", "role": "developer", "tools": listed}

    evidence = tell([tools("a", "b"), A], [tools("b", "a", "c"), A])
    assert ("additional_tools", "edited") == (evidence.kind_before, evidence.klass)
    assert [("added", "c", 0), ("reordered", None, 0)] == [
        (each["change"], each.get("name"), each["item"]) for each in evidence.field_details
    ]
    assert all(each["field"] == "tools" for each in evidence.field_details)
    broken = {"type": "additional_tools", "tools": 5}
    assert () == tell([broken], [{**broken, "tools": 6}]).field_details


def test_fields_are_told_with_their_details():
    before, now = {"model": raw("a")}, {"model": raw("b"), "secret": raw(1)}
    evidence = tell([A], [A, B], 1, changed=("model", "secret"), fields=(before, now))
    assert "model" == evidence.changed_fields[0]
    assert evidence.changed_fields[1].startswith("~")
    assert ["model", evidence.changed_fields[1]] == [
        each["field"] for each in evidence.field_details
    ]


# No content: whatever a transcript holds, no string of it is in the evidence.

VOCABULARY = [
    "type",
    "role",
    "content",
    "output",
    "arguments",
    "text",
    "name",
    "call_id",
    "id",
    "summary",
    "metadata",
]
KINDS = [
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "additional_tools",
    "web_search_call",
]
ROLES = ["user", "assistant", "system"]
secrets = st.text(min_size=6, max_size=12).map(lambda text: f"Canary{text}")
keys = st.sampled_from(VOCABULARY) | secrets
values = st.recursive(
    secrets | st.integers(10**6, 10**9) | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    | st.dictionaries(keys, inner, max_size=3).map(json.dumps),
    max_leaves=6,
)  # fmt: skip
things = st.builds(
    lambda kind, role, rest: {**rest, "type": kind, "role": role},
    st.sampled_from(KINDS), st.sampled_from(ROLES),
    st.dictionaries(keys, values, max_size=5),
)  # fmt: skip
tools_ = st.lists(st.dictionaries(keys, values, max_size=4), max_size=3)
settings_ = st.dictionaries(
    st.sampled_from(["tools", "instructions", "prompt_cache_key", "user", "text", "prompt", "include",
                     "reasoning", "tool_choice", "CanaryField"]),
    values | tools_ | st.dictionaries(keys, values, max_size=3), max_size=4,
)  # fmt: skip


def strings(value):
    if isinstance(value, str):
        yield value
        try:
            yield from strings(json.loads(value)) if value[:1] in "{[" else ()
        except ValueError:
            return
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)


@settings(max_examples=100, deadline=None)
@given(st.lists(things, min_size=1, max_size=5), st.data(), settings_, settings_)
def test_no_string_of_a_transcript_is_in_the_evidence(before, data, fields, others):
    now = data.draw(st.lists(st.sampled_from(before) | things, max_size=5))
    held = [HeldItem(raw(item), received=False) for item in before]
    asked = [raw(item) for item in now]
    index = next((i for i, (a, b) in enumerate(zip(held, asked, strict=False))
                  if a.difference(b) is not None), min(len(held), len(asked)))  # fmt: skip
    pair = tuple({name: raw(value) for name, value in side.items()} for side in (fields, others))
    changed = changed_fields(*pair, "strict")
    evidence = describe(
        held, asked, index, key=KEY, visible_keys=("_meta",), changed=changed, fields=pair
    )
    row = to_row(
        make_facts(evidence=evidence, changed_fields=evidence.changed_fields), gateway_version=None
    )
    shown = json.dumps(row.evidence_object or {}, ensure_ascii=False)
    allowed = {*VOCABULARY, *KINDS, *ROLES, *fields, *others} - {"CanaryField"}
    named = {each["name"] for each in evidence.field_details if "name" in each}
    told = [text for text in strings([before, now, fields, others])
            if len(text) >= 6 and text not in allowed | named and text in shown]  # fmt: skip
    assert [] == told
    for values_ in ((row.diverged_path, row.diverged_kind, row.changed_fields),):
        assert "Canary" not in str(values_)
