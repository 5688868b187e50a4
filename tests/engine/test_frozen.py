"""A tool output that the model has seen stays the string that it saw."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.frozen import Frozen, is_output

PENDING = "[pending]"


def output(call_id: object = "call_1", text: object = "first", **more) -> dict:
    return {"type": "function_call_output", "call_id": call_id, "output": text, **more}


def applied(frozen: Frozen, *items: dict) -> list[dict]:
    return frozen.apply(items).items


def answered(frozen: Frozen, *items: dict) -> list[dict]:
    """What is sent of these items, when it is answered."""
    sent = frozen.apply(items)
    frozen.commit(sent)
    return sent.items


def counted(frozen: Frozen, *items: dict) -> tuple[list[dict], int]:
    sent = frozen.apply(items)
    return sent.items, sent.replaced


def test_an_output_that_was_never_sent_is_as_it_is_given():
    assert ([output()], 0) == counted(Frozen(), output())


def test_an_output_that_was_seen_is_sent_as_it_was_seen_and_counted():
    frozen = Frozen()
    answered(frozen, output(text='{"ok":1,"_meta":{"turn":1}}'))
    items, count = counted(frozen, output(text='{"ok":1}'), output("call_2", '{"ok":2,"_meta":{}}'))
    assert ['{"ok":1,"_meta":{"turn":1}}', '{"ok":2,"_meta":{}}'] == [i["output"] for i in items]
    assert 1 == count


def test_an_equal_output_is_not_counted():
    frozen = Frozen()
    answered(frozen, output())
    assert ([output()], 0) == counted(frozen, output())


def test_the_first_output_seen_wins_over_all_later_ones():
    frozen = Frozen()
    for text in ("first", "second", "third"):
        answered(frozen, output(text=text))
    assert [output(text="first")] == applied(frozen, output(text="fourth"))


def test_applying_alone_freezes_nothing():
    frozen = Frozen()
    frozen.apply([output(text="never answered")])
    assert 0 == len(frozen)
    assert [output(text="retried")] == applied(frozen, output(text="retried"))


def test_items_that_are_given_are_never_changed():
    frozen = Frozen()
    answered(frozen, output())
    given_items = [output(text="later", status="completed")]
    before = copy.deepcopy(given_items)
    items = applied(frozen, *given_items)
    assert before == given_items
    assert [output(status="completed")] == items


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "output": "no call"},
        output(call_id=None),
        output(call_id=7),
        {"type": "function_call_output", "call_id": "call_1"},
        {"type": None, "call_id": "call_1", "output": "x"},
    ],
)
def test_only_outputs_that_name_their_call_are_frozen(item):
    frozen = Frozen()
    answered(frozen, item)
    assert not is_output(item)
    assert 0 == len(frozen)
    assert [item] == applied(frozen, item)


def test_outputs_of_other_tools_and_outputs_in_parts_are_frozen_too():
    frozen = Frozen()
    shell = {"type": "local_shell_call_output", "call_id": "c", "output": "a"}
    parts = output(text=[{"type": "input_text", "text": "a"}])
    answered(frozen, shell, parts)
    later = [{**shell, "output": "b"}, output(text=[])]
    assert [shell, parts] == applied(frozen, *later)


def test_an_output_in_parts_that_is_changed_in_place_later_is_sent_as_it_was_seen():
    frozen = Frozen()
    parts = [{"type": "input_text", "text": "a"}]
    answered(frozen, output(text=parts))
    parts[0]["text"] = "b"
    (item,) = applied(frozen, output(text=parts))
    assert [{"type": "input_text", "text": "a"}] == item["output"]


def test_numbers_are_told_by_their_spelling():
    frozen = Frozen()
    answered(frozen, output(text=[1]))
    for other in ([1.0], [True]):
        items, count = counted(frozen, output(text=other))
        assert (1, "[1]") == (count, json.dumps(items[0]["output"]))


def test_one_call_id_in_two_kinds_of_tools_is_two_calls():
    frozen = Frozen()
    custom = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "custom"}
    answered(frozen, output(), custom)
    assert [output(), custom] == applied(frozen, output(), custom)


def called(call_id: str, arguments: str = "{}") -> dict:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": arguments}


def test_an_id_that_stands_for_another_call_has_another_output():
    frozen = Frozen()
    first, other = called("call_1", '{"path":"a"}'), called("call_1", '{"path":"b"}')
    answered(frozen, first, output(text="of a"))
    assert [other, output(text="of b")] == answered(frozen, other, output(text="of b"))
    for call, text in ((first, "of a"), (other, "of b")):
        assert [call, output(text=text)] == applied(frozen, call, output(text="moved"))


def test_what_a_converter_leaves_out_of_a_call_makes_no_other_call_of_it():
    frozen = Frozen()
    answered(frozen, {**called("call_1"), "id": "fc_1", "status": "completed"}, output())
    call = called("call_1")
    assert [call, output()] == applied(frozen, call, output(text="moved"))


def test_a_call_with_two_outputs_keeps_both():
    frozen = Frozen()
    answered(frozen, output(text="a"), output(text="b"))
    assert [output(text="a"), output(text="b")] == applied(
        frozen, output(text="A"), output(text="B")
    )


def test_a_placeholder_is_never_frozen_so_that_the_output_takes_its_place():
    frozen = Frozen(PENDING)
    answered(frozen, output(text=PENDING))
    assert [output(text="real")] == applied(frozen, output(text="real"))


def test_a_placeholder_does_not_overwrite_an_output_that_was_seen():
    frozen = Frozen(PENDING)
    answered(frozen, output(text="real"))
    assert ([output(text="real")], 1) == counted(frozen, output(text=PENDING))


def test_placeholders_stand_behind_all_else_in_their_order():
    frozen = Frozen(PENDING)
    a, b, c = (output(name, PENDING) for name in "abc")
    said = {"role": "user", "content": "hi"}
    real = output("d", "real")
    assert [said, real, a, b, c] == applied(frozen, a, said, b, real, c)


def test_a_placeholder_that_the_model_saw_stays_where_it_stood():
    frozen = Frozen(PENDING)
    a, b, c = (output(name, PENDING) for name in "abc")
    said, more = {"role": "user", "content": "hi"}, {"role": "user", "content": "more"}
    assert [said, a, b] == answered(frozen, a, said, b)
    assert [said, a, b, more, c] == answered(frozen, said, b, c, more, a)
    assert [said, a, b, more, c] == applied(frozen, said, more, a, b, c)


def test_a_placeholder_that_was_not_answered_has_no_place_yet():
    frozen = Frozen(PENDING)
    a, said = output("a", PENDING), {"role": "user", "content": "hi"}
    assert [a] == applied(frozen, a)
    assert [said, a] == applied(frozen, a, said)


def test_a_placeholder_whose_place_is_gone_stands_at_the_end():
    frozen = Frozen(PENDING)
    a, said = output("a", PENDING), {"role": "user", "content": "hi"}
    answered(frozen, said, said, said, a)
    assert [said, a] == applied(frozen, said, a)
    frozen.clear()
    assert [said, said, said, said, a] == applied(frozen, a, said, said, said, said)


@pytest.mark.parametrize("arguments", ["{}", '{"path":"b"}'])
def test_a_placeholder_never_stands_before_its_call(arguments):
    frozen = Frozen(PENDING)
    said = {"role": "user", "content": "hi"}
    call = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
    answered(frozen, said, call, output(text=PENDING))
    again = {**call, "arguments": arguments}
    expected = [said, said, said, said, again, output(text=PENDING)]
    assert expected == applied(frozen, said, said, said, said, again, output(text=PENDING))


def test_a_call_waits_once():
    a = output("a", PENDING)
    assert [a] == applied(Frozen(PENDING), a, a)


def test_a_placeholder_beside_the_real_output_does_not_shift_it():
    frozen = Frozen(PENDING)
    answered(frozen, output(text=PENDING), output(text="real"))
    assert [output(text="real")] == applied(frozen, output(text="later"))


def test_without_a_placeholder_text_no_output_is_one():
    assert not Frozen().is_placeholder(output(text=PENDING))


def test_a_new_epoch_starts_from_the_agents_own_history():
    frozen = Frozen()
    answered(frozen, output())
    frozen.clear()
    assert [output(text="now")] == applied(frozen, output(text="now"))


def test_the_least_recently_sent_output_is_forgotten_at_the_limit():
    frozen = Frozen(limit=2)
    answered(frozen, output("a"), output("b"))
    answered(frozen, output("a"), output("c"))
    assert ["first", "now", "first"] == [
        item["output"] for item in applied(frozen, *(output(name, "now") for name in "abc"))
    ]


steps = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.sampled_from(["x", "y", PENDING])), max_size=5
        ),
        st.booleans(),
    ),
    max_size=8,
)


@given(steps)
def test_it_agrees_with_a_naive_reading_of_the_rule(steps):
    """Outputs as first answered; placeholders last, or where they were answered before."""
    frozen = Frozen(PENDING)
    seen: dict[tuple[str, int], str] = {}
    places: dict[str, int] = {}
    for outputs, is_answered in steps:
        differing, expected, tail, counts = 0, [], [], {"a": 0, "b": 0}
        for name, text in outputs:
            text_seen = seen.get((name, counts[name]))
            if text_seen is None and text == PENDING:
                tail += [name] if name not in tail else []
                continue
            expected.append(output(name, text_seen or text))
            differing += text_seen not in (None, text)
            counts[name] += 1
        real = list(expected)
        for name in sorted((n for n in tail if n in places), key=lambda n: places[n]):
            expected.insert(places[name], output(name, PENDING))
        expected += [output(name, PENDING) for name in tail if name not in places]
        sent = frozen.apply([output(name, text) for name, text in outputs])
        assert (expected, differing) == (sent.items, sent.replaced)
        if is_answered:
            frozen.commit(sent)
            places = {name: expected.index(output(name, PENDING)) for name in tail}
            counts = {"a": 0, "b": 0}
            for item in real:
                seen.setdefault((item["call_id"], counts[item["call_id"]]), item["output"])
                counts[item["call_id"]] += 1
