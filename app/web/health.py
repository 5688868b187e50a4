"""What the service says of itself, in ``/readyz`` and on every page. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.ledger.probe import Reading
from app.ledger.rows import iso
from app.ledger.writer import WriterState

LATE_MS = 10_000
"""Rows that wait longer than this without any of them being written are late: the database is
locked or silent. A lock is waited for as long before it is an error."""

STARTING: dict[str, Any] = {"status": "starting", "since": None, "ledger": None}


def health(writer: WriterState, reading: Reading | None, now: int) -> dict[str, Any]:
    """``status`` is the worst that holds; ``reading`` None: not asked yet. ``now`` in epoch ms."""
    waiting = writer.waiting_since
    late = waiting is not None and now - waiting >= LATE_MS
    if reading is not None and not reading.readable:
        status, since = "ledger_unreadable", reading.since
    elif writer.retrying:
        status, since = "ledger_unwritable", waiting
    elif late:
        status, since = "ledger_late", waiting
    else:
        status, since = "ok", None
    return {
        "status": status,
        "since": None if since is None else iso(since),
        "ledger": {
            "readable": reading is None or reading.readable,
            "read_error": None if reading is None else reading.error,
            "queued": writer.queued,
            "waiting_since": None if waiting is None else iso(waiting),
            "written": writer.written,
            "dropped": writer.dropped,
            "rejected": writer.rejected,
            "kept": writer.kept,
            "retrying": writer.retrying,
            "last_error": writer.last_error,
            "on_disk": writer.on_disk,
            "journal": None if writer.journal is None else asdict(writer.journal),
        },
    }
