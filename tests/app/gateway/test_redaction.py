import logging

import pytest

from app.gateway.redaction import GUARDED, RedactingFilter, install, redact


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer canary-1234567",
        "GET /v1/models?token=canary&x=1 HTTP/1.1",
        "sk-canary-1234567 was refused",
        'headers {"api-key": "canary value"}',
        "Cookie: warmline_session=canary",
        "password=canary",
        "eyJcanary12345.abc.def",
        "Basic canary==",
    ],
)
def test_credentials_and_queries_are_hidden(text):
    assert "canary" not in redact(text)


def test_the_rest_of_a_line_is_kept():
    line = '127.0.0.1 - "POST /v1/responses HTTP/1.1" 200'
    assert redact(line) == line


def emitted(level, message, *args, exc_info=None):
    record = logging.LogRecord("uvicorn.error", level, "f", 1, message, args, exc_info)
    return RedactingFilter().filter(record), record


def test_arguments_are_redacted_too():
    passed, record = emitted(logging.INFO, '%s - "WebSocket %s" %d', "c", "/v1/x?token=canary", 101)
    assert passed
    assert record.getMessage() == 'c - "WebSocket /v1/x?[hidden]" 101'
    _, record = emitted(logging.INFO, "%(key)s", {"key": "sk-canary-1234567"})
    assert "canary" not in record.getMessage()


def test_debug_lines_of_libraries_are_dropped():
    assert not emitted(logging.DEBUG, "< TEXT 'canary'")[0]


def test_an_exceptions_text_is_hidden():
    error = ValueError("canary")
    _, record = emitted(logging.ERROR, "failed", exc_info=(ValueError, error, None))
    assert "canary" not in logging.Formatter().format(record)


def guards():
    return [
        [f for f in logging.getLogger(name).filters if isinstance(f, RedactingFilter)]
        for name in GUARDED
    ]


def test_installing_twice_guards_once():
    install()
    install()
    assert [len(found) for found in guards()] == [1] * len(GUARDED)
