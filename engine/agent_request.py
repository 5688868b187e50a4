"""What an agent hands over, made into what the engine sends: body, headers, turn group.

Pure. The session's identity is one name in three places, stable for its life: the provider routes
by it to the machine that holds the prompt cache (LINGTAI 1b, DESIGN 9). It never identifies itself
as anyone else's client.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Raw

MAX_IDENTITY = 64
"""Characters of a name: it is a header, and the provider bounds ``prompt_cache_key``."""

# Set by the session, or of no meaning in it; a request that has one means something else.
_OWN = {
    "input": "the input is handed to send() and record()",
    "previous_response_id": "the session decides what is continued",
    "conversation": "the agent's own history is the conversation",
    "background": "an embedded turn is read while it runs",
    "generate": "an embedded turn generates",
    "stream_id": "an embedded session has one conversation",
    "type": "the session makes the frame",
}
_FIXED = {"store": False, "stream": True}
_IDENTITY_HEADERS = ("session-id", "thread-id")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the agent is: ``name`` of its conversation, and the honest name of its software."""

    name: str
    client: str
    client_version: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More headers of the agent's own; they replace originator and user agent."""

    def __post_init__(self) -> None:
        _check_text("identity", self.name)
        _check_text("client", self.client)
        if len(self.name) > MAX_IDENTITY:
            raise ValueError(f"identity has {len(self.name)} characters, of at most {MAX_IDENTITY}")
        for name in self.headers:
            if name.lower().replace("_", "-") in _IDENTITY_HEADERS:
                raise ValueError(f"the header {name} is the session's identity: leave it out")

    def header_list(self, api_key: str | None) -> tuple[tuple[str, str], ...]:
        """All headers of a request, with lower-case names."""
        version = f"/{self.client_version}" if self.client_version else ""
        headers = {
            "originator": self.client,
            "user-agent": f"{self.client}{version}",
            "accept": "text/event-stream",
        }
        if api_key is not None:
            headers["authorization"] = f"Bearer {api_key}"
        headers.update({name.lower(): value for name, value in self.headers.items()})
        headers.update(dict.fromkeys(_IDENTITY_HEADERS, self.name))
        return tuple(headers.items())


_CREDENTIALS = frozenset({"authorization", "api-key", "chatgpt-account-id"})


def credentials(headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What of the headers names an account: nothing of one account is used with another."""
    return tuple(f"{name}: {value}" for name, value in sorted(headers) if name in _CREDENTIALS)


def _check_text(what: str, value: str) -> None:
    if not value or not value.isascii() or not value.isprintable() or value != value.strip():
        raise ValueError(f"{what} must be printable ASCII, without spaces around it")


_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ESCAPED = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def encode(value: object) -> Raw:
    """A JSON value as it is sent: compact, and the same bytes for the same value.

    Raises ``TypeError`` or ``ValueError`` for what is no JSON.
    """
    try:
        return Raw(_PLAIN.encode(value).encode())
    except UnicodeEncodeError:  # a lone surrogate can only be sent as its escape
        return Raw(_ESCAPED.encode(value).encode())


def fields_of(request: Mapping[str, object], identity: str) -> dict[str, Raw]:
    """All fields but the input. Raises ``ValueError`` for one that contradicts the session."""
    fixed = {**_FIXED, "prompt_cache_key": identity}
    for name, value in request.items():
        if name in _OWN and value is not None:
            raise ValueError(f"a request of an embedded session has no {name}: {_OWN[name]}")
        if name in fixed and value is not None and value != fixed[name]:
            raise ValueError(f"{name} is {json.dumps(fixed[name])} in an embedded session")
    kept = {name: value for name, value in request.items() if name not in _OWN}
    return {name: encode(value) for name, value in {**kept, **fixed}.items()}


def body_of(fields: Mapping[str, Raw], input_items: Sequence[Raw]) -> bytes:
    """The request's body: its fields, then the input."""
    parts = [bytes(encode(name)) + b":" + bytes(raw) for name, raw in fields.items()]
    parts.append(b'"input":[' + b",".join(map(bytes, input_items)) + b"]")
    return b"{" + b",".join(parts) + b"}"


def checked(items: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """The items as a list. Raises ``TypeError`` where one is no mapping."""
    given = list(items)
    for item in given:
        if not isinstance(item, Mapping):
            raise TypeError(f"an input item is a mapping, not {type(item).__name__}")
    return given


def last_user_message(items: Sequence[Mapping[str, object]]) -> tuple[int, bytes]:
    """Which user message is the last, and its text: a new one begins a new turn of the user."""
    said = [
        item
        for item in items
        if item.get("role") == "user" and item.get("type") in (None, "message")
    ]
    return (len(said), bytes(encode(said[-1]))) if said else (0, b"")
