import pytest

from app.gateway.access import HostPolicy, check, host_of, is_loopback, same_origin

LOOPBACK = HostPolicy.for_bind("127.0.0.1")


def refusal(*pairs, token=None, websocket=False, hosts=LOOPBACK):
    return check(tuple(pairs), hosts=hosts, token=token, websocket=websocket)


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8787", "127.0.0.1:8787", "[::1]:8787", "LOCALHOST", "localhost."],
)
def test_loopback_names_are_always_ours(host):
    assert refusal(("host", host)) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.5",
        "",
        "a@localhost",
        "[::1",
        "localhost/x",
    ],
)
def test_any_other_host_is_refused_also_on_loopback(host):
    assert refusal(("host", host)).status == 403


def test_a_request_without_a_host_or_with_two_is_refused():
    assert refusal().status == 403
    assert refusal(("host", "localhost"), ("host", "localhost")).status == 403


def test_a_bind_address_and_the_settings_names_are_allowed():
    policy = HostPolicy.for_bind("10.0.0.5", ["Warm.Example", " "])
    assert all(policy.allows(h) for h in ("10.0.0.5:8787", "warm.example", "localhost"))
    assert not policy.allows("10.0.0.6")


@pytest.mark.parametrize("bind", ["0.0.0.0", "::"])
def test_bound_to_every_address_any_address_passes_but_no_foreign_name(bind):
    policy = HostPolicy.for_bind(bind)
    assert policy.allows("192.168.1.9:8787")
    assert policy.allows("[fe80::1]:8787")
    assert not policy.allows("evil.example")
    assert not policy.allows("0.0.0.0.evil.example")


@pytest.mark.parametrize(
    ("header", "host"),
    [("A.b:1", "a.b"), ("[::1]:80", "::1"), (None, None), ("a b", None), ("http://a", None)],
)
def test_the_host_is_read_without_port_and_brackets(header, host):
    assert host_of(header) == host


def test_a_web_page_of_another_origin_opens_no_socket():
    host = ("host", "localhost:8787")
    assert refusal(host, ("origin", "http://evil.example"), websocket=True).status == 403
    assert refusal(host, ("origin", "http://[bad"), websocket=True).status == 403
    assert refusal(host, ("origin", "null"), websocket=True).status == 403
    assert refusal(host, ("origin", "http://localhost:8787"), websocket=True) is None
    assert refusal(host, websocket=True) is None


def test_an_origin_is_the_same_with_host_and_port():
    assert same_origin("http://localhost:8787", "localhost:8787")
    assert not same_origin("http://localhost:9999", "localhost:8787")
    assert not same_origin("http://localhost", None)


HOST = ("host", "localhost")


def test_the_gateway_token_is_required_where_it_is_set():
    assert refusal(HOST, token="t").status == 401
    assert refusal(HOST, ("x-warmline-token", "wrong"), token="t").status == 401
    assert refusal(HOST, ("authorization", "Bearer t"), token="t").status == 401
    assert refusal(HOST, ("x-warmline-token", "t"), token="t") is None


def test_a_refusal_repeats_nothing_that_was_sent():
    for found in (
        refusal(("host", "canary.example")),
        refusal(HOST, ("x-warmline-token", "canary"), token="t"),
    ):
        assert b"canary" not in found.body


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("192.168.1.1", False),
        ("example.com", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host, expected):
    assert is_loopback(host) is expected
