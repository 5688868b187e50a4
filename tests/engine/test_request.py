"""A body split into slices, put together again, and compared field by field."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from engine.errors import UnreadableRequest
from engine.request import changed_fields, own_copy, split

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
NAMES = st.sampled_from(["model", "tools", "store", "metadata", "é", "a b", '"'])
ENVELOPE = {"type", "previous_response_id", "stream", "background", "generate", "stream_id"}


def body(**fields):
    return json.dumps({"model": "m", "input": [{"a": 1}, "b"], **fields}).encode()


def fields_of(**fields):
    return {name: Raw(json.dumps(value).encode()) for name, value in fields.items()}


# --- splitting -------------------------------------------------------------------------------------


def test_items_and_fields_are_the_clients_own_bytes():
    request = split(b'{"model": "m", "input" : [ {"x":1.50} , "s\\u00e9" ], "n":1e0}')
    assert [bytes(raw) for raw in request.items] == [b'{"x":1.50}', b'"s\\u00e9"']
    assert bytes(request.fields["n"]) == b"1e0"
    assert list(request.fields) == ["model", "input", "n"]


def test_a_string_input_is_one_message_of_the_user():
    assert [bytes(raw) for raw in split(b'{"input":"h\\u0069"}').items] == [
        b'{"role":"user","content":"h\\u0069"}'
    ]


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"{", b'{"a":1}x', b'{"input":null}', b"{}", b'{"input":{}}', b'{"input":1}',
     b'{"input":[],"a":"\xff"}', b'{"input":[],"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
     b'\xef\xbb\xbf{"input":[]}', b'{"input":[}'],
)  # fmt: skip
def test_what_cannot_be_split_without_guessing_is_refused(text):
    with pytest.raises(UnreadableRequest):
        split(text)


DUPLICATES = [
    b'{"input":[],"input":[1]}',
    b'{"input":[], "a":1, "a":1}',
    b'{ "a" : 1 , "input" : [ ] , "\\u0061" : 2 }',
    # The bytes of the second key are as many as the spaces of another style would be.
    b'{"a":10,"a":11,"input":[],"c":1,"d":1}',
    b'{"input":[],"input":[1],"a":1,"b":1,"c":1,"d":1,"e":1}',
]


@pytest.mark.parametrize("text", DUPLICATES)
def test_a_key_that_stands_twice_is_refused(text):
    with pytest.raises(UnreadableRequest):
        split(text)


@given(
    names=st.lists(st.sampled_from("abcdefgh"), max_size=9),
    value=st.sampled_from(["1", "10", "[]", '"xy"', '{"a":1,"a":2}', "1234567"]),
    style=st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " : ")]),
)
def test_a_key_that_stands_twice_is_found_in_every_style(names, value, style):
    comma, colon = style
    pairs = [f'"{name}"{colon}{value}' for name in names] + [f'"input"{colon}[]']
    text = ("{" + comma.join(pairs) + "}").encode()
    if len(set(names)) == len(names):
        assert len(split(text).fields) == len(names) + 1
    else:
        with pytest.raises(UnreadableRequest):
            split(text)


def test_a_number_of_any_length_can_be_split_in_any_style():
    digits = b"9" * 6000
    assert bytes(split(b'{ "input": [], "a": ' + digits + b" }").fields["a"]) == digits


def test_values_are_read_where_they_are_there():
    request = split(body(store=False, n=None, text={"a": 1}))
    assert (request.text("model"), request.text("store"), request.text("none")) == ("m", None, None)
    assert (request.value("store"), request.value("n"), request.value("none")) == (
        False,
        None,
        None,
    )
    assert split(b'{"input":[],"n":1e999}').value("n") is None


# --- frames and bodies -----------------------------------------------------------------------------


def test_a_continuing_frame_differs_from_the_full_one_in_input_and_anchor_only():
    request = split(body(stream=True, background=False, instructions="i", client_metadata={"a": 1}))
    full = json.loads(request.frame(None, None, keep_stream=False))
    part = json.loads(request.frame(request.items[1:], "resp_1", keep_stream=False))
    assert full == {"type": "response.create", "model": "m", "input": [{"a": 1}, "b"],
                    "instructions": "i", "client_metadata": {"a": 1}}  # fmt: skip
    assert part == {**full, "input": ["b"], "previous_response_id": "resp_1"}


def test_a_frame_keeps_stream_only_for_those_who_send_it_there():
    request = split(body(stream=True, background=True))
    assert b"stream" not in request.frame(None, None, keep_stream=False)
    kept = json.loads(request.frame(None, None, keep_stream=True))
    assert (kept["stream"], kept["background"]) == (True, True)


def test_an_anchor_of_the_client_is_replaced():
    request = split(body(previous_response_id="theirs"))
    assert b"theirs" not in request.frame(None, None, keep_stream=False)
    assert json.loads(request.frame((), 'a"b', keep_stream=False)) == {
        "type": "response.create", "previous_response_id": 'a"b', "model": "m", "input": [],
    }  # fmt: skip


def test_client_metadata_is_replaced_where_something_was_added():
    request = split(body(client_metadata={"a": 1}))
    frame = request.frame(None, None, keep_stream=False, client_metadata=b'{"b":2}')
    assert frame.count(b"client_metadata") == 1
    assert json.loads(frame)["client_metadata"] == {"b": 2}


@pytest.mark.parametrize(
    ("stream", "expected"), [(None, "as it came"), (True, True), (False, False)]
)
def test_a_post_has_no_envelope_and_streams_as_asked(stream, expected):
    request = split(body(type="response.create", generate=True, stream_id="s", stream="as it came"))
    post = json.loads(request.post(None, None, stream=stream))
    assert post == {"model": "m", "input": [{"a": 1}, "b"], "stream": expected}


def test_a_post_may_carry_an_anchor_and_a_delta():
    post = split(body()).post((Raw(b"1"),), "resp_1", stream=None)
    assert post == b'{"previous_response_id":"resp_1","model":"m","input":[1]}'


@given(
    fields=st.dictionaries(NAMES, JSON, max_size=4),
    items=st.lists(JSON, max_size=5),
    indent=st.sampled_from([None, 1]),
    ascii_=st.booleans(),
    data=st.data(),
)
def test_what_is_put_together_parses_to_the_same_json(fields, items, indent, ascii_, data):
    value = {**fields, "input": items}
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        return
    request = split(encoded)
    assert json.loads(request.post(request.items, None, stream=None)) == value
    assert json.loads(request.post(None, None, stream=None)) == value
    at = data.draw(st.integers(0, len(items)))
    frame = json.loads(request.frame(request.items[at:], "r", keep_stream=False))
    assert frame == {**value, "type": "response.create", "previous_response_id": "r",
                     "input": items[at:]}  # fmt: skip


# --- compared fields ---------------------------------------------------------------------------------

ENVELOPES = [
    "input", "stream", "stream_options", "client_metadata", "metadata", "previous_response_id",
    "generate", "stream_id", "background", "type", "access_programs",
]  # fmt: skip
COMPARED = [
    "model", "instructions", "tools", "tool_choice", "user", "store", "reasoning", "temperature",
    "prompt_cache_key", "include", "text", "parallel_tool_calls", "service_tier", "future_field",
]  # fmt: skip


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_envelope_is_not_compared(name):
    assert changed_fields(fields_of(**{name: 1}), fields_of(**{name: 2}), "strict") == []
    assert own_copy(fields_of(**{name: 1})) == {}


@pytest.mark.parametrize("name", COMPARED)
def test_every_other_field_is_compared_known_or_not(name):
    assert changed_fields(fields_of(**{name: "a"}), fields_of(**{name: "b"}), "strict") == [name]
    assert changed_fields(fields_of(**{name: "a"}), {}, "strict") == [name]
    assert changed_fields({}, fields_of(**{name: None}), "strict") == []
    assert own_copy(fields_of(**{name: "a"})) == fields_of(**{name: "a"})


def test_changed_tools_pass_only_under_the_relaxed_policy():
    one, two = fields_of(tools=["a"], model="m"), fields_of(tools=["b"], model="m")
    assert changed_fields(one, two, "strict") == ["tools"]
    assert changed_fields(one, two, "relaxed") == []
    assert changed_fields(one, {**two, **fields_of(model="n")}, "relaxed") == ["model"]


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (b'[{"a":1,"b":2}]', b'[ {"b":2, "a":1} ]', False),
        (b'[{"a":1},{"b":2}]', b'[{"b":2},{"a":1}]', True),
        (b"1", b"1.0", True), (b"1", b"true", True), (b"0", b"false", True), (b"0", b"null", True),
        (b'{"a":null}', b"{}", True), (b"[]", b"null", True), (b'""', b"null", True),
        (b'{"a":1,"a":2}', b'{"a":1, "a":2}', True),
        (b"[" * 3000 + b"]" * 3000, b"[" * 3000 + b" " + b"]" * 3000, True),
    ],
)  # fmt: skip
def test_fields_are_equal_as_json_values(before, now, changed):
    names = changed_fields({"tools": Raw(before)}, {"tools": Raw(now)}, "strict")
    assert names == (["tools"] if changed else [])


def test_no_depth_of_a_field_raises():
    for depth in range(100, 1100, 20):
        one, two = (b"[" * depth + middle + b"]" * depth for middle in (b"1", b"2"))
        assert changed_fields({"a": Raw(one)}, {"a": Raw(two)}, "strict") == ["a"]


def test_what_is_copied_does_not_keep_its_body_alive():
    fields = split(b'{"model":"m","input":[],"tools":[1]}').fields
    assert [raw.copy() is raw for raw in own_copy(fields).values()] == [True, True]


@pytest.mark.parametrize("odd", [b"[" * 3000 + b"]" * 3000, b'{"a":1,"a":2}'])
def test_what_cannot_be_read_is_the_same_where_its_bytes_are(odd):
    one, two = {"a": Raw(odd), "b": Raw(b"1")}, {"a": Raw(odd), "b": Raw(b"2")}
    assert changed_fields(one, two, "strict") == ["b"]


def test_of_the_cache_options_the_diagnostics_are_not_compared():
    def options(value):
        return fields_of(prompt_cache_options=value)

    noise = {"comparison_response_id": "r", "prewarm": True}
    assert changed_fields(options({"a": 1, **noise}), options({"a": 1}), "strict") == []
    assert changed_fields(options({"a": 1}), options({"a": 1, **noise}), "strict") == []
    assert changed_fields(options(noise), {}, "strict") == []
    assert changed_fields({}, options(noise), "strict") == []
    assert changed_fields(fields_of(other=noise), fields_of(other={}), "strict") == ["other"]
    assert changed_fields(options({"a": 1}), options({"a": 2, **noise}), "strict") != []
    assert changed_fields(options({"a": {"prewarm": 1}}), options({"a": {}}), "strict") != []
    assert changed_fields(options("a"), options("b"), "strict") != []


FIELDS = st.dictionaries(NAMES, JSON, max_size=4)


@given(FIELDS, FIELDS)
def test_changes_are_the_same_from_both_sides_and_sorted(one, two):
    a, b = fields_of(**one), fields_of(**two)
    names = changed_fields(a, b, "strict")
    assert names == changed_fields(b, a, "strict") == sorted(names)
    assert changed_fields(a, a, "strict") == []
