"""Why a turn went the way it did, in one plain sentence per row.

The sentence is built from what the ledger holds of the turn, which is never content. Words that
are not the engine's own (an importer's, a caller's reason for a reset) are shown as they stand.
A turn that was not continued although nothing is wrong is said to be so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.analysis import divergences
from app.ledger.rows import TurnRow
from engine.model import EpochReason, Kind, Mode, Reason, Status


class WhyKind(StrEnum):
    CONTINUED = "continued"
    EXPECTED = "expected"
    """Not continued, and nothing is wrong."""
    BREAK = "break"
    """Could have been continued."""
    FAULT = "fault"
    """The turn did not succeed."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Why:
    sentence: str
    kind: WhyKind


FALLBACKS: dict[str, str] = {
    "upgrade_426": "the upstream answered the upgrade with 426",
    "upgrade_403": "the upstream answered the upgrade with 403",
    "upgrade_404": "the upstream answered the upgrade with 404",
    "connect_failed": "no connection could be made",
    "connect_timeout": "the connection took too long to open",
    "cooldown": "WebSocket is resting after several losses",
    "no_connection_free": "every connection was busy",
    "closed": "it was closed while it was idle",
    "closed_1009": "the upstream closed it because the frame was too large",
    "after_failed": "the turn before it failed",
    "after_timeout": "the turn before it timed out",
    "after_cancel": "the turn before it was cancelled",
    "limit_reached": "the provider's age limit was reached",
    "evicted": "it was given up to make room",
    "http": "the turn before it was answered over HTTP",
    "superseded": "a later turn had already replaced it",
    "rejected": "the provider no longer knew it",
    "server_error": "the upstream answered with a server error",
    "ping_timeout": "it no longer answered a ping",
}
"""Words of ``fallback_reason``; any other is shown as it stands."""

RESETS: dict[str, str] = {
    EpochReason.SUMMARIZE: "the agent summarized its history",
    EpochReason.TURN_COUNT: "the epoch had reached its number of turns",
    EpochReason.CONNECTION_AGE: "the connection was due to be replaced before the provider's limit",
    EpochReason.COMPACTION: "the history was compacted",
    EpochReason.MANUAL: "a reset was asked for",
}

STOPPED: dict[str, str] = {
    Status.FAILED: "The provider ended the turn with a failure",
    Status.ERROR: "The turn never came to an end",
    Status.RATE_LIMITED: "The provider refused the turn because of its rate limit",
    Status.REFUSED: "Warmline refused the turn and sent nothing upstream",
}


def explain(row: TurnRow) -> Why:
    """The sentence and what kind of turn it tells of."""
    if row.status == Status.CLIENT_CLOSED:
        return Why("The client left before the answer was complete.", WhyKind.EXPECTED)
    if row.status not in (Status.COMPLETED, Status.INCOMPLETE):
        return Why(_stopped(row), WhyKind.FAULT)
    if row.reason is None:
        how = f" It was sent as {row.mode}." if row.mode else ""
        return Why(
            f"Nothing is recorded of why this turn was sent as it was.{how}", WhyKind.UNKNOWN
        )
    if row.kind == Kind.WARMUP:
        return Why(_warmup(row), WhyKind.EXPECTED)
    if row.kind == Kind.COMPACTION:
        return Why(
            "A compaction: the history was condensed, and the next turn starts afresh, as planned.",
            WhyKind.EXPECTED,
        )
    sentence = _reason(row, row.reason)
    if row.reason == Reason.OK:
        continued = row.mode in (Mode.WS_INCREMENTAL, Mode.HTTP_INCREMENTAL)
        return Why(sentence, WhyKind.CONTINUED if continued else WhyKind.UNKNOWN)
    if row.eligible:
        return Why(sentence, WhyKind.BREAK)
    known = row.reason in set(Reason)
    return Why(sentence, WhyKind.EXPECTED if known else WhyKind.UNKNOWN)


def _stopped(row: TurnRow) -> str:
    said = STOPPED.get(row.status, f"The turn ended as {row.status}")
    details = [
        text
        for text in (
            f"HTTP {row.http_status}" if row.http_status is not None else None,
            row.error_code,
        )
        if text
    ]
    return f"{said} ({', '.join(details)})." if details else f"{said}."


def _warmup(row: TurnRow) -> str:
    if row.mode is None:
        return "A warm-up, answered here: it prepares the next turn and generates nothing."
    return "A warm-up: it loads the prefix for the next turn and generates nothing."


def _reason(row: TurnRow, reason: str) -> str:
    match reason:
        case Reason.OK:
            return _continued(row)
        case Reason.CONTINUATION_OFF:
            return _off(row)
        case Reason.CLIENT_ANCHORED:
            return (
                "Passed on unchanged: the client itself continues a response "
                "that Warmline does not hold."
            )
        case Reason.PAYLOAD_TOO_LARGE:
            size = f" of {row.bytes_total:,} bytes" if row.bytes_total is not None else ""
            return f"Sent over HTTP: the request{size} is too large for one WebSocket message."
        case Reason.WS_REJECTED:
            return f"Sent in full over HTTP: the upstream offers no WebSocket{_because(row)}."
        case Reason.WS_UNAVAILABLE:
            return f"Sent in full over HTTP: no WebSocket was to be had{_because(row)}."
        case Reason.STORE_UNSUPPORTED:
            return "Sent in full: this upstream does not keep responses, so none can be continued."
        case Reason.NO_BASELINE:
            return _first(row)
        case Reason.EPOCH_RESET:
            return _reset(row)
        case Reason.NON_INPUT_FIELDS_CHANGED:
            return divergences.fields_changed(row)
        case Reason.PREFIX_MISMATCH:
            return divergences.prefix_mismatch(row)
        case Reason.EMPTY_DELTA:
            return (
                "Sent in full: the request adds nothing to what the provider holds, "
                "and an empty continuation is not allowed."
            )
        case Reason.MISSING_RESPONSE_ID:
            return "Sent in full: the answer before it carried no id that could be continued."
        case Reason.MISSING_OUTPUT_ITEMS:
            return (
                "Sent in full: the answer before it said there was output, "
                "but its items never arrived."
            )
        case Reason.OUTPUT_CONFLICT:
            return (
                "Sent in full: the answer before it contradicted itself, "
                "so what the provider holds is not certain."
            )
        case Reason.CHAIN_BUSY:
            return (
                "Sent in full beside another turn: the conversation it extends "
                "was still being answered."
            )
        case Reason.CONNECTION_LOST:
            return "Sent in full: the connection that held the conversation was gone" + _colon(row)
        case Reason.PREVIOUS_RESPONSE_NOT_FOUND:
            return "Sent again in full: the provider no longer knew the response to be continued."
        case Reason.INTERNAL_ERROR:
            return "Sent in full and unchanged: Warmline failed to decide, and let it through."
        case _:
            where = f" by {row.source}" if row.source.startswith("import") else ""
            return f"Recorded{where} as “{reason}”{_word_fallback(row)}."


def _continued(row: TurnRow) -> str:
    if row.mode not in (Mode.WS_INCREMENTAL, Mode.HTTP_INCREMENTAL):
        how = row.mode or "an unknown mode"
        return f"The prefix was unchanged, yet the turn was sent as {how}."
    if row.items_sent is None or row.items_total is None:
        return "Continued: only what is new was sent."
    new = _items(row.items_sent)
    saved = ""
    if row.bytes_total and row.bytes_sent is not None and row.bytes_sent < row.bytes_total:
        saved = f", {_percent(row.bytes_total - row.bytes_sent, row.bytes_total)} fewer bytes"
    return f"Continued: {new} of {row.items_total:,} sent{saved}."


def _off(row: TurnRow) -> str:
    said = "Sent as it came: continuation is off for it"
    if row.shadow_reason is None:
        return f"{said}."
    if row.shadow_reason == Reason.OK:
        return f"{said}; it could have been continued."
    return f"{said}; it could not have been continued either ({row.shadow_reason})."


def _first(row: TurnRow) -> str:
    what = "it echoes no earlier answer, so there is"
    if row.epoch_turn == 1 and row.epoch in (0, 1):
        what = "the first turn of its session, with"
    return f"Sent in full: {what} nothing to continue; this is normal."


def _reset(row: TurnRow) -> str:
    word = row.epoch_reset_reason
    if word is None:
        return "Sent in full: a new epoch began, as planned."
    cause = RESETS.get(word, f"“{word}”")
    return f"Sent in full: a new epoch began because {cause}; this is planned."


def _because(row: TurnRow) -> str:
    return (
        f" ({FALLBACKS.get(row.fallback_reason, row.fallback_reason)})"
        if row.fallback_reason
        else ""
    )


def _colon(row: TurnRow) -> str:
    if not row.fallback_reason:
        return "."
    return f": {FALLBACKS.get(row.fallback_reason, row.fallback_reason)}."


def _word_fallback(row: TurnRow) -> str:
    return f" ({row.fallback_reason})" if row.fallback_reason else ""


def _items(count: int) -> str:
    return "1 new item" if count == 1 else f"{count:,} new items"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole} %"
