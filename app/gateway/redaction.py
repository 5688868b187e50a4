"""Keeps credentials and content out of log lines, whichever library writes them.

The gateway's own lines hold neither. This guards against the others: a server's access log writes
whole addresses, and a WebSocket library at debug level writes whole frames.
"""

from __future__ import annotations

import logging
import re
from typing import Any

HIDDEN = "[hidden]"

_SECRETS = re.compile(
    r"(?P<scheme>\b(?:Bearer|Basic)\s+)[^\s\"',;]+"
    r"|\bsk-[A-Za-z0-9_-]{6,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){0,2}"
    r"|(?P<name>(?:authorization|api[-_]?key|token|secret|password|cookie)[\"']?\s*[:=]\s*)"
    r"(?:(?:Bearer|Basic)\s+)?(?:[\"'][^\"']*[\"']|[^\s\"',;&]+)",
    re.IGNORECASE,
)
_QUERY = re.compile(r"\?[^\s\"']*")
GUARDED = (
    "uvicorn.access",
    "uvicorn.error",
    "aiohttp.client",
    "aiohttp.server",
    "websockets",
    "websockets.client",
    "websockets.server",
)


def redact(text: str) -> str:
    """The text without credentials and without the query of any address."""
    return _SECRETS.sub(_replace, _QUERY.sub(f"?{HIDDEN}", text))


def _replace(match: re.Match[str]) -> str:
    return f"{match['scheme'] or match['name'] or ''}{HIDDEN}"


class RedactingFilter(logging.Filter):
    """Rewrites a record's message and text arguments; drops what a library says at debug level."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG:
            return False  # frames and headers as they are on the wire
        record.msg = _redacted(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(_redacted(argument) for argument in record.args)
        elif isinstance(record.args, dict):
            record.args = {name: _redacted(value) for name, value in record.args.items()}
        if record.exc_info:
            # An exception's text may quote a request. Its place is enough to find the fault.
            record.exc_info = None
            record.exc_text = None
            record.msg = f"{record.msg} (exception hidden)"
        return True


def _redacted(value: Any) -> Any:
    return redact(value) if isinstance(value, str) else value


def install() -> None:
    """Guard the loggers of the libraries that see requests. Calling it again changes nothing."""
    for name in GUARDED:
        logger = logging.getLogger(name)
        if not any(isinstance(known, RedactingFilter) for known in logger.filters):
            logger.addFilter(RedactingFilter())
