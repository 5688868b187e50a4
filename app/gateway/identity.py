"""Who sends a request: tenant, session, turn and client (DESIGN 4.2). Pure.

Only the few top-level fields that are needed are decoded; the input is skipped, never decoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from app.gateway.headers import SPELT_BOTH_WAYS, Headers
from app.keys import Keys

_MAX_NAME = 4096
"""A longer session name is no name: it is content in the wrong place."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What is read of a request's body. Empty where the body cannot be read."""

    type: Any = None
    stream_id: bool = False
    """Whether the frame names a lane, by whatever value."""
    stream: bool = False
    prompt_cache_key: str | None = None
    client_metadata: Mapping[str, Any] = field(default_factory=dict)
    is_object: bool = True
    """False where the body is not a JSON object at all."""


@dataclass(frozen=True, slots=True)
class Identity:
    tenant: str
    session: str | None
    """As the client names it; None when it names none."""
    root_session: str | None
    turn_group: str | None
    client: str | None
    client_version: str | None
    compaction: bool
    epoch_reset: str | None


class _Envelope(msgspec.Struct):
    type: msgspec.Raw = msgspec.Raw(b"null")
    stream_id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    stream: msgspec.Raw = msgspec.Raw(b"null")
    prompt_cache_key: msgspec.Raw = msgspec.Raw(b"null")
    client_metadata: msgspec.Raw = msgspec.Raw(b"null")


_envelope = msgspec.json.Decoder(_Envelope)
_NULL = msgspec.Raw(b"null")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_MAX_SLOW = 1_000_000


def peek(body: bytes) -> Fields:
    """Read the envelope of a body or frame. Never raises: what cannot be read is absent."""
    try:
        found = _envelope.decode(body)
        return Fields(
            type=_value(found.type),
            stream_id=found.stream_id is not msgspec.UNSET,
            stream=_value(found.stream) is True,
            prompt_cache_key=_string(_value(found.prompt_cache_key)),
            client_metadata=_mapping(_value(found.client_metadata)),
        )
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _peek_slowly(body)


def fields_of(parts: Mapping[str, msgspec.Raw]) -> Fields | None:
    """The envelope of a body that is in its parts; None where one of them cannot be read."""
    try:
        return Fields(
            type=_value(parts.get("type", _NULL)),
            stream_id="stream_id" in parts,
            stream=_value(parts.get("stream", _NULL)) is True,
            prompt_cache_key=_string(_value(parts.get("prompt_cache_key", _NULL))),
            client_metadata=_mapping(_value(parts.get("client_metadata", _NULL))),
        )
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _peek_slowly(body: bytes) -> Fields:
    """For bodies that Python's reader takes and the fast one does not, e.g. lone surrogates."""
    if _SURROGATE.search(body):
        return peek(_SURROGATE.sub(rb"\\u0020", body))  # in this copy only, which nobody keeps
    if len(body) > _MAX_SLOW:
        return Fields()  # the slow reader would hold up every other stream
    try:
        value = json.loads(body.decode())
    except RecursionError:
        return Fields()  # nested too deeply to be read here; the engine passes it on as it is
    except ValueError:
        return Fields(is_object=False)
    if not isinstance(value, dict):
        return Fields(is_object=False)
    return Fields(
        type=value.get("type"),
        stream_id="stream_id" in value,
        stream=value.get("stream") is True,
        prompt_cache_key=_string(value.get("prompt_cache_key")),
        client_metadata=_mapping(value.get("client_metadata")),
    )


def identify(
    keys: Keys,
    headers: Headers,
    fields: Fields,
    query: str = "",
    *,
    headers_are_of_this_request: bool = True,
    tenant: str | None = None,
    by_name: Mapping[str, str] | None = None,
) -> Identity:
    """Tell who sends this request. ``by_name``: the headers, where they are at hand in this form.

    On a WebSocket the headers are those of the upgrade: they name the session, but what they say
    of a turn holds for none of its frames (``headers_are_of_this_request`` False).
    """
    by_name = spelt_one_way(headers) if by_name is None else by_name
    metadata = fields.client_metadata
    turn = _json_object(_get(metadata, "x-codex-turn-metadata"))
    if not turn and headers_are_of_this_request:
        turn = _json_object(by_name.get("x-codex-turn-metadata"))
    session_id = by_name.get("session-id") or by_name.get("x-session-id")
    body_session_id = _name(_get(metadata, "session_id"))
    session = (
        _name(by_name.get("x-warmline-session"))
        or _name(by_name.get("thread-id"))
        or _name(_get(metadata, "thread_id"))
        or _name(session_id)
        or body_session_id
        or _name(fields.prompt_cache_key)
    )
    client, version = client_of(by_name.get("user-agent"), by_name.get("originator"))
    return Identity(
        tenant=tenant or tenant_of(keys, headers, query),
        session=session,
        root_session=_name(session_id) or body_session_id,
        turn_group=_name(_get(metadata, "turn_id")) or _name(turn.get("turn_id")),
        client=client,
        client_version=version,
        compaction=turn.get("request_kind") == "compaction",
        epoch_reset=_word(by_name.get("x-warmline-epoch-reset")),
    )


_CACHE_KEY = re.compile(rb'"prompt_cache_key": ?"([^"\\]{1,200})"')
_LOOKED_AT = 4096
"""Bytes at either end of a body."""


def likely_session(by_name: Mapping[str, str], body: bytes) -> str | None:
    """The session that a body is probably of, told without reading it.

    It serves to find what the body may repeat, and never to tell whose it is.
    """
    for header in ("x-warmline-session", "thread-id", "session-id", "x-session-id"):
        if name := _name(by_name.get(header)):
            return name
    found = _CACHE_KEY.findall(body[-_LOOKED_AT:]) or _CACHE_KEY.findall(body[:_LOOKED_AT])
    return found[-1].decode(errors="replace") if found else None


def tenant_of(keys: Keys, headers: Headers, query: str = "") -> str:
    """The keyed hash of the credential; requests without one are a tenant of their own.

    A request without a credential header may have it in its query: two such queries are never one
    tenant.
    """
    credentials = [
        value.strip()
        for wanted in ("authorization", "api-key")
        for name, value in headers
        if name == wanted and value.strip()
    ]
    if not credentials and query:
        return keys.hmac("tenant-by-query", query)
    return keys.hmac("tenant", *credentials)


def spelt_one_way(headers: Headers) -> dict[str, str]:
    """Headers by name, hyphens for underscores; the hyphen's spelling and the first value win."""
    found: dict[str, str] = {}
    respelt: dict[str, str] = {}
    for name, value in headers:
        if value := value.strip():
            hyphens = name.replace("_", "-")
            if name == hyphens:
                found.setdefault(name, value)
            elif hyphens in SPELT_BOTH_WAYS or hyphens.startswith("x-codex-"):
                respelt.setdefault(hyphens, value)
    return respelt | found


def _get(mapping: Mapping[str, Any], name: str) -> str | None:
    """A string of ``client_metadata``, in either spelling of its name."""
    if not mapping:
        return None
    for spelling in (name.replace("_", "-"), name.replace("-", "_"), name):
        value = mapping.get(spelling)
        if isinstance(value, str) and value.strip():
            return value.strip()
    return None


def _name(value: Any) -> str | None:
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_NAME:
        return None
    return value.strip()


def _word(value: str | None) -> str | None:
    """A caller's own word for an epoch reset: short, and fit for a column."""
    if value is None:
        return None
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", value)[:64]


def _value(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _json_object(text: str | None) -> Mapping[str, Any]:
    if text is None:
        return {}
    try:
        return _mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}


# ``name/1.2``, ``Name/Python 1.2`` or ``name 1.2``: a product with its version.
_PRODUCT = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9._-]*(?:/[A-Za-z][A-Za-z0-9._-]*)?)[ /]v?(?P<version>\d[\w.+-]*)"
)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]*")
_MAX_CLIENT = 64


@lru_cache(maxsize=64)
def client_of(user_agent: str | None, originator: str | None) -> tuple[str | None, str | None]:
    """The client's name and version: of the user agent, or the name that it declares itself."""
    product = _PRODUCT.match(user_agent or "")
    name = product["name"][:_MAX_CLIENT] if product else None
    version = product["version"][:_MAX_CLIENT] if product else None
    declared = (originator or "").strip()[:_MAX_CLIENT]
    if _PLAIN.fullmatch(declared) and declared != name:
        # A version belongs to the product that it stands with.
        return declared, version if name is None else None
    return name, version
