import pytest

from app.gateway import headers


def forwarded(*pairs, body_is_read=True):
    return headers.forwarded(tuple(pairs), body_is_read=body_is_read)


def test_credentials_and_unknown_headers_pass_untouched():
    pairs = (
        ("authorization", "Bearer sk-1"),
        ("api-key", "k"),
        ("chatgpt-account-id", "a"),
        ("x-codex-turn-state", "token"),
        ("openai-beta", "responses_websockets=2026-02-06"),
        ("x-unheard-of", "1"),
    )
    assert forwarded(*pairs) == pairs


@pytest.mark.parametrize(
    "name",
    [
        "connection",
        "keep-alive",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "proxy-authorization",
        "host",
        "content-length",
        "expect",
        "x-warmline-token",
        "x-warmline-session",
        "x_warmline_token",
        "sec-websocket-key",
        "sec-websocket-extensions",
    ],
)
def test_what_belongs_to_this_hop_or_to_warmline_is_not_forwarded(name):
    assert forwarded((name, "x"), ("accept", "*/*")) == (("accept", "*/*"),)


def test_headers_that_connection_names_belong_to_the_hop():
    pairs = (("connection", "close, X-Hop"), ("x-hop", "1"), ("x-end", "2"))
    assert forwarded(*pairs) == (("x-end", "2"),)


def test_encodings_are_the_gateways_own_affair_only_where_it_reads_the_body():
    pairs = (("content-encoding", "zstd"), ("accept-encoding", "gzip"))
    assert forwarded(*pairs) == ()
    assert forwarded(*pairs, body_is_read=False) == pairs


@pytest.mark.parametrize("name", ["session-id", "thread-id", "x-session-id"])
def test_a_header_in_both_spellings_is_forwarded_once_with_the_hyphens_value(name):
    underscores = name.replace("-", "_")
    assert forwarded((underscores, "old"), (name, "new")) == ((name, "new"),)
    assert forwarded((underscores, "old")) == ((underscores, "old"),)


def test_the_dashboards_cookie_is_kept_from_the_upstream():
    assert forwarded(("cookie", "a=1; warmline_session=secret; b=2")) == (("cookie", "a=1; b=2"),)
    assert forwarded(("cookie", "warmline_session=secret")) == ()


def test_names_are_read_in_lower_case_and_values_in_utf8_or_latin1():
    raw = [(b"X-Name", "é".encode()), (b"X-Other", "é".encode("latin-1"))]
    assert headers.decode(raw) == (("x-name", "é"), ("x-other", "é"))


def test_the_upstreams_headers_return_but_for_hop_by_hop_ones_and_lengths():
    given = [
        ("Content-Type", "application/json"),
        ("Retry-After", "9"),
        ("x-codex-turn-state", "t"),
        ("x-request-id", "r"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "12"),
        ("Connection", "keep-alive, X-Hop"),
        ("X-Hop", "1"),
        ("Alt-Svc", 'h3=":443"'),
        ("Date", "Mon, 30 Nov 2026 04:00:00 GMT"),
        ("X-Warmline-Mode", "from an upstream that is a Warmline too"),
    ]
    kept = (
        ("content-type", "application/json"),
        ("retry-after", "9"),
        ("x-codex-turn-state", "t"),
        ("x-request-id", "r"),
    )
    assert headers.returned(given) == kept
    assert ("content-length", "12") in headers.returned(given, keep_length=True)


def test_the_first_value_that_says_something_counts():
    assert headers.first((("a", " "), ("a", " 2 "), ("a", "3")), "a") == "2"
    assert headers.first((("a", ""),), "a") is None


def test_encoding_restores_utf8():
    assert headers.encode([("x-name", "é")]) == [(b"x-name", "é".encode())]
