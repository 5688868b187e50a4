"""The head of a request, and what follows from it.

Agents send the same head with every turn, but for the length of its body: where the server has a
memory for their connection, it is read once.
"""

from __future__ import annotations

from functools import cached_property

from app.gateway import headers
from app.gateway.headers import Headers
from app.gateway.identity import spelt_one_way, tenant_of
from app.gateway.upstreams import Target
from app.gateway.wire import RawHeaders, Scope, extension
from app.http_connection import MEMORY
from app.keys import Keys
from engine.handshake import Sender

_LENGTH = b"content-length"


class Head:
    """All of it is of the client, and goes when its connection does."""

    def __init__(self, raw: RawHeaders, path: bytes, query: bytes) -> None:
        self.key = raw, path, query
        self.target: Target | None = None
        """Where it goes, once that was found: not before it was let in."""
        self._tenant: str | None = None
        self.memory: dict[str, Sender] = {}
        """The engine's, of the headers."""

    @cached_property
    def path(self) -> str:
        """As the client wrote it."""
        return self.key[1].decode("latin-1")

    @cached_property
    def query(self) -> str:
        return self.key[2].decode("latin-1")

    @cached_property
    def headers(self) -> Headers:
        """The client's headers, without the length of its body."""
        return headers.decode(self.key[0])

    @cached_property
    def encodings(self) -> Headers:
        """How the bodies are encoded that come with it."""
        return tuple(pair for pair in self.headers if pair[0] == "content-encoding")

    @cached_property
    def by_name(self) -> dict[str, str]:
        return spelt_one_way(self.headers)

    @cached_property
    def forwarded(self) -> Headers:
        """The headers for the upstream of a turn, whose body is read here."""
        return headers.forwarded(self.headers, body_is_read=True)

    def tenant(self, keys: Keys) -> str:
        if self._tenant is None:
            self._tenant = tenant_of(keys, self.headers, self.query)
        return self._tenant


def head_of(scope: Scope) -> Head:
    """The head of a request, or the same one of an earlier request on its connection."""
    raw = [pair for pair in scope["headers"] if pair[0] != _LENGTH]
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string", b"")
    memory = extension(scope, MEMORY)
    if memory is None:
        return Head(raw, path, query)
    known: Head | None = memory.get(Head)
    if known is None or known.key != (raw, path, query):
        known = memory[Head] = Head(raw, path, query)
    return known


def length_of(scope: Scope) -> Headers:
    """The header with the length of the body."""
    return headers.decode(pair for pair in scope["headers"] if pair[0] == _LENGTH)
