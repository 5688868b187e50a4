"""Which of a client's headers open an upstream connection, and which travel in its frames.

A connection outlives the request that opened it. What names the client (credential, organization,
session) belongs to the handshake and to the connection's identity; what changes with every turn has
to travel in each frame, or all later turns would be attributed to the first one (CASES 57).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import NamedTuple

import msgspec

from engine import digests
from engine.request import Request

_IDENTITY = frozenset(
    {
        "authorization",
        "api-key",
        "chatgpt-account-id",
        "openai-organization",
        "openai-project",
        "openai-beta",
        "originator",
        "user-agent",
        "session-id",
        "thread-id",
        "version",
        "x-codex-beta-features",
        "x-codex-parent-thread-id",
        "x-openai-subagent",
        "x-oai-attestation",
        "x-codex-routing-hint",
    }
)
_ACCOUNT = frozenset({"chatgpt-account-id", "openai-organization", "openai-project"})
_SPELLINGS = {"session_id": "session-id", "thread_id": "thread-id"}

# Codex's per-turn headers, and the names under which Codex itself sends them in a frame.
_PER_TURN = {
    "x-codex-turn-metadata": "x-codex-turn-metadata",
    "x-codex-turn-state": "x-codex-turn-state",
    "x-codex-window-id": "x-codex-window-id",
    "x-client-request-id": "x-client-request-id",
    "x-openai-internal-codex-responses-lite": (
        "ws_request_header_x_openai_internal_codex_responses_lite"
    ),
}
_SENDER = "sender"
_CODEX_BETA = "responses_websockets=2026-02-06"


def handshake(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The headers that open a connection, sorted: equal ones share it, others never do."""
    given: dict[str, str] = {}
    for name, value in headers:
        plain = _SPELLINGS.get(name, name)
        # Both spellings of one name: the hyphen wins (CASES 58).
        if plain in _IDENTITY and (plain == name or plain not in given):
            given[plain] = value
    if given.get("originator", "").startswith("codex") or "x-codex-beta-features" in given:
        # Codex names the beta on its WebSockets only; its HTTP turns are to find the same chain.
        betas = [beta.strip() for beta in given.get("openai-beta", "").split(",") if beta.strip()]
        given["openai-beta"] = ", ".join(dict.fromkeys([*betas, _CODEX_BETA]))
    return tuple(sorted(given.items()))


def account(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Beside the credential: for whom the upstream keeps a response, and whom it is kept from."""
    return tuple((n, v) for n, v in handshake(headers) if n in _ACCOUNT)


def identity(tenant: str, upstream: str, headers: Sequence[tuple[str, str]], key: bytes) -> bytes:
    """A digest that is equal for two requests that may share a connection."""
    flat = [part for header in headers for part in header]
    return digests.mac(key, "connection", tenant, upstream, *flat)


class Sender(NamedTuple):
    """What the headers of a request say of connections and frames. It holds credentials."""

    headers: tuple[tuple[str, str], ...]
    tenant: str
    upstream: str
    opening: tuple[tuple[str, str], ...]
    """The headers that open a connection."""
    identity: bytes
    per_turn: Mapping[str, str]
    """What of the headers travels in frames, by its names there."""


def sender(
    headers: tuple[tuple[str, str], ...],
    tenant: str,
    upstream: str,
    key: bytes,
    memory: MutableMapping[str, Sender],
) -> Sender:
    """Worked out once for each ``memory``: most clients send the same headers with each turn.

    A memory is of one client, and goes when its connection does.
    """
    known = memory.get(_SENDER)
    if known is None or (headers, tenant, upstream) != known[:3]:
        opening = handshake(headers)
        named = identity(tenant, upstream, opening, key)
        known = Sender(headers, tenant, upstream, opening, named, per_turn(headers))
        memory[_SENDER] = known
    return known


def per_turn(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of a request's headers those that change with every turn, by their names in a frame."""
    given = list(headers)
    codex = any(name.startswith("x-codex-") for name, _ in given)
    return {
        _PER_TURN[name]: value
        for name, value in given
        if name in _PER_TURN and (codex or name.startswith("x-openai"))
    }


def client_metadata(
    raw: bytes | None, per_turn: Mapping[str, str], turn_state: str | None
) -> bytes | None:
    """The frame's ``client_metadata``: the client's own, and the per-turn headers it lacks.

    None where nothing has to be added: then the client's bytes stay as they are.
    """
    if not per_turn and turn_state is None:
        return None
    try:
        given = {} if raw is None else msgspec.json.decode(raw)
    except msgspec.MsgspecError:
        return None
    if given is None:
        given = {}
    if not isinstance(given, dict):
        return None
    added = _missing(given, per_turn, turn_state)
    return json.dumps({**given, **added}).encode() if added else None


def _missing(
    given: Mapping[str, object], per_turn: Mapping[str, str], turn_state: str | None
) -> dict[str, str]:
    added = {key: value for key, value in per_turn.items() if key not in given}
    if turn_state is not None and "x-codex-turn-state" not in {*given, *added}:
        added["x-codex-turn-state"] = turn_state
    return added


_REPLACED = frozenset({"content-type", "content-length", "accept-encoding", "host"})


def post_headers(
    headers: Iterable[tuple[str, str]], request: Request | None, *, socket: bool
) -> list[tuple[str, str]]:
    """The headers of a POST. For a turn of a client socket the per-turn ones are the frame's.

    The upgrade's per-turn headers belong to the socket's first turn, its beta to WebSockets.
    """
    own = [("content-type", "application/json"), ("accept-encoding", "identity")]
    if not socket:
        return [(n, v) for n, v in headers if n not in _REPLACED] + own
    given = request.value("client_metadata") if request is not None else None
    frame = given if isinstance(given, dict) else {}
    left_out = {*_REPLACED, *_PER_TURN, "accept"}
    kept = [
        (name, value)
        for name, value in headers
        if name not in left_out and not (name == "openai-beta" and value == _CODEX_BETA)
    ]
    per_turn = [
        (name, frame[key]) for name, key in _PER_TURN.items() if isinstance(frame.get(key), str)
    ]
    return [*kept, *per_turn, ("accept", "text/event-stream"), *own]
