from dataclasses import replace

import pytest

from app.ledger.journal.journal import JournalState
from app.ledger.probe import NO_ANSWER, Reading
from app.ledger.rows import iso
from app.ledger.writer import WriterState
from app.web.health import LATE_MS, health

NOW = 1_790_000_000_000
GOOD = Reading(readable=True, since=None, error=None)
AWAY = Reading(readable=False, since=NOW - 5, error="OperationalError")
IDLE = WriterState(
    queued=0, written=7, duplicates=0, dropped=0, rejected=0, kept=0, failures=0, retrying=False,
    last_error=None, on_disk=0, journal=None, waiting_since=None,
)  # fmt: skip
BEHIND = replace(IDLE, queued=3, waiting_since=NOW - LATE_MS)
REFUSED = replace(BEHIND, retrying=True, last_error="OperationalError")


@pytest.mark.parametrize(
    ("status", "since", "writer", "reading"),
    [
        ("ok", None, IDLE, GOOD),
        ("ok", None, IDLE, None),
        ("ok", None, replace(BEHIND, waiting_since=NOW - LATE_MS + 1), GOOD),
        ("ledger_late", NOW - LATE_MS, BEHIND, GOOD),
        ("ledger_unwritable", NOW - LATE_MS, REFUSED, GOOD),
        ("ledger_unwritable", NOW - 1, replace(REFUSED, waiting_since=NOW - 1), GOOD),
        ("ledger_unreadable", NOW - 5, IDLE, AWAY),
        ("ledger_unreadable", NOW - 5, REFUSED, AWAY),
        ("ledger_unreadable", NOW - 5, BEHIND, replace(AWAY, error=NO_ANSWER)),
    ],
)
def test_the_worst_that_holds_is_told_with_its_beginning(status, since, writer, reading):
    told = health(writer, reading, NOW)
    assert (status, None if since is None else iso(since)) == (told["status"], told["since"])


def test_what_waits_what_was_lost_and_why_are_told():
    journal = JournalState(
        bytes=8, recovered=9, process_ended=1, missed=2, torn=0, last_error="No space left"
    )
    writer = replace(REFUSED, on_disk=2, dropped=4, rejected=5, kept=6, journal=journal)
    assert {
        "readable": False,
        "read_error": "OperationalError",
        "queued": 3,
        "waiting_since": iso(NOW - LATE_MS),
        "written": 7,
        "dropped": 4,
        "rejected": 5,
        "kept": 6,
        "retrying": True,
        "last_error": "OperationalError",
        "on_disk": 2,
        "journal": {
            "bytes": 8, "recovered": 9, "process_ended": 1, "missed": 2, "torn": 0,
            "last_error": "No space left",
        },
    } == health(writer, AWAY, NOW)["ledger"]  # fmt: skip


def test_losses_of_the_past_do_not_make_it_unready():
    assert "ok" == health(replace(IDLE, dropped=4, rejected=5), GOOD, NOW)["status"]
