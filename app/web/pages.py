"""The pages, and logging in and out. Pages are shells: their modules fetch the figures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from app.charts.registry import CHARTS
from app.errors import AppError
from app.ledger.filters import DIMENSIONS
from app.ledger.rows import COLUMNS
from app.paths import TEMPLATES
from app.version import VERSION
from app.web.access import COOKIE, COOKIE_SECONDS
from app.web.web import Web

FORM_LIMIT = 8_192
"""Bytes of a login form; a token and a path need far less."""
WRONG_TOKEN = "This is not the token of this server."  # noqa: S105  (a sentence)
# Under no-referrer a browser posts a form with "Origin: null", which no check could tell from a
# foreign page's. This policy still tells other sites nothing.
_FORM_HEADERS = {"referrer-policy": "same-origin"}
ICON = "img/mark.svg"
PLAIN = {
    "/": "overview",
    "/sessions": "sessions",
    "/requests": "requests",
    "/breaks": "breaks",
    "/import": "import",
    "/connect": "connect",
    "/settings": "settings",
}
"""Pages that need to know nothing, by their paths."""


class Pages:
    def __init__(self, web: Web) -> None:
        self._web = web
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def render(self, page: str, **more: Any) -> str:
        assets = self._web.assets
        return self._templates.get_template(f"{page}.html").render(
            page=page,
            version=VERSION,
            static=assets.url,
            plotly=assets.plotly_url,
            plotly_version=assets.plotly_version,
            token_set=self._web.tickets.token_set,
            charts=[{"slug": entry.slug, "title": entry.title} for entry in CHARTS.values()],
            columns=COLUMNS,
            dimensions=DIMENSIONS,
            **more,
        )

    def login(self, target: str, error: str | None) -> Response:
        body = self.render("login", next=target, error=error)
        return HTMLResponse(body, status_code=401 if error else 200, headers=_FORM_HEADERS)


def router(web: Web) -> APIRouter:
    pages = Pages(web)
    routes = APIRouter(include_in_schema=False)
    # On the event loop, which it takes less than a millisecond: a page comes and says what is wrong
    # although every thread waits for the database.

    def plain(page: str) -> Callable[[], Awaitable[HTMLResponse]]:
        async def shell() -> HTMLResponse:
            return HTMLResponse(pages.render(page))

        return shell

    for path, page in PLAIN.items():
        routes.add_api_route(path, plain(page), methods=["GET", "HEAD"])

    @routes.api_route("/sessions/{session_key}", methods=["GET", "HEAD"])
    async def session(session_key: str) -> HTMLResponse:
        return HTMLResponse(pages.render("session", session_key=session_key))

    @routes.api_route("/breaks/{group:path}", methods=["GET", "HEAD"])
    async def one_break(group: str) -> HTMLResponse:
        return HTMLResponse(pages.render("break", group=group))

    @routes.api_route("/alerts", methods=["GET", "HEAD"])
    async def alerts() -> HTMLResponse:
        return HTMLResponse(pages.render("alerts", received=web.received is not None))

    @routes.get("/login")
    async def login_form(request: Request) -> Response:
        target = local_path(request.query_params.get("next"))
        if not web.tickets.token_set:
            return RedirectResponse(target, status_code=303)
        return pages.login(target, None)

    @routes.post("/login")
    async def login(request: Request) -> Response:
        form = dict(parse_qsl(await _body(request), keep_blank_values=True, max_num_fields=8))
        target = local_path(form.get("next"))
        if not web.tickets.token_set:
            return RedirectResponse(target, status_code=303)
        if not web.tickets.accepts_token(form.get("token", "").strip()):
            return pages.login(target, WRONG_TOKEN)
        answer = RedirectResponse(target, status_code=303)
        answer.set_cookie(
            COOKIE,
            web.tickets.issue(),
            max_age=COOKIE_SECONDS,
            path="/",
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return answer

    @routes.post("/logout")
    async def logout() -> Response:
        answer = JSONResponse({"status": "ok"})
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
        return answer

    @routes.get("/favicon.ico")
    async def icon() -> Response:
        if not web.assets.has(ICON):
            return Response(status_code=204)
        return RedirectResponse(f"{web.assets.url}/{ICON}", status_code=307)

    return routes


def local_path(target: str | None) -> str:
    """A place of this server to go to after logging in; anything else is the overview.

    Browsers read ``//host`` and ``/\\host`` as other servers, and drop tabs and line ends from
    within a URL.
    """
    if not target or not target.startswith("/") or target[1:2] in ("/", "\\"):
        return "/"
    return "/" if any(ord(character) < 33 or character == "\\" for character in target) else target


async def _body(request: Request) -> str:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_LIMIT:
            raise AppError("too_large", "The form is too large.", None, status=413)
    return body.decode("utf-8", "replace")
