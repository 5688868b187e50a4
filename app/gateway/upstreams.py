"""From a request's path to the upstream that serves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote

from app.gateway.wire import Refusal
from engine.driver import Upstream

# The same interface stands at the public API's path and at those of the Codex backend.
_ROUTES = re.compile(
    r"(?:/u/(?P<name>[^/]+))?/(?:v1|codex|backend-api/codex)(?P<path>/.*)?", re.DOTALL
)


class Route(Enum):
    RESPONSES = "/responses"
    """Turns: POST, or a WebSocket."""
    COMPACT = "/responses/compact"
    OTHER = ""
    """Everything else: passed through."""


_TURNS = {route.value: route for route in Route if route.value}


@dataclass(frozen=True, slots=True)
class QueriedUpstream(Upstream):
    """An upstream with the query of one request, e.g. the ``api-version`` that Azure wants."""

    query: str = ""

    @property
    def http_url(self) -> str:
        return f"{self.base_url}/responses?{self.query}"

    @property
    def ws_url(self) -> str:
        return f"ws{self.base_url.removeprefix('http')}/responses?{self.query}"


@dataclass(frozen=True, slots=True)
class Target:
    upstream: Upstream
    path: str
    """Below the upstream's base URL, as the client wrote it, with its leading slash."""
    query: str = ""
    """As the client wrote it, without the question mark."""

    @property
    def route(self) -> Route:
        return _TURNS.get(self.path, Route.OTHER)

    @property
    def queried(self) -> Upstream:
        """The upstream for a turn, which is to get the client's query too."""
        if not self.query:
            return self.upstream
        known = self.upstream
        return QueriedUpstream(known.name, known.base_url, known.policy, self.query)

    @property
    def takes_websockets(self) -> bool:
        return self.upstream.policy.continuation != "off"


class Upstreams:
    """The default upstream and the named ones."""

    def __init__(self, default: Upstream, named: Mapping[str, Upstream] | None = None) -> None:
        self._default = default
        self._named = {default.name: default, **(named or {})}

    @property
    def names(self) -> list[str]:
        return sorted(self._named)

    @staticmethod
    def covers(path: str) -> bool:
        """Whether a path (decoded) is one of the gateway's."""
        return _ROUTES.fullmatch(path) is not None

    def find(self, raw_path: str, query: str = "") -> Target:
        """The target of path and query as they stand in the request line. Raises ``Refusal``."""
        match = _ROUTES.fullmatch(raw_path)
        if match is None:
            raise Refusal(404, "not_found", "There is no such route.")
        path = match["path"] or ""
        if any(part in (".", "..") for part in re.split(r"[/\\]", unquote(path))):
            raise Refusal(400, "invalid_path", "Dot segments are not allowed in a path.")
        if match["name"] is None:
            return Target(self._default, path, query)
        upstream = self._named.get(unquote(match["name"]))
        if upstream is None:
            raise Refusal(
                404,
                "unknown_upstream",
                "No upstream of that name is set. Add a table [upstreams.NAME] to the settings.",
            )
        return Target(upstream, path, query)
