"""A view as a file: CSV or JSON lines, streamed in constant memory (``app.ledger.exporting``).

Exactly the rows of the view as they are when the answer begins, oldest first. A file comes from one
snapshot, which holds up what a database clears away; so a reader that stops reading, or that takes
too long in all, is cut off, and its file is seen to be incomplete.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Literal

import anyio
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.errors import AppError, BadParameterError
from app.ledger import csv_export, queries
from app.ledger.exporting import Wanted, export, packed
from app.ledger.filters import Filter
from app.web.api import parameters
from app.web.assets import takes_gzip
from app.web.web import Web

Form = Literal["csv", "jsonl"]
OWN: dict[Form, tuple[str, ...]] = {
    "csv": ("columns", "bom", "raw", "pseudonymize"),
    "jsonl": ("columns", "pseudonymize"),
}
TYPES: dict[Form, str] = {"csv": csv_export.CSV_TYPE, "jsonl": csv_export.JSONL_TYPE}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an export may take, so that no reader holds a snapshot for long."""

    at_once: int = 8
    patience: float = 60.0
    """Seconds until a reader has taken a piece (up to some hundred kilobytes)."""
    whole: float = 3_600.0
    """Seconds for the whole file."""


BOUNDS = Bounds()


class ReaderTooSlow(TimeoutError):
    """Tells the log why an answer has no end."""


def router(web: Web, bounds: Bounds = BOUNDS) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["api"])
    files = _Files(web, bounds)

    @routes.get("/requests.csv", openapi_extra=parameters(*OWN["csv"]))
    async def csv_file(request: Request) -> StreamingResponse:
        """The rows of a view as CSV (RFC 4180). Own parameters: `columns`, `bom`, `raw`,
        `pseudonymize`."""
        return await files.answer(request, "csv")

    @routes.get("/requests.jsonl", openapi_extra=parameters(*OWN["jsonl"]))
    async def jsonl_file(request: Request) -> StreamingResponse:
        """The rows of a view as one JSON object per line. Own parameters: `columns`,
        `pseudonymize`."""
        return await files.answer(request, "jsonl")

    @routes.head("/requests.csv", openapi_extra=parameters(*OWN["csv"]))
    def csv_head(request: Request) -> Response:
        """How many rows the CSV would hold now: `X-Ledger-Rows`."""
        return files.head(request, "csv")

    @routes.head("/requests.jsonl", openapi_extra=parameters(*OWN["jsonl"]))
    def jsonl_head(request: Request) -> Response:
        """How many lines the file would hold now: `X-Ledger-Rows`."""
        return files.head(request, "jsonl")

    return routes


class _Files:
    def __init__(self, web: Web, bounds: Bounds) -> None:
        self._web = web
        self._bounds = bounds
        self._open = 0

    async def answer(self, request: Request, form: Form) -> StreamingResponse:
        view = self._web.view(request, also=OWN[form])
        wanted = _wanted(self._web, request, form)
        gzip = takes_gzip(request.headers.get("accept-encoding", ""))
        if self._open >= self._bounds.at_once:
            raise AppError(
                "too_many_exports",
                f"{self._open} exports are being read already.",
                "Try again when one of them has ended.",
                status=503,
            )
        self._open += 1
        parts = export(self._web.ledger, view, wanted)
        try:
            # Before the headers go out, so that a ledger that cannot be read is an error, not an
            # empty file.
            first = await run_in_threadpool(next, parts)
        except BaseException:
            self._open -= 1
            raise
        headers = _headers(view, form) | ({"content-encoding": "gzip"} if gzip else {})
        return _Download(first, parts, self._bounds, self._closed, gzip=gzip, headers=headers)

    def head(self, request: Request, form: Form) -> Response:
        view = self._web.view(request, also=OWN[form])
        _wanted(self._web, request, form)
        rows = queries.count(self._web.ledger, view)
        answer = Response(headers=_headers(view, form) | {"x-ledger-rows": str(rows)})
        del answer.headers["content-length"]  # the file's, which is not known; 0 would be a lie
        return answer

    def _closed(self) -> None:
        self._open -= 1


class _Download(StreamingResponse):
    """Sends the pieces, within bounds; whatever happens, the snapshot ends with the answer."""

    def __init__(
        self,
        first: bytes,
        parts: Generator[bytes],
        bounds: Bounds,
        closed: Callable[[], None],
        *,
        gzip: bool,
        headers: dict[str, str],
    ) -> None:
        self._parts = parts
        self._bounds = bounds
        self._closed = closed
        pieces = _with_first(first, parts)
        super().__init__(_in_threads(packed(pieces) if gzip else pieces), headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._closed()
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._parts.close)

    async def stream_response(self, send: Send) -> None:
        async def in_time(message: Message) -> None:
            with anyio.fail_after(self._bounds.patience):
                await send(message)

        try:
            with anyio.fail_after(self._bounds.whole):
                await super().stream_response(in_time)
        except TimeoutError:
            raise ReaderTooSlow from None


def _headers(view: Filter, form: Form) -> dict[str, str]:
    name = csv_export.file_name(view.start, view.end, form)
    return {
        "content-type": TYPES[form],
        "content-disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}",
        "x-ledger-schema": str(csv_export.SCHEMA_VERSION),
        "vary": "accept-encoding",
    }


def _wanted(web: Web, request: Request, form: Form) -> Wanted:
    return Wanted(
        form=form,
        columns=csv_export.read_columns(request.query_params.get("columns")),
        raw=_flag(request, "raw"),
        bom=_flag(request, "bom"),
        pseudonym=web.pseudonym if _flag(request, "pseudonymize") else None,
    )


def _with_first(first: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from parts


async def _in_threads(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    # Empty ones as well: the head of the answer leaves with the first piece.
    while (part := await run_in_threadpool(next, parts, None)) is not None:
        yield part


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "")
    if text not in ("", "0", "1"):
        raise BadParameterError(name, f"{name} cannot be {text[:64]!r}.", "It is 0 or 1.")
    return text == "1"
