"""Why a turn went the way it did, in one plain sentence per row.

The sentence is built from what the ledger holds of the turn, which is never content; the usual
cause and remedy are those of ``app.analysis.catalogue``. Words that
are not the engine's own (an importer's, a caller's reason for a reset) are shown as they stand.
A turn that was not continued although nothing is wrong is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.analysis import divergences, field_changes, lookup
from app.analysis.catalogue import CHANGES, Advice
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
    cause: str | None = None
    """What usually lies behind it; None where there is nothing to add."""
    remedy: str | None = None


FALLBACKS: dict[str, str] = {
    "connect_failed": "no connection could be made",
    "cooling_down": "WebSocket is resting after several losses",
    "no_connection_free": "every connection was in use",
    "frame_size": "the upstream's limit for one message",
    "closed_1009": "the upstream closed the connection because the message was too large",
    "server_error": "the upstream answered with a server error",
    "limit_reached": "the provider's age limit of a connection was reached",
    "closed": "the connection had been closed",
}
"""Words of ``fallback_reason`` behind a worse wire; any other is shown as it stands."""

LOST: dict[str, str] = {
    "closed": "the connection that held the conversation had been closed",
    "after_failed": "the turn before it failed, which ended its connection",
    "after_timeout": "the turn before it timed out, which ended its connection",
    "after_cancel": "the turn before it was cancelled, which ended its connection",
    "limit_reached": "its connection had reached the provider's age limit",
    "evicted": "its connection had been given up to make room",
    "superseded": "it goes on from an earlier point, and its connection had moved on",
    "client_anchored": "the client had gone on by itself, and what came of that is not known",
    "http": "the turn before it was answered over HTTP, so no connection held the conversation",
    "rejected": "the provider no longer knew the answer before it",
    "epoch_reset": "its connection had been retired with the epoch before",
    "handshake_changed": "the client's headers changed, so its connection could not be used",
    "server_error": "the upstream failed on its connection, and the turn was sent again",
    "diagnostics_refused": "the upstream refused to be asked about its cache, so the turn was sent "
    "again without the question",
}
"""Words of ``fallback_reason`` behind ``connection_lost``."""

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


def explain_all(row: TurnRow) -> Why:
    """What can be said of all breaks that have this one's fingerprint."""
    return explain(row, where=divergences.where_all_parted)


def explain(row: TurnRow, *, where: Callable[[TurnRow], str] = divergences.where_parted) -> Why:
    """The sentence and what kind of turn it tells of; ``where`` says how its history parted."""
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
    return _told(row, _reason(row, row.reason, where), _advice(row, row.reason))


def _told(row: TurnRow, sentence: str, advice: Advice | None) -> Why:
    if _incremental(row):
        return Why(sentence, WhyKind.CONTINUED)
    if row.reason == Reason.OK:
        return Why(sentence, WhyKind.UNKNOWN)
    if row.eligible:
        kind = WhyKind.BREAK
    else:
        kind = WhyKind.EXPECTED if row.reason in set(Reason) else WhyKind.UNKNOWN
    if advice is None:
        return Why(sentence, kind)
    return Why(sentence, kind, advice.cause, advice.remedy)


def _advice(row: TurnRow, reason: str) -> Advice | None:
    if reason == Reason.CONTINUATION_OFF and row.shadow_reason is not None:
        reason = row.shadow_reason
    if reason in lookup.COMPARED:
        name = lookup.of_change(row)
        return None if name is None else CHANGES[name]
    return lookup.of_reason(reason, row.fallback_reason)


def _stopped(row: TurnRow) -> str:
    said = STOPPED.get(row.status, f"The turn ended as {row.status}")
    if row.status == Status.ERROR and row.http_status is not None:
        said = "The turn was answered with an error"
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


def _reason(row: TurnRow, reason: str, where: Callable[[TurnRow], str]) -> str:
    match reason:
        case Reason.OK:
            return _continued(row)
        case Reason.CONTINUATION_OFF:
            return _off(row, where)
        case Reason.CLIENT_ANCHORED:
            return _anchored(row)
        case Reason.PAYLOAD_TOO_LARGE:
            size = f" of {row.bytes_total:,} bytes" if row.bytes_total is not None else ""
            return f"Sent over HTTP: the request{size} is too large for one WebSocket message."
        case Reason.WS_REJECTED:
            return f"Sent in full over HTTP: the upstream offers no WebSocket{_because(row)}."
        case Reason.WS_UNAVAILABLE:
            return f"Sent in full over HTTP: no WebSocket was to be had{_because(row)}."
        case Reason.STORE_UNSUPPORTED if row.fallback_reason == "store_false":
            return "Sent in full: the client asks not to store the response, so none is continued."
        case Reason.STORE_UNSUPPORTED:
            return "Sent in full: this upstream does not keep responses, so none can be continued."
        case Reason.NO_BASELINE:
            return _first(row)
        case Reason.EPOCH_RESET:
            return _reset(row)
        case Reason.NON_INPUT_FIELDS_CHANGED:
            return field_changes.fields_changed(row)
        case Reason.PREFIX_MISMATCH:
            return f"Sent in full: {where(row)}."
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
            if row.fallback_reason == "leased":
                return "Sent in full: another client's socket goes on with the conversation."
            return (
                "Sent in full beside another turn: the conversation it extends "
                "was still being answered."
            )
        case Reason.CONNECTION_LOST:
            return f"Sent in full: {_lost(row.fallback_reason)}."
        case Reason.PREVIOUS_RESPONSE_NOT_FOUND:
            return "Sent again in full: the provider no longer knew the response to be continued."
        case Reason.INTERNAL_ERROR:
            return "Sent in full and unchanged: Warmline failed to decide, and let it through."
        case _:
            by = f" by {row.source}" if row.source.startswith("import") else ""
            return f"Recorded{by} as “{reason}”{_word_fallback(row)}."


def _continued(row: TurnRow) -> str:
    if not _incremental(row):
        how = row.mode or "an unknown mode"
        return f"The prefix was unchanged, yet the turn was sent as {how}."
    if row.items_sent is None or row.items_total is None:
        return "Continued: only what is new was sent."
    new = _items(row.items_sent)
    saved = ""
    if row.bytes_total and row.bytes_sent is not None and row.bytes_sent < row.bytes_total:
        saved = f", {_percent(row.bytes_total - row.bytes_sent, row.bytes_total)} fewer bytes"
    return f"Continued: {new} of {row.items_total:,} sent{saved}."


def _anchored(row: TurnRow) -> str:
    if _incremental(row):
        return "Continued by the client itself, from a response that Warmline does not hold."
    return "Passed on unchanged: the client names a response that Warmline does not hold."


def _incremental(row: TurnRow) -> bool:
    return row.mode in (Mode.WS_INCREMENTAL, Mode.HTTP_INCREMENTAL)


def _off(row: TurnRow, where: Callable[[TurnRow], str]) -> str:
    said = "Sent as it came: continuation is off for it"
    if row.shadow_reason is None:
        return f"{said}."
    if row.shadow_reason == Reason.OK:
        return f"{said}; it could have been continued."
    why = _shadow(row, row.shadow_reason, where)
    return f"{said}; it could not have been continued either{why}."


def _shadow(row: TurnRow, reason: str, where: Callable[[TurnRow], str]) -> str:
    if reason == Reason.NON_INPUT_FIELDS_CHANGED:
        return f": {field_changes.what_changed(row)}"
    if reason == Reason.PREFIX_MISMATCH:
        return f": {where(row)}"
    return f" ({reason})"


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
    return f" ({_fallback(row.fallback_reason)})" if row.fallback_reason else ""


def _fallback(word: str) -> str:
    status = word.removeprefix("upgrade_")
    if status != word and status.isdigit():
        return f"it answered the upgrade with {status}"
    return FALLBACKS.get(word, word)


def _lost(word: str | None) -> str:
    gone = "the connection that held the conversation was gone"
    return gone if word is None else LOST.get(word, f"{gone} ({word})")


def _word_fallback(row: TurnRow) -> str:
    return f" ({row.fallback_reason})" if row.fallback_reason else ""


def _items(count: int) -> str:
    return "1 new item" if count == 1 else f"{count:,} new items"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole} %"
