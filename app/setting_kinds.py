"""What a setting may hold: how it is read from text, and what is accepted.

Each kind takes a value as TOML gives it; ``text`` makes such a value from an environment variable
or a flag. Both raise ``ValueError`` with what is wanted ("a whole number from 0 to 65535"), never
with what was given: that may be a secret.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    """As the documentation calls it."""
    check: Callable[[Any], Any]
    text: Callable[[str], Any] = str


def choice(*values: str) -> Kind:
    wanted = "one of " + ", ".join(values)

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in values:
            raise ValueError(wanted)
        return value

    return Kind("`" + "` or `".join(values) + "`", check)


def integer(least: int, most: int | None = None) -> Kind:
    bounds = f"of {least} or more" if most is None else f"from {least} to {most}"

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"a whole number {bounds}")
        if most is not None and value > most:
            raise ValueError(f"a whole number {bounds}")
        return value

    def text(value: str) -> int | str:
        return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value

    return Kind("whole number", check, text)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError("a number of 0 or more")
    return float(value)


def _number_text(value: str) -> float | str:
    return float(value) if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", value) else value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")  # noqa: TRY004  (one kind of error for all kinds)
    return value


def _flag_text(value: str) -> bool | str:
    return {"true": True, "false": False, "1": True, "0": False}.get(value.lower(), value)


def _words(value: Any) -> tuple[str, ...]:
    if (
        isinstance(value, str)
        or not isinstance(value, Sequence)
        or not all(isinstance(word, str) and word.strip() for word in value)
    ):
        raise ValueError("a list of words")
    return tuple(value)


def _keys(value: Any) -> tuple[str, ...]:
    if value == "off":
        return ()
    try:
        return _words(value)
    except ValueError:
        raise ValueError('"off" or a list of JSON keys') from None


def _words_text(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]


def _path(value: Any) -> Path:
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        raise ValueError("the path of a file")
    return Path(value).expanduser()


def _host(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9.:_\[\]-]+", value):
        raise ValueError("an address to listen on, e.g. 127.0.0.1")
    return value


def _hosts(value: Any) -> tuple[str, ...]:
    try:
        words = _words(value)
        for word in words:
            if not re.fullmatch(r"[A-Za-z0-9._-]+", word):
                ipaddress.ip_address(word.strip("[]"))
    except ValueError:
        raise ValueError("a list of host names without scheme and port") from None
    return words


def _base_url(value: Any) -> str:
    wanted = "a URL with http:// or https:// and without credentials, ? and #"
    if not isinstance(value, str) or not value.isascii() or re.search(r"\s", value):
        raise ValueError(wanted)
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in value or "?" in value or "#" in value:
        raise ValueError(wanted)
    return value.rstrip("/")


def _database(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        raise ValueError("a path, sqlite:///PATH or postgresql://USER@HOST/NAME")
    scheme, marked, _ = value.partition("://")
    if marked and scheme.partition("+")[0] not in ("sqlite", "postgresql"):
        raise ValueError("a path, sqlite:///PATH or postgresql://USER@HOST/NAME")
    return value


def _secret(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[!-~]{8,}", value):
        raise ValueError("at least 8 printable ASCII characters without blanks")
    return value


NUMBER = Kind("number", _number, _number_text)
FLAG = Kind("true or false", _flag, _flag_text)
WORDS = Kind("list of words", _words, _words_text)
KEYS = Kind(
    "`off` or list of JSON keys", _keys, lambda text: text if text == "off" else _words_text(text)
)
FILE = Kind("path", _path)
HOST = Kind("address", _host)
HOSTS = Kind("list of host names", _hosts, _words_text)
BASE_URL = Kind("URL", _base_url)
DATABASE = Kind("path or URL", _database)
SECRET = Kind("secret", _secret)
