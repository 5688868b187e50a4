"""A view as a file: CSV or JSON lines, streamed in constant memory (``app.ledger.csv_export``).

Exactly the rows of the view, settled when the first one is read; oldest first.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import chain
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from app.errors import BadParameterError
from app.ledger import csv_export, queries
from app.web.api import parameters
from app.web.assets import takes_gzip
from app.web.web import Web

_GZIP = 31  # zlib's window bits for a gzip envelope
Values = list[tuple[Any, ...]]


def router(web: Web) -> APIRouter:
    routes = APIRouter(prefix="/api", tags=["api"])

    @routes.get("/requests.csv", openapi_extra=parameters("columns", "bom", "raw"))
    async def csv_file(request: Request) -> StreamingResponse:
        """The rows of a view as CSV (RFC 4180). Own parameters: `columns`, `bom`, `raw`."""
        write = partial(csv_export.write_csv, raw=_flag(request, "raw"), bom=_flag(request, "bom"))
        own = ("columns", "bom", "raw")
        return await _file(web, request, write, own=own, form=("csv", csv_export.CSV_TYPE))

    @routes.get("/requests.jsonl", openapi_extra=parameters("columns"))
    async def jsonl_file(request: Request) -> StreamingResponse:
        """The rows of a view as one JSON object per line. Own parameter: `columns`."""
        form = ("jsonl", csv_export.JSONL_TYPE)
        return await _file(web, request, csv_export.write_jsonl, own=("columns",), form=form)

    return routes


async def _file(
    web: Web, request: Request, write: Any, *, own: tuple[str, ...], form: tuple[str, str]
) -> StreamingResponse:
    """``write`` makes bytes of chunks of values; ``form`` is the file's ending and type."""
    view = web.view(request, also=own)
    columns = csv_export.read_columns(request.query_params.get("columns"))
    rows = queries.stream(web.ledger, view, columns=columns)
    # Read before the headers go out, so that a ledger that cannot be read is an error, not an
    # empty file.
    first: Values | None = await run_in_threadpool(next, rows, None)
    chunks = rows if first is None else chain([first], rows)
    parts: Iterator[bytes] = write(chunks, columns=columns)
    ending, media_type = form
    name = csv_export.file_name(view.start, view.end, ending)
    headers = {
        "content-type": media_type,
        "content-disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}",
        "x-ledger-schema": str(csv_export.SCHEMA_VERSION),
        "vary": "accept-encoding",
    }
    if takes_gzip(request.headers.get("accept-encoding", "")):
        headers["content-encoding"] = "gzip"
        parts = packed(parts)
    return StreamingResponse(_in_threads(parts), headers=headers)


def packed(parts: Iterator[bytes]) -> Iterator[bytes]:
    """gzip of a stream; what is there after each part can be read by then."""
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    for part in parts:
        yield packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


async def _in_threads(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (part := await run_in_threadpool(next, parts, None)) is not None:
        yield part


def _flag(request: Request, name: str) -> bool:
    text = request.query_params.get(name, "")
    if text not in ("", "0", "1"):
        raise BadParameterError(name, f"{name} cannot be {text[:64]!r}.", "It is 0 or 1.")
    return text == "1"
