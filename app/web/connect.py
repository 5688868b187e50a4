"""What the page on connecting clients needs."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from app.settings import DEFAULT_UPSTREAM
from app.web import snippets
from app.web.answers import JsonAnswer
from app.web.web import Web


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api", tags=["api"])

    @api.get("/connect")
    def connect() -> JsonAnswer:
        """The settings of each known client, and the upstreams that it can be pointed at."""
        settings = web.in_force
        token = settings.gateway_token is not None
        return JsonAnswer(
            {
                "gateway_token": token,
                "upstreams": [
                    {"name": name, "base_url": one.base_url, "path": path_of(name)}
                    for name, one in settings.upstreams.items()
                ],
                "placeholder": snippets.URL,
                "clients": [asdict(client) for client in snippets.clients(token=token)],
            }
        )

    return api


def path_of(upstream: str) -> str:
    """Where the gateway serves an upstream (DESIGN 5)."""
    return "/v1" if upstream == DEFAULT_UPSTREAM else f"/u/{upstream}/v1"
