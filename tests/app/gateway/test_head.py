"""What is said of a request's head; what each part means is in the tests of the parts."""

import pytest

from app.gateway.head import head_of, length_of
from app.http_connection import MEMORY
from app.keys import Keys

KEYS = Keys(b"k" * 32)
OWN = [(b"authorization", b"Bearer sk-a"), (b"thread_id", b"t"), (b"host", b"h")]


def scope(*, memory=None, headers=OWN, length=b"7", **other):
    made = {
        "path": "/v1/responses",
        "raw_path": b"/v1/responses",
        "query_string": b"",
        "headers": [*headers, (b"content-length", length)],
        **other,
    }
    return made if memory is None else made | {"extensions": {MEMORY: memory}}


def test_the_length_of_the_body_is_no_part_of_the_head():
    head = head_of(scope())
    assert head.headers == (("authorization", "Bearer sk-a"), ("thread_id", "t"), ("host", "h"))
    assert length_of(scope()) == (("content-length", "7"),)
    assert head.forwarded == (("authorization", "Bearer sk-a"), ("thread_id", "t"))
    assert head.by_name["thread-id"] == "t"
    assert head.encodings == ()
    packed = head_of(scope(headers=[*OWN, (b"Content-Encoding", b"gzip")]))
    assert packed.encodings == (("content-encoding", "gzip"),)


def test_a_connection_remembers_the_head_that_it_has_seen_last():
    memory = {}
    first = head_of(scope(memory=memory))
    assert head_of(scope(memory=memory, length=b"8")) is first


@pytest.mark.parametrize(
    "other",
    [
        {"headers": [(b"authorization", b"Bearer sk-b"), *OWN[1:]]},
        {"headers": OWN[:2]},
        {"headers": OWN[::-1]},
        {"raw_path": b"/codex/responses"},
        {"query_string": b"key=1"},
    ],
)
def test_another_head_is_read_anew(other):
    memory = {}
    first = head_of(scope(memory=memory))
    tenant = first.tenant(KEYS)
    second = head_of(scope(memory=memory, **other))
    assert second is not first
    assert (second.tenant(KEYS) == tenant) == ("sk-a" in str(second.headers))
    assert head_of(scope(memory=memory)) is not first


def test_without_a_memory_each_head_is_read():
    assert head_of(scope()) is not head_of(scope())


def test_a_credential_in_the_query_tells_tenants_apart():
    one, other = (
        head_of(scope(headers=[], query_string=query)).tenant(KEYS) for query in (b"k=1", b"k=2")
    )
    assert one != other


def test_the_path_is_that_of_the_request_line():
    assert head_of(scope(raw_path=b"/v1/a%2Fb")).path == "/v1/a%2Fb"
    assert head_of(scope(raw_path=None)).path == "/v1/responses"
