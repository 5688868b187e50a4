"""The receivers of the settings file: ``[alerts.receivers.NAME]``, read once at start.

What cannot be read is a ``SettingsError`` that names the table and the file, and says nothing of
what an address or a secret holds.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.alerts.config import FILE_ID
from app.alerts.endpoints import (
    ADDRESS_UNREADABLE,
    SECRET_UNREADABLE,
    Endpoint,
    Kind,
    UnreadableError,
    check_count,
    read,
    read_secrets,
    texts,
)
from app.alerts.guard import AddressRefusedError, Guard
from app.errors import SettingsError

_FIELDS = ("kind", "url", "secrets")


@dataclass(frozen=True, slots=True)
class FileReceiver:
    id: str
    name: str
    kind: Kind
    shown: str
    """Of the address at start."""
    place: str
    """The table and the file, for messages."""
    url: str = field(repr=False)
    """As it is written: itself, ``env:NAME`` or ``file:PATH``."""
    secrets: tuple[str, ...] = field(repr=False)

    def endpoint(self, guard: Guard, environ: Mapping[str, str]) -> Endpoint:
        """Read now: files may have changed since the start. Raises ``UnreadableError`` and
        ``AddressRefusedError``.
        """
        url = _or_unreadable(ADDRESS_UNREADABLE, self.place, read, self.url, "url", environ)
        secrets = _or_unreadable(SECRET_UNREADABLE, self.place, read_secrets, self.secrets, environ)
        return Endpoint(url, secrets, self.kind, guard.check_url(url).shown)


def _or_unreadable(outcome: str, place: str, reader: Any, *arguments: Any) -> Any:
    try:
        return reader(*arguments)
    except ValueError as error:
        raise UnreadableError(outcome, f"{place}: {error}.", "Restore it.") from None


def parse_file(
    tables: Mapping[str, Mapping[str, Any]],
    environ: Mapping[str, str],
    guard: Guard,
    place: str = "the settings file",
) -> tuple[FileReceiver, ...]:
    """``tables`` by name, as they are written. Nothing is looked up in the network: a name server
    that is down keeps nobody from starting. Raises ``SettingsError``.
    """
    return tuple(
        _receiver(name, table, environ, guard, f"[alerts.receivers.{name}] in {place}")
        for name, table in tables.items()
    )


def _receiver(
    name: str, table: Mapping[str, Any], environ: Mapping[str, str], guard: Guard, place: str
) -> FileReceiver:
    for key in table:
        if key not in _FIELDS:
            near = difflib.get_close_matches(key, _FIELDS, 1)
            raise SettingsError(
                f"There is no field {key[:64]} in {place}.",
                f"Did you mean {near[0]}?" if near else f"Fields are {', '.join(_FIELDS)}.",
            )
    try:
        kind = Kind(table.get("kind", Kind.WEBHOOK))
    except ValueError:
        raise SettingsError(f"kind in {place} must be one of {', '.join(Kind)}.") from None
    url = table.get("url")
    if not isinstance(url, str) or not url.strip():
        raise SettingsError(
            f"{place} has no url.",
            'Add it: "https://…", "env:NAME" (a variable) or "file:PATH" (a file).',
        )
    try:
        address = read(url.strip(), "url", environ)
    except ValueError as error:
        raise SettingsError(f"{place} cannot be used: {error}.", "Set it, then start.") from None
    try:
        written = texts(table.get("secrets", ()))
        check_count(kind, len(written))
        read_secrets(written, environ)
    except ValueError as error:
        raise SettingsError(f"{place} cannot be used: {error}.", _SECRETS) from None
    try:
        target = guard.check_url(address)
    except AddressRefusedError as error:
        raise SettingsError(f"url in {place}: {error.message}", error.hint) from None
    return FileReceiver(FILE_ID + name, name, kind, target.shown, place, url.strip(), written)


_SECRETS = (
    'Write secrets = ["env:NAME"]; a new secret is made with: '
    'echo "whsec_$(openssl rand -base64 32)"'
)
