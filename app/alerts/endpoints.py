"""The address and the secrets of a receiver: how they are written, read and hidden.

Each is the text itself or says where it is: ``env:NAME`` (an environment variable) or, in the
settings file only, ``file:PATH``. None of them is in a message, an error or a ``repr``.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.errors import AppError
from app.settings import PREFIX

ENV, FILE = "env:", "file:"
SECRET_PREFIX = "whsec_"  # noqa: S105
LEAST_BYTES, MOST_BYTES = 24, 64
"""Of a secret (Standard Webhooks)."""
LONGEST_FILE = 4_096
_MARKS = ("://", SECRET_PREFIX)
"""What tells an address or a secret from a name."""
ADDRESS_UNREADABLE = "the address cannot be read"
SECRET_UNREADABLE = "the secret cannot be read"  # noqa: S105


class Kind(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"


SECRETS = {Kind.WEBHOOK: (1, 2), Kind.SLACK: (0, 0), Kind.ALERTMANAGER: (0, 2)}
"""The fewest and the most that are valid at a time."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What is needed to send. In memory only."""

    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    """Newest first; a message is signed with each."""
    kind: Kind
    shown: str
    """All of the URL that may be shown."""


class UnreadableError(AppError):
    """An address or a secret cannot be read. ``outcome`` says so in the words of an attempt."""

    def __init__(
        self, outcome: str, message: str, hint: str | None = None, code: str = "unreadable"
    ) -> None:
        super().__init__(code, message, hint, status=409)
        self.outcome = outcome


def shown_name(name: str) -> str:
    """What was given as a receiver's name, for a message: of an address or a secret that was
    written in its place only the beginning."""
    for mark in _MARKS:
        before, found, _ = name.partition(mark)
        if found:
            return f"{before}{found}…"[:100]
    return name[:100]


def may_be_name(text: str) -> bool:
    """Names stand on pages, in messages, in metrics and in the log."""
    return not any(mark in text for mark in _MARKS)


def read(written: str, what: str, environ: Mapping[str, str], *, files: bool = True) -> str:
    """The text that ``written`` is or names. Raises ``ValueError``: what is wrong, in words.

    ``what`` is ``url`` or ``secrets``. With ``files`` false ``file:`` is refused: whoever may see
    the page must not learn by it which files there are.
    """
    if written.startswith(ENV):
        return _variable(written.removeprefix(ENV), what, environ)
    if not written.startswith(FILE):
        return written
    if not files:
        raise ValueError(f"{what} must not name a file here; only the settings file may")
    return _file(written.removeprefix(FILE), what)


def _variable(name: str, what: str, environ: Mapping[str, str]) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
        raise ValueError(f"{what} has no name of a variable after env:")
    if name.upper().startswith(PREFIX):
        raise ValueError(
            f"{what} must not name a variable that begins with {PREFIX}: those are settings"
        )
    value = environ.get(name, "").strip()
    if not value:
        raise ValueError(f"{what} names the environment variable {name}, which is not set")
    return value


def _file(path: str, what: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as file:
            data = file.read(LONGEST_FILE)
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{what} names a file that cannot be read ({type(error).__name__})"
        ) from None
    text = _decoded(data)
    if text is None:
        raise ValueError(f"{what} names a file that cannot be read (it is no text)")
    if not text:
        raise ValueError(f"{what} names a file that is empty")
    return text


def _decoded(data: bytes) -> str | None:
    """None where it is no UTF-8: the codec's own error holds the data, and would stay behind
    whatever is raised while it is handled."""
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        return None


def check_secret(secret: str) -> str:
    """Raises ``ValueError``."""
    text = secret.removeprefix(SECRET_PREFIX)
    try:
        size = len(
            base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), None, True)
        )
    except (binascii.Error, ValueError):
        size = 0
    if not secret.startswith(SECRET_PREFIX) or not LEAST_BYTES <= size <= MOST_BYTES:
        raise ValueError(
            f"each secret must be {SECRET_PREFIX} and base64 of {LEAST_BYTES} to {MOST_BYTES} bytes"
        )
    return secret


def read_secrets(
    written: Sequence[str], environ: Mapping[str, str], *, files: bool = True
) -> tuple[str, ...]:
    """Raises ``ValueError``."""
    found = tuple(check_secret(read(one, "secrets", environ, files=files)) for one in written)
    if len(set(found)) < len(found):
        raise ValueError("the two secrets must differ")
    return found


def check_count(kind: Kind, count: int) -> None:
    """Raises ``ValueError``."""
    least, most = SECRETS[kind]
    if most == 0 and count:
        raise ValueError(f"a receiver of kind {kind} has no secrets: nothing it gets is signed")
    if not least <= count <= most:
        wanted = "one or two secrets" if least else "at most two secrets"
        raise ValueError(f"a receiver of kind {kind} has {wanted}")


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts as it was given. Raises ``ValueError``."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError("secrets must be a list of texts")
    return tuple(one.strip() for one in value)
