"""Judges each turn of a random conversation: by the provider's transcripts, and by its oracle.

The provider core and its oracle share no code with the engine. What is known here beside them: which
faults were planted, which resets were asked for, and what the policy of the run allows.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.demo.provider.core import Provider
from app.demo.provider.headers import credential_of, lower_headers
from app.demo.provider.items import Item
from app.demo.provider.oracle import (
    changed_fields,
    extends,
    first_difference,
    same_item,
    same_transcript,
)
from app.demo.provider.verdict import Oracle, Verdict
from engine.model import Mode, Reason, Status, TurnFacts
from tests.support.frozen_oracle import one_form
from tests.support.regimes import Regime
from tests.support.report import Logical, Report, Sent

_ROOM = 1_000_000
"""Bytes of which no run has more: a budget below may be too small for one."""


FLAWS = {
    "no_response_id": "missing_response_id",
    "drop_done": "missing_output_items",
    "conflicting_output": "output_conflict",
}
"""Planted faults after which the engine must not trust the answer, and the reason it then gives."""

SENT_AGAIN = {
    "limit_reached": (Reason.CONNECTION_LOST, "limit_reached"),
    "server_error": (Reason.CONNECTION_LOST, "server_error"),
    "not_found": (Reason.PREVIOUS_RESPONSE_NOT_FOUND, None),
    "close_1009": (Reason.PAYLOAD_TOO_LARGE, "closed_1009"),
}
"""Planted faults that force a second, full attempt."""


@dataclass(slots=True)
class Judge:
    core: Provider
    oracle: Oracle
    report: Report
    regime: Regime
    sessions: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Tenant and the engine's session per response id."""
    baselines: dict[str, str] = field(default_factory=dict)
    flawed: dict[str, str] = field(default_factory=dict)
    cooled: set[str | None] = field(default_factory=set)
    """Kept responses on which a turn failed, or that were said not to be there."""
    had_resets: set[str] = field(default_factory=set)
    """Sessions, as the oracle names them, that ever had a reset."""
    resets: list[tuple[str, str, str]] = field(default_factory=list)
    """Tenant, the oracle's session and the engine's name of it, in their order."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    """What was sent and answered up to a response, in the bytes of the time."""
    bodies: set[str] = field(default_factory=set)
    """Of requests that are only observed."""

    def expect(self, sent: Sent) -> None:
        """Ask the oracle. To be called right before the request is given to the engine."""
        self.core.connections = [one for one in self.core.connections if one.open]
        sent.resets = len(self.resets)
        sent.fields = {**sent.fields, **self.regime.uncompared}
        if self.regime.policy.continuation == "observe":
            sent.logged = len(self.core.log)
            self.bodies.add(sent.body.decode("utf-8", "surrogatepass"))
            return  # what could have been is the twin's to say
        sent.expected = self.oracle.verdict(
            headers=sent.headers,
            session=sent.session,
            body=sent.fields,
            given=self._form(sent.logical),
            socket=sent.socket,
        )
        if self.regime.policy.continuation == "store":
            sent.expected = self._kept(sent, self.cooled) or Verdict("no_baseline")
            sent.possible = self._kept(sent, frozenset()) is not None
        sent.aged = any(
            one.latest is not None
            and one.latest.response_id == sent.expected.response_id
            and self.core.now() - one.opened_at >= self.regime.policy.max_connection_age - 1.0
            for one in self.core.connections
        )

    def _kept(self, sent: Sent, cooled: Container[str | None]) -> Verdict | None:
        """The longest response that the provider keeps and the request extends."""
        best: Verdict | None = None
        length = 0
        for turn in self.oracle.turns:
            mine = (turn.credential, turn.session) == (
                credential_of(lower_headers(sent.headers)),
                sent.session,
            )
            if not mine or turn.reset or not turn.held.stored or turn.response_id in cooled:
                continue
            if changed_fields(turn.body, sent.fields) or len(turn.held.items) < length:
                continue
            delta = extends(turn.held.items, sent.logical)
            if delta:
                best, length = Verdict("ok", turn.response_id, delta), len(turn.held.items)
        return best

    def conclude(self, sent: Sent, row: TurnFacts, outputs: list[Any] | None) -> None:
        """``outputs``: what the client was answered; None where it did not stay for it."""
        report = self.report
        report.turns += 1
        report.modes[str(row.mode)] += 1
        report.reasons[str(row.reason)] += 1
        report.outcomes[f"{row.mode} {row.reason}"] += 1
        report.clients[sent.client] += 1
        report.continued[sent.client] += bool(row.mode and row.mode.incremental)
        if sent.fault is not None:
            report.planted[sent.fault] += 1
        attempt = next((a for a in reversed(self.core.log) if _is_of(a, row)), None)
        if attempt is not None and attempt.overlapped:
            self._fault("overlap", row, "sent on a connection that was in use")
        if self.regime.policy.continuation == "observe":
            self._observed(sent, row)
        else:
            self._reason(sent, row)
            self._digests(sent, row)
        done = row.status in (Status.COMPLETED, Status.INCOMPLETE) or (
            row.status is Status.CLIENT_CLOSED and row.baseline_digest is not None
        )
        if done:
            self._transcript(sent, row, outputs)
            self._answered(sent, row)
        elif row.mode is Mode.HTTP_INCREMENTAL and row.status is not Status.CLIENT_CLOSED:
            self.cooled.add(row.previous_response_id)
        if sent.fault == "not_found":
            self.cooled.add(sent.expected.response_id)

    def _observed(self, sent: Sent, row: TurnFacts) -> None:
        """Nothing was changed: not a byte of the request, nor why it went as it went."""
        self.report.checked["requests unchanged"] += 1
        frames = [attempt.frame for attempt in self.core.log[sent.logged :]]
        body = sent.body.decode("utf-8", "surrogatepass")
        never_read = row.mode is None or row.error_code == "connection_lost"
        if (body not in frames and not never_read) or not self.bodies.issuperset(frames):
            self._fault("observed", row, "something else was sent than the client's request")
        reason = Reason.CONTINUATION_OFF if sent.previous is None else Reason.CLIENT_ANCHORED
        if row.reason is not reason:
            self._fault("observed", row, f"{row.reason} instead of {reason}")

    def reset(self, tenant: str, session: str, name: str) -> None:
        """The engine has reset this session (by its own name): nothing before is continued."""
        self.resets.append((tenant, session, name))
        self.had_resets.add(session)
        for turn in self.oracle.turns:
            if turn.session == session and self.sessions.get(turn.response_id) == (tenant, name):
                turn.reset = True

    def _fault(self, class_: str, row: TurnFacts, what: str) -> None:
        self.report.faults.append(f"{class_}: {row.turn_id}: {what}")

    # --- what the provider holds --------------------------------------------------------------

    def _transcript(self, sent: Sent, row: TurnFacts, outputs: list[Any] | None) -> None:
        rid = self._response_id(row)
        if rid is None:
            return
        held = self.core.held(rid)
        if sent.fault in FLAWS or outputs is None:
            outputs = [item.text for item in held.output]
        given = _with(sent.logical, outputs)
        if sent.previous in self.flawed:
            self.report.excused["flawed_anchor"] += 1
            return  # nobody but the provider knows what the client hangs on here
        self.report.checked["transcripts"] += 1
        if not same_transcript(self._thawed(held.items), self._form(given)):
            self.report.checked["transcripts that differ"] += 1
            at = first_difference(held.items, given)
            self._fault("transcript", row, f"the provider holds another history from item {at} on")

    def _form(self, given: Any) -> Any:
        """Items as they are compared: where a policy freezes keys, without these."""
        keys = self.regime.policy.freeze
        if not keys or isinstance(given, str):
            return given
        return [one_form(keys, x if isinstance(x, str) else json.dumps(x)) for x in given]

    def _thawed(self, held: tuple[Item, ...]) -> tuple[Item, ...]:
        keys = self.regime.policy.freeze
        return tuple(replace(x, text=one_form(keys, x.text)) for x in held) if keys else held

    def _frozen(self, sent: Sent, row: TurnFacts) -> None:
        """Only what the policy allows to move was frozen, and each of it is counted."""
        held = self.core.held(row.previous_response_id or "").items
        pairs = zip(held, sent.logical, strict=False)
        count = sum(not same_item(one, now) for one, now in pairs)
        self.report.checked["frozen items"] += count
        if row.frozen_items != count:
            self._fault("frozen", row, f"{row.frozen_items} items frozen, not {count}")

    def _response_id(self, row: TurnFacts) -> str | None:
        if row.response_id is not None:
            # A warm-up that was answered here is not the provider's.
            return row.response_id if row.response_id in self.core.transcripts else None
        last = self.core.log[-1]
        return last.response_id

    def _answered(self, sent: Sent, row: TurnFacts) -> None:
        rid = self._response_id(row)
        if rid is None or row.kind == "compaction":
            if row.kind == "compaction":
                self.had_resets.add(sent.session)
            return
        self.sessions[rid] = (row.tenant, row.session)
        if row.reason is Reason.CLIENT_ANCHORED and row.baseline_digest is None:
            return  # the engine passed it on and does not know what it left; so it says
        if row.baseline_digest is not None:
            self.baselines[rid] = row.baseline_digest
        flawed = sent.fault in FLAWS
        if sent.fault == "conflicting_output":
            flawed = _contradicts(self.core.held(rid).output)
        if flawed:
            self.flawed[rid] = FLAWS[sent.fault or ""]
        if isinstance(sent.logical, list):
            self.texts[rid] = [*sent.logical, *(item.text for item in self.core.held(rid).output)]
        over_socket = row.mode in (Mode.WS_FULL, Mode.WS_INCREMENTAL)
        leases = over_socket and not flawed and row.status is not Status.CLIENT_CLOSED
        if over_socket and sent.socket is not None and not flawed:
            self.oracle.socket_closed(sent.socket)  # a socket leases the chain that answered last
        self.oracle.answered(
            rid,
            headers=sent.headers,
            session=sent.session,
            body=sent.fields,
            socket=sent.socket if leases else None,
        )
        if self.regime.policy.freeze:
            turn = self.oracle.turns[-1]
            turn.held = replace(turn.held, items=self._thawed(turn.held.items))
        if (row.tenant, sent.session, row.session) in self.resets[sent.resets :]:
            self.oracle.turns[-1].reset = True

    # --- why it went as it went ---------------------------------------------------------------

    def _reason(self, sent: Sent, row: TurnFacts) -> None:
        reason, expected = str(row.reason), sent.expected.reason
        if row.reason is Reason.CLIENT_ANCHORED or row.status is Status.REFUSED:
            if sent.previous is None:
                self._fault("reason", row, f"{reason} without an anchor")
            return
        if expected == "ok":
            went_on = row.mode is not None and row.mode.incremental
            self.report.checked["extendable chains"] += 1
            self.report.checked["extended" if went_on else "left aside"] += 1
        if SENT_AGAIN.get(sent.fault or "") == (row.reason, row.fallback_reason):
            self.report.excused[reason] += expected == "ok"
            return
        if reason == "ok" and row.previous_response_id in self.flawed:
            self._fault("unproven", row, "continued an answer that was not to be trusted")
            return
        if reason == expected and (expected == "ok") == bool(row.mode and row.mode.incremental):
            return
        if expected == "ok":
            self._not_continued(sent, row)
        elif reason == "ok":
            slow = self.report.planted["slow_close"] + self.report.planted["slow_abort"]
            if sent.possible or (slow and row.error_code == "connection_lost"):
                return  # or the provider is about to close what the engine has seen end
            self._fault("unproven", row, f"continued, the oracle says {expected}")
        elif self.regime.exact and not self._explained(sent, row):
            self._fault("reason", row, f"{reason}, the oracle says {expected}")

    def _not_continued(self, sent: Sent, row: TurnFacts) -> None:
        """An extendable chain was left aside: by policy, or needlessly."""
        reason = str(row.reason)
        flaw = self.flawed.get(sent.expected.response_id or "")
        if flaw is not None:
            if reason != flaw and self.regime.exact:
                self._fault("reason", row, f"{reason}, but the answer before was {flaw}")
            return
        again = sent.fault in SENT_AGAIN  # and what had to be sent again was the whole
        if reason == "payload_too_large" and not again and not self._is_large(sent):
            self.report.checked["left aside without need"] += 1
            self._fault("needless_full", row, "too large, though what is new is small")
            return
        if sent.aged or reason in self.regime.allowed:
            self.report.excused["connection_age" if sent.aged else reason] += 1
            return
        if self._was_resent(row):
            self.report.excused["sent again after a loss"] += 1
            return
        if self.regime.bounds.bytes < _ROOM and self._is_spelled_anew(sent):
            self.report.excused["spelled anew where only digests are kept"] += 1
            return
        self.report.checked["left aside without need"] += 1
        self._fault(
            "needless_full", row, f"{reason} ({row.fallback_reason}), though a chain was free"
        )

    def _was_resent(self, row: TurnFacts) -> bool:
        """The policy has turns sent again whose connection was lost before the first event."""
        slow = self.report.planted["slow_close"] + self.report.planted["slow_abort"]
        lost = (row.reason, row.fallback_reason) == (Reason.CONNECTION_LOST, "closed")
        return self.regime.policy.retry_ambiguous and lost and (row.attempts > 1 or slow > 0)

    def _is_spelled_anew(self, sent: Sent) -> bool:
        """Whether an item is not, byte for byte, what was sent or answered before in its place.

        Beyond the byte budget the engine has only digests of those bytes.
        """
        before = self.texts.get(sent.expected.response_id or "")
        if before is None or not isinstance(sent.logical, list):
            return True  # a string, then or now
        return sent.logical[: len(before)] != before

    def _is_large(self, sent: Sent) -> bool:
        """Whether the frame of the continuation may exceed the limit: the limit is of what is sent."""
        items = sum(len(one) if isinstance(one, str) else 200 for one in sent.expected.delta or ())
        return len(json.dumps(sent.fields)) + items + 250 > self.regime.policy.max_frame_bytes

    def _explained(self, sent: Sent, row: TurnFacts) -> bool:
        reason = str(row.reason)
        if reason == "epoch_reset" and sent.session in self.had_resets:
            return True  # the oracle does not know of resets that nothing has consumed yet
        if sent.expected.response_id in self.flawed:
            return True  # what was flawed counts for less than the oracle thinks
        return reason in self.regime.allowed

    def _digests(self, sent: Sent, row: TurnFacts) -> None:
        """The proof in the ledger: a continuation's prefix is what the turn before left."""
        if row.mode is None or not row.mode.incremental or row.reason is Reason.CLIENT_ANCHORED:
            return
        if row.prefix_digest is None and row.baseline_digest is None:
            self.report.excused["mode_of_an_attempt_before"] += 1
            return  # it was sent again, and that attempt got nowhere
        if self.regime.policy.freeze and sent.previous is None:
            self._frozen(sent, row)
        before = self.baselines.get(row.previous_response_id or "")
        if before is not None and row.prefix_digest != before:
            self._fault("digest", row, "its prefix is not what the turn before left")


def _is_of(attempt: Any, row: TurnFacts) -> bool:
    return row.response_id is not None and attempt.response_id == row.response_id


def _contradicts(output: Sequence[Item]) -> bool:
    """Whether the planted conflict is one: a blank behind the arguments of a call is none."""
    for item in reversed(output):
        arguments = item.value.get("arguments")
        if isinstance(arguments, str):
            return not same_item(item, {**item.value, "arguments": arguments + " "})
        if item.value.get("input") or item.kind == "message":
            break
    return True


def _with(logical: Logical, outputs: list[Any]) -> Any:
    if isinstance(logical, str):
        content = [{"type": "input_text", "text": logical}]
        first = json.dumps({"type": "message", "role": "user", "content": content})
        return [first, *outputs]
    return [*logical, *outputs]
