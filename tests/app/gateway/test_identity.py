import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.gateway.identity import (
    Fields,
    client_of,
    fields_of,
    identify,
    likely_session,
    peek,
    spelt_one_way,
    tenant_of,
)
from app.keys import Keys
from engine.request import split

KEYS = Keys(b"k" * 32)


def who(*headers, of_this_request=True, **fields):
    body = json.dumps(fields).encode()
    return identify(KEYS, tuple(headers), peek(body), headers_are_of_this_request=of_this_request)


# --- tenant ------------------------------------------------------------------------------------


def test_the_tenant_is_a_keyed_hash_of_the_credential():
    tenant = who(("authorization", "Bearer sk-canary")).tenant
    assert tenant == KEYS.hmac("tenant", "Bearer sk-canary")
    assert "canary" not in tenant
    assert tenant != who(("authorization", "Bearer sk-other")).tenant


def test_an_api_key_header_is_a_credential_too():
    assert who(("api-key", "k")).tenant == KEYS.hmac("tenant", "k")


def test_requests_without_a_credential_are_one_tenant_of_their_own():
    assert who().tenant == who(("authorization", "  ")).tenant == KEYS.hmac("tenant")
    assert who().tenant != who(("authorization", "x")).tenant


@settings(deadline=None)
@given(first=st.text(max_size=9), second=st.text(max_size=9))
def test_two_credentials_are_never_one(first, second):
    one = tenant_of(KEYS, (("authorization", f"a{first}"), ("api-key", f"b{second}")))
    other = tenant_of(KEYS, (("authorization", f"a{first}b{second}"),))
    assert one != other


def test_a_credential_in_the_query_parts_tenants_where_no_header_has_one():
    one, other = (tenant_of(KEYS, (), query) for query in ("key=1", "key=2"))
    assert len({one, other, tenant_of(KEYS, ())}) == 3
    header = (("authorization", "x"),)
    assert tenant_of(KEYS, header, "api-version=1") == tenant_of(KEYS, header)


# --- session -----------------------------------------------------------------------------------

ORDER = [
    ("header", "x-warmline-session"),
    ("header", "thread-id"),
    ("metadata", "thread_id"),
    ("header", "session-id"),
    ("header", "x-session-id"),
    ("metadata", "session_id"),
    ("field", "prompt_cache_key"),
]


@settings(deadline=None)
@given(present=st.sets(st.integers(0, len(ORDER) - 1)), data=st.data())
def test_the_first_name_in_the_order_of_the_design_is_the_session(present, data):
    headers, metadata, fields = [], {}, {}
    for index in present:
        place, name = ORDER[index]
        spelling = data.draw(st.sampled_from([name, name.replace("-", "_")]))
        if place == "header":
            headers.append((spelling, f"value-{index}"))
        elif place == "metadata":
            metadata[spelling] = f"value-{index}"
        else:
            fields[name] = f"value-{index}"
    found = who(*headers, client_metadata=metadata, **fields)
    assert found.session == (f"value-{min(present)}" if present else None)


@pytest.mark.parametrize("name", ["x-warmline-session", "thread-id", "session-id", "x-session-id"])
@pytest.mark.parametrize("reverse", [False, True])
def test_of_two_spellings_the_hyphens_value_wins_whatever_the_order(name, reverse):
    pairs = [(name, "new"), (name.replace("-", "_"), "old")]
    assert who(*(reversed(pairs) if reverse else pairs)).session == "new"


def test_a_spelling_alone_is_recognised():
    assert who(("session_id", "s")).session == who(("session-id", "s")).session == "s"


def test_a_sub_agent_is_a_session_of_its_own_under_its_parents_root():
    """Codex: same session id and cache key, another thread id."""
    common = {"prompt_cache_key": "root"}
    parent = who(("session-id", "root"), ("thread-id", "root"), **common)
    child = who(("session-id", "root"), ("thread-id", "child"), **common)
    assert (parent.session, child.session) == ("root", "child")
    assert parent.root_session == child.root_session == "root"


def test_the_root_session_may_stand_in_the_metadata():
    found = who(client_metadata={"session_id": "root", "thread_id": "child"})
    assert (found.session, found.root_session) == ("child", "root")
    assert who(prompt_cache_key="k").root_session is None


@pytest.mark.parametrize("value", ["", "   ", None, 7, ["x"], {"a": 1}, "x" * 5_000])
def test_what_is_no_name_is_skipped(value):
    assert who(prompt_cache_key=value).session is None
    assert who(client_metadata={"thread_id": value}, prompt_cache_key="k").session == "k"


@pytest.mark.parametrize("metadata", [None, "x", 7, ["thread_id"]])
def test_client_metadata_of_another_shape_is_no_metadata(metadata):
    assert who(client_metadata=metadata, prompt_cache_key="k").session == "k"


# --- turn --------------------------------------------------------------------------------------


def turn_metadata(**values):
    return ("x-codex-turn-metadata", json.dumps(values))


def test_the_turn_group_is_the_clients_own_turn_id():
    assert who(client_metadata={"turn_id": "t1"}).turn_group == "t1"
    assert who(turn_metadata(turn_id="t2")).turn_group == "t2"
    assert who(turn_metadata(turn_id="t2"), client_metadata={"turn_id": "t1"}).turn_group == "t1"
    assert who(turn_metadata(turn_id="")).turn_group is None


def test_each_frame_of_a_socket_says_its_own_turn_and_the_upgrade_says_none():
    upgrade = turn_metadata(turn_id="", request_kind="compaction")
    frame = {"turn_id": "t2", "x-codex-turn-metadata": json.dumps({"request_kind": "turn"})}
    found = who(upgrade, of_this_request=False, client_metadata=frame)
    assert (found.turn_group, found.compaction) == ("t2", False)
    assert not who(upgrade, of_this_request=False).compaction


def test_a_compaction_is_told_by_its_request_kind():
    assert who(turn_metadata(request_kind="compaction")).compaction
    metadata = {"x-codex-turn-metadata": json.dumps({"request_kind": "compaction"})}
    assert who(client_metadata=metadata).compaction
    assert not who(turn_metadata(request_kind="turn")).compaction


@pytest.mark.parametrize("text", ["no json", "[]", "7", "[" * 100_000])
def test_unreadable_turn_metadata_is_none(text):
    found = who(("x-codex-turn-metadata", text))
    assert (found.turn_group, found.compaction) == (None, False)


def test_an_epoch_reset_carries_the_callers_word():
    assert who(("x-warmline-epoch-reset", "summarize")).epoch_reset == "summarize"
    assert who().epoch_reset is None
    assert (
        who(("x-warmline-epoch-reset", "a b\tc" + "x" * 99)).epoch_reset
        == ("a_b_c" + "x" * 99)[:64]
    )


# --- client ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user_agent", "originator", "client", "version"),
    [
        (
            "codex_exec/0.171.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.171.0)",
            "codex_exec",
            "codex_exec",
            "0.171.0",
        ),
        ("OpenAI/Python 3.57.0", None, "OpenAI/Python", "3.57.0"),
        ("AsyncOpenAI/Python 3.57.0", None, "AsyncOpenAI/Python", "3.57.0"),
        ("Agents/Python 0.24.0", None, "Agents/Python", "0.24.0"),
        ("pi/1.6.0 (linux; node/v24.19.0; x64)", "pi", "pi", "1.6.0"),
        (
            "opencode/1.18.33 (linux 6; x64) ai-sdk/provider-utils/4.0.40 runtime/bun/1.3.14",
            "opencode",
            "opencode",
            "1.18.33",
        ),
        ("curl/8.1.2", None, "curl", "8.1.2"),
        ("tool/v2", None, "tool", "2"),
        ("OpenAI/Python 3.57.0", "my agent", "my agent", None),
        (None, "my agent", "my agent", None),
        ("Mozilla (nothing)", None, None, None),
        (None, None, None, None),
        ("", "<img src=x>", None, None),
    ],
)
def test_client_and_version_are_read_of_user_agent_and_originator(
    user_agent, originator, client, version
):
    assert client_of(user_agent, originator) == (client, version)


# --- envelope ----------------------------------------------------------------------------------


def test_the_envelope_is_read_wherever_its_fields_stand():
    body = b'{"input":[1,2],"stream":true,"type":"response.create","stream_id":null}'
    found = peek(body)
    assert (found.stream, found.type, found.stream_id) == (True, "response.create", True)
    assert peek(b"{}") == Fields()


@pytest.mark.parametrize("value", [b"false", b"null", b'"true"', b"1"])
def test_only_true_asks_for_a_stream(value):
    assert not peek(b'{"stream":' + value + b"}").stream


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b'"x"', b"7", b'{"a":1} x', b"\xff\xfe"])
def test_what_is_no_json_object_is_told(body):
    assert peek(body) == Fields(is_object=False)


@pytest.mark.parametrize("escape", [b"\\ud83d", b"\\uDC00", b"\\ud83d x"])
def test_a_lone_surrogate_in_the_input_hides_nothing_of_the_envelope(escape):
    body = b'{"input":"' + escape + b'","stream":true,"prompt_cache_key":"k"}'
    found = peek(body)
    assert (found.stream, found.prompt_cache_key, found.is_object) == (True, "k", True)


def test_a_number_that_only_python_reads_is_read_slowly():
    found = peek(b'{"temperature":NaN,"stream":true,"type":"t","prompt_cache_key":"k"}')
    assert (found.stream, found.type, found.prompt_cache_key) == (True, "t", "k")


def test_a_large_body_that_cannot_be_read_fast_is_not_read_slowly():
    body = b'{"stream":true,"x":NaN,"input":"' + b"x" * 1_000_001 + b'"}'
    assert peek(body) == Fields()


def test_nesting_beyond_reading_is_an_object_of_which_nothing_is_known():
    body = b'{"stream":true,"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    assert peek(body).is_object


@settings(deadline=None)
@given(body=st.binary(max_size=60))
def test_no_body_raises(body):
    identify(KEYS, (), peek(body))
    identify(KEYS, (), peek(b'{"client_metadata":' + body + b"}"))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"type": "response.create", "stream": True, "prompt_cache_key": "k"},
        {"stream": "true", "stream_id": None, "client_metadata": {"turn_id": "t"}, "x": [1]},
        {"type": 7, "prompt_cache_key": ["k"], "client_metadata": "none"},
    ],
)
def test_the_parts_of_a_body_tell_the_same_as_a_look_at_it(fields):
    body = json.dumps({**fields, "input": []}).encode()
    assert fields_of(split(body).fields) == peek(body)


def test_parts_that_cannot_be_read_tell_nothing():
    assert fields_of({"client_metadata": msgspec.Raw(b'"\\ud800"')}) is None


@pytest.mark.parametrize(
    ("headers", "body", "session"),
    [
        ([("thread_id", "t"), ("session-id", "s")], b"{}", "t"),
        ([("session-id", "s")], b'{"prompt_cache_key":"k"}', "s"),
        ([], b'{"prompt_cache_key": "k", "input":["' + b"x" * 9_000 + b'"]}', "k"),
        ([], b'{"input":["' + b"x" * 9_000 + b'"],"prompt_cache_key":"k"}', "k"),
        ([], b'{"prompt_cache_key":"a","input":[],"prompt_cache_key":"b"}', "b"),
        ([], b'{"prompt_cache_key":"a\\"b"}', None),
        ([], b"\xff", None),
    ],
)
def test_the_likely_session_is_found_without_reading_a_body(headers, body, session):
    assert likely_session(spelt_one_way(tuple(headers)), body) == session
