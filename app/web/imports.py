"""Imports: files that are sent, what became of them, and taking them back.

A file is the body of a request of its own and is written to disk as it comes: no part of it is kept
in memory, and no path on this machine is ever taken from a caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect

from app.errors import AppError
from app.importers.formats import IMPORTERS
from app.importers.run import FileReport, Report
from app.importers.service import UPLOADING, Importing, Job
from app.importers.uploads import MOST_FILES
from app.ledger import imports
from app.ledger.imports import Import, Span
from app.ledger.rows import iso, to_ms
from app.web.alerts import bodies
from app.web.alerts.bodies import Body
from app.web.answers import JsonAnswer
from app.web.web import Web

PIECE = 1 << 20
"""Bytes that are written at once."""
_FILES = 100
"""Files that are told one by one: those with trouble first."""


def router(web: Web) -> APIRouter:
    api = APIRouter(prefix="/api/import", tags=["api"])

    @api.get("")
    def listing() -> JsonAnswer:
        """Imports, newest first, those of the command line too; what may be sent."""
        importing = web.imports
        jobs = {job.id: job for job in importing.jobs()}
        recorded = imports.listed(web.ledger)
        told = [_shown(one, jobs.pop(one.id, None)) for one in recorded]
        told += [_shown(None, job) for job in jobs.values() if not job.recorded]
        told.sort(key=lambda one: str(one["started_at"]), reverse=True)
        return JsonAnswer(
            {
                "as_of": iso(to_ms(web.clock.now())),
                "limits": {"bytes": importing.uploads.limit, "files": MOST_FILES},
                "formats": [{"name": one.name, "title": one.title} for one in IMPORTERS],
                "imports": told,
            }
        )

    @api.post("", openapi_extra=bodies.takes("purged"))
    def begin(body: Body) -> JsonAnswer:
        """Begin an import, to which files can be sent."""
        bodies.only(body, "purged")
        job = web.imports.begin(purged=bodies.flag(body, "purged"))
        return JsonAnswer({"import": _shown(None, job)}, status_code=201)

    @api.put("/{import_id}/files", openapi_extra=_FILE)
    async def file(import_id: str, request: Request) -> JsonAnswer:
        """Send one file: its bytes are the body. Own parameter: `name`."""
        name = request.query_params.get("name", "")
        size = await _receive(web.imports, import_id, name, request)
        return JsonAnswer({"name": name, "bytes": size}, status_code=201)

    @api.post("/{import_id}/start")
    def start(import_id: str, body: Body) -> JsonAnswer:
        """All files are there: import them."""
        bodies.only(body)
        return JsonAnswer({"import": _shown(None, web.imports.start(import_id))}, status_code=202)

    @api.get("/{import_id}")
    def one(import_id: str) -> JsonAnswer:
        """One import: how far it is, and what became of its files."""
        return JsonAnswer({"import": _detail(web, import_id)})

    @api.delete("/{import_id}")
    def undo(import_id: str) -> JsonAnswer:
        """Take an import back; an upload is thrown away, one that runs is stopped first."""
        job = web.imports.undo(import_id)
        if job.state == UPLOADING:
            return JsonAnswer({"deleted": job.id})
        return JsonAnswer({"import": _detail(web, import_id)}, status_code=202)

    return api


_FILE: dict[str, Any] = {
    "parameters": [
        {"name": "name", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "x-warmline-upload", "in": "header", "required": True, "schema": {"const": "1"}},
    ],
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string"}}},
    },
}


async def _receive(importing: Importing, import_id: str, name: str, request: Request) -> int:
    length = request.headers.get("content-length", "")
    expected = int(length) if length.isdecimal() and len(length) < 20 else None
    size, piece = 0, bytearray()
    try:
        with importing.receiving(import_id, name, expected) as write:
            async for chunk in request.stream():
                piece += chunk
                size += len(chunk)
                if len(piece) >= PIECE:
                    await asyncio.to_thread(write, bytes(piece))
                    piece.clear()
            await asyncio.to_thread(write, bytes(piece))
    except ClientDisconnect:
        raise AppError("gone", "The upload broke off.", "Send the file again.", 400) from None
    return size


def _detail(web: Web, import_id: str) -> dict[str, Any]:
    job = web.imports.job(import_id)
    try:
        recorded = imports.one(web.ledger, import_id)
    except AppError:
        if job is None:
            raise
        recorded = None
    span = None if recorded is None else imports.span(web.ledger, import_id)
    return _shown(recorded, job) | {
        "uploaded": None
        if job is None or job.state != UPLOADING
        else [
            {"name": name, "bytes": size}
            for name, size in web.imports.uploads.files(import_id).items()
        ],
        "rows_in_ledger": _span(span),
        "report": None if job is None or not job.ended else _report(job.report),
    }


def _shown(recorded: Import | None, job: Job | None) -> dict[str, Any]:
    """What is known of an import: its record, what this process knows beside, or both."""
    known = recorded or job
    assert known is not None
    started = known.created if isinstance(known, Job) else known.started_at
    ended = None if recorded is None else recorded.ended_at
    reasons = {} if recorded is None else recorded.reasons
    report = None if job is None or not job.ended else job.report
    return {
        "id": known.id,
        "state": known.state,
        "started_at": iso(started),
        "ended_at": None if ended is None else iso(ended),
        "names": "" if recorded is None else recorded.names,
        "formats": [one for one in recorded.formats.split(",") if one] if recorded else [],
        "progress": None if job is None or not job.of else {"done": job.done, "of": job.of},
        "rows": {
            "new": recorded.rows_new if recorded else 0,
            "known": recorded.rows_known if recorded else 0,
        },
        "skipped": {
            "records": recorded.skipped if recorded else 0,
            "reasons": [
                {"reason": why, "records": records, "examples": list(_examples(report, why))}
                for why, records in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
            ],
        },
        "kept": None if job is None else job.kept,
        "failure": None if job is None or job.failure is None else job.failure.as_dict()["error"],
    }


def _examples(report: Report | None, why: str) -> Iterator[dict[str, Any]]:
    found = (
        {"file": file.name, "line": line}
        for file in (report.files if report is not None else ())
        for line in file.examples.get(why, ())
    )
    return islice(found, 3)


def _span(span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    return {
        "rows": span.rows,
        "from": iso(span.first),
        "to": iso(span.last + 1),
        "sources": span.sources,
    }


def _report(report: Report | None) -> dict[str, Any] | None:
    if report is None:
        return None
    files = sorted(report.files, key=lambda file: (file.failure is None, not file.remarks))
    return {
        "files": [_file(one) for one in files[:_FILES]],
        "more_files": max(0, len(files) - _FILES),
        "passed_over": report.ignored,
        "merged": report.merged,
        "differing": report.differing,
        "strangers": report.strangers,
    }


def _file(file: FileReport) -> dict[str, Any]:
    return {
        "name": file.name,
        "format": file.format,
        "new": file.counts.new,
        "known": file.counts.known,
        "skipped": file.counts.skipped.total(),
        "remarks": file.remarks[:5],
        "failure": file.failure,
    }
