"""Which formats there are, and how one is told from the others: by content, never by name."""

from __future__ import annotations

import json
from typing import Any

from app.importers.claude_code import CLAUDE_CODE
from app.importers.codex import CODEX
from app.importers.importer import Importer, NotReadable
from app.importers.json_lines import inner
from app.importers.lines import BOM
from app.importers.lingtai import LINGTAI
from app.importers.litellm import LITELLM
from app.importers.neutral import NEUTRAL
from app.importers.own_csv import CSV
from app.importers.own_jsonl import JSONL
from app.importers.pi import PI
from app.importers.responses import RESPONSES

IMPORTERS: tuple[Importer, ...] = (
    JSONL, CSV, NEUTRAL, CODEX, LINGTAI, CLAUDE_CODE, PI, LITELLM, RESPONSES,
)  # fmt: skip
HEAD = 65_536
"""Bytes of a file that are enough to tell."""


def detect(head: bytes) -> Importer:
    """The importer of a file that begins so. Raises ``NotReadable``: what it may be instead."""
    for importer in IMPORTERS:
        if importer.recognizes(head):
            return importer
    raise NotReadable(_what_else(head))


def _what_else(head: bytes) -> str:
    if not head.strip():
        return "It is empty."
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "It is in UTF-16. Save it in UTF-8."
    if head.startswith(b"SQLite format 3\x00"):
        return "It is a database. Export it first: warmline export --database FILE -o ledger.jsonl"
    if head.startswith(b"PK"):
        return "It is an archive or a workbook. Unpack it, or save it as CSV."
    if b"\x00" in head:
        return "It is no text."
    if _first(head).keys() >= {"type", "thread_id"}:
        return "It is what codex exec --json writes, which tells no times. Import the rollout."
    return "It is not a format that can be imported: docs/formats.md lists them."


def _first(head: bytes) -> dict[str, Any]:
    """The first record of a file that begins so, if it is an object."""
    try:
        return inner(json.loads(head.removeprefix(BOM).split(b"\n", 1)[0]))
    except (ValueError, RecursionError):
        return {}
