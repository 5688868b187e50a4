"""LingTai's ``token_ledger.jsonl``, with the ``events.jsonl`` that lies beside it.

One object a call, written when it has ended, its time in whole seconds. It is the one log that
tells modes and reasons. What the tool had planned and what went over the wire are two things: over
REST the whole input is always sent, and ``rest_incremental`` says only that the prefix had not
changed. So a call over REST has the plan as its shadow mode and reason. All values of the Codex
fields are texts, numbers too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from app.importers.foreign import Epochs, chain_of, host_of, milliseconds, row_of
from app.importers.importer import Around, Importer, Item, Remark, Skipped
from app.importers.json_lines import count, first_records, records, text
from app.importers.lines import Line
from app.importers.lingtai_events import EVENTS, Events
from app.importers.own_row import NO_TIME
from app.ledger.rows import TurnRow
from engine.model import DivergenceClass, Evidence, Kind, Mode, Reason, Usage, UsageState

NAME = "lingtai"
_IDENTIFYING = frozenset({"ts", "input", "output"})
_MAIN = frozenset({"main", "tc_wake", "heal", "notification_sync"})
"""Sources that are turns of the agent's one conversation."""
_SUMMARIES = frozenset({"summarize", "summarize_apriori", "retroactive_compaction"})
_MODES = {
    "ws_full": Mode.WS_FULL,
    "ws_incremental": Mode.WS_INCREMENTAL,
    "rest_full": Mode.HTTP_FULL,
    "rest_incremental": Mode.HTTP_FULL,
    "rest_full_fallback": Mode.HTTP_FULL,
    "rest_full_self_heal": Mode.HTTP_FULL,
    "stateless_full_fallback": Mode.HTTP_FULL,
    "stateless_full_self_heal": Mode.HTTP_FULL,
    "stateless_full_store_forced_false": Mode.HTTP_FULL,
    "stateful_incremental": Mode.HTTP_INCREMENTAL,
    "http_full": Mode.HTTP_FULL,
}
_AXES = {
    ("websocket", "full"): Mode.WS_FULL,
    ("websocket", "incremental"): Mode.WS_INCREMENTAL,
    ("rest", "full"): Mode.HTTP_FULL,
    ("rest", "incremental"): Mode.HTTP_FULL,
}
"""Transport and transfer, for a mode that this version does not know."""
_REASONS = {"empty_delta_rejected": Reason.EMPTY_DELTA}
"""Words that we have another one for; all others stay as they are."""
_RETRIED = ("_fallback", "_self_heal")
_NO_EVENTS = (
    f"There is no {EVENTS} beside it: how long calls took, which figures are estimates, and when "
    "the agent molted is not known."
)


def recognizes(head: bytes) -> bool:
    return any(found.keys() >= _IDENTIFYING for found in first_records(head))


def read(lines: Iterable[Line]) -> Iterator[Item]:
    return read_around(lines, Around())


def read_around(lines: Iterable[Line], around: Around) -> Iterator[Item]:
    events = Events(around.beside(EVENTS))
    if not events.there:
        yield Remark(_NO_EVENTS)
    ledger = _Ledger(events)
    for found in records(lines):
        if isinstance(found, Skipped):
            yield found
        else:
            yield ledger.item(*found)


class _Ledger:
    """What of the lines before one matters to it."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._agent: str | None = None
        """The ledger's own name, for rows that name no session: of its first record."""
        self._ts: str | None = None
        self._same: Counter[tuple[Any, ...]] = Counter()
        """How often each identity came in this second."""
        self._talks: dict[str, _Talk] = {}

    def item(self, number: int, given: dict[str, Any]) -> TurnRow | Skipped:
        ended_at = milliseconds(given.get("ts"))
        if ended_at is None:
            return Skipped(number, NO_TIME, "ts")
        if self._agent is None:
            self._agent = "ledger-" + chain_of(NAME, _whole(given))
        identity = self._identity(given)
        call = text(given.get("api_call_id"))
        if given.get("estimated") is True or call in self._events.estimated:
            return Skipped(number, "is an estimate of the tool's, not the provider's figure")
        duration = self._events.durations.get(call) if call else None
        session = _session(given) or self._agent
        source = text(given.get("source")) or "main"
        lane = "main" if source in _MAIN else source
        chain = chain_of(NAME, session, lane)
        rebuilt = self._events.rebuilt(ended_at) if lane == "main" else None
        talk = self._talks.setdefault(chain, _Talk())
        return row_of(
            NAME,
            identity,
            started_at=max(0, ended_at - round(duration or 0)),
            ended_at=ended_at,
            usage=_usage(given),
            evidence=_evidence(given),
            duration_ms=duration,
            kind=str(Kind.COMPACTION) if source in _SUMMARIES else None,
            session=session,
            chain=chain,
            **talk.epoch(given, rebuilt),
            client=NAME,
            upstream=host_of(given.get("endpoint")),
            model=text(given.get("model")),
            reasoning_effort=text(given.get("codex_reasoning_effort")),
            previous_response_id=text(given.get("codex_previous_response_id")),
            prompt_cache_key=text(given.get("codex_prompt_cache_key")),
            store={"true": True, "false": False}.get(str(given.get("codex_store"))),
            changed_fields=text(given.get("codex_ws_changed_fields")),
            **_wire(given),
        )

    def _identity(self, given: dict[str, Any]) -> tuple[str | int | None, ...]:
        """What makes a record this one. A daemon's call is in its own ledger and in its parent's;
        rows without an id are told apart by how often the same came in one second."""
        run = text(given.get("run_id"))
        known: tuple[str | int | None, ...]
        if run is not None:
            figures = [count(given.get(name)) for name in ("input", "output", "cached")]
            known = ("daemon", run, given["ts"], *figures)
        elif call := text(given.get("api_call_id")):
            return ("call", call)
        else:
            known = ("row", _whole(given))
        if given["ts"] != self._ts:
            self._ts = given["ts"]
            self._same.clear()
        self._same[known] += 1
        return (*known, self._same[known])


def _whole(given: dict[str, Any]) -> str:
    return msgspec.json.encode(given, order="sorted").decode()


class _Talk:
    """One conversation: its epochs."""

    def __init__(self) -> None:
        self._epochs = Epochs()
        self._compacted = False

    def epoch(self, given: dict[str, Any], rebuilt: str | None) -> dict[str, Any]:
        """Its columns. What lies between this turn and the one before it is in the tool's word."""
        compacted = given.get("codex_compacted") == "true"
        word = text(given.get("codex_ws_epoch_reset_reason")) or rebuilt
        if word is None and given.get("codex_ws_delta_reason") == Reason.EPOCH_RESET:
            word = str(Reason.EPOCH_RESET)
        if word is None and compacted and not self._compacted:
            word = "compaction"
        self._compacted = compacted
        return self._epochs.next(word)


def _session(given: dict[str, Any]) -> str | None:
    for name in ("codex_session_id", "codex_thread_id", "run_id", "codex_prompt_cache_key"):
        if found := text(given.get(name)):
            return found
    return None


def _usage(given: dict[str, Any]) -> Usage:
    """``input`` counts what was cached. A call of which all is 0 had no usage to tell."""
    told, cached, out, thinking = (
        count(given.get(name)) for name in ("input", "cached", "output", "thinking")
    )
    if not any((told, cached, out, thinking)):
        return Usage()
    inside = thinking is not None and out is not None and thinking <= out
    return Usage(
        input_tokens=told,
        cached_tokens=cached,
        output_tokens=out,
        reasoning_tokens=thinking if inside else None,
        state=UsageState.REPORTED,
    )


def _wire(given: dict[str, Any]) -> dict[str, Any]:
    """How it was sent and why, and how many items it was of."""
    word = text(given.get("codex_request_mode"))
    axes = (str(given.get("codex_transport")), str(given.get("codex_transfer_mode")))
    mode = _MODES.get(word or "") or _AXES.get(axes)
    if mode is None:
        return {}
    told = text(given.get("codex_ws_delta_reason"))
    reason = str(_REASONS.get(told or "", told)) if told else None
    error = text(given.get("codex_fallback_error_type"))
    total, sent = _number(given, "cur_input_len"), _number(given, "delta_len")
    wire: dict[str, Any] = {
        "mode": str(mode),
        "reason": reason,
        "baseline_items": _number(given, "baseline_len"),
        "items_total": total,
        "items_sent": sent if mode.incremental else total,
    }
    over_http = mode is Mode.HTTP_FULL
    if mode is Mode.WS_FULL and error is not None:
        # The tool writes the planned mode of a socket that could not be opened: it went by POST.
        over_http = True
        wire |= {"mode": str(Mode.HTTP_FULL), "reason": str(Reason.WS_UNAVAILABLE)}
    elif over_http:
        wire["reason"] = str(Reason.CONTINUATION_OFF)
    if over_http and reason is not None:
        planned = Mode.WS_INCREMENTAL if reason == Reason.OK else Mode.WS_FULL
        wire |= {"shadow_mode": str(planned), "shadow_reason": reason}
    retried = word if word is not None and word.endswith(_RETRIED) else None
    wire["fallback_reason"] = error or retried
    return wire


def _evidence(given: dict[str, Any]) -> Evidence | None:
    index, before, now = (
        _number(given, name) for name in ("mismatch_index", "baseline_len", "cur_input_len")
    )
    if index is None or before is None or now is None:
        return None
    return Evidence(
        index=index,
        kind_before=_kind(given, "prev"),
        kind_now=_kind(given, "cur"),
        length_before=before,
        length_now=now,
        klass=DivergenceClass.TRUNCATED_TAIL if index == now < before else None,
    )


def _kind(given: dict[str, Any], side: str) -> str | None:
    """An item's type; a message has none and is told by its role."""
    role = text(given.get(f"codex_ws_mismatch_{side}_role"))
    return text(given.get(f"codex_ws_mismatch_{side}_type")) or (role and f"message:{role}")


def _number(given: dict[str, Any], name: str) -> int | None:
    """A number of the tool's comparison; -1 is none."""
    value = given.get(f"codex_ws_{name}")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return None


LINGTAI = Importer(NAME, "LingTai's token ledger", recognizes, read, read_around, (EVENTS,))
