"""Proof in the ledger: every continued turn hangs on exactly what the turn before it left.

For an incremental turn ``prefix_digest`` is the keyed digest of the transcript that it continued;
it has to equal the ``baseline_digest`` of the turn whose ``response_id`` it names (DESIGN 6). The
digests are a chain of hashes over the items' own bytes, so that equality means: not a byte of what
the provider holds was taken for something else.

What cannot be checked is told apart from what is wrong: rows are pruned, imported, or of turns that
Warmline passed on without knowing what they hang on.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Engine, select

from app.ledger import queries
from app.ledger.filters import Filter
from app.ledger.models import turns
from engine.model import Mode

c = turns.c
CHUNK = 1_000
PENDING = 500
"""Rows that wait for their predecessor to be looked up, together."""
REMEMBERED = 50_000
"""Answers whose baseline is remembered: those after which nothing came for long are looked up."""
_INCREMENTAL = [str(mode) for mode in Mode if mode.incremental]


class Verdict(StrEnum):
    """What is known of an incremental turn."""

    VERIFIED = "verified"
    PREFIX_DIFFERS = "prefix_differs"
    """The turn before left another transcript than the one that this turn continued."""
    OTHER_TENANT = "other_tenant"
    """It continues a response that was another tenant's, or another upstream's."""
    NAMES_NO_RESPONSE = "names_no_response"
    """It says what it continued, and not which response."""
    NO_DIGEST = "no_digest"
    """Nobody knows what it continued: the client's own anchor, an import, no answer."""
    NO_PREDECESSOR = "no_predecessor"
    """No row has the response that it continues: pruned, or written elsewhere."""
    PREDECESSOR_WITHOUT_DIGEST = "predecessor_without_digest"

    @property
    def wrong(self) -> bool:
        return self in _WRONG


_WRONG = frozenset({Verdict.PREFIX_DIFFERS, Verdict.OTHER_TENANT, Verdict.NAMES_NO_RESPONSE})
WORDS: Mapping[Verdict, str] = {
    Verdict.VERIFIED: "continues exactly what the turn before left",
    Verdict.PREFIX_DIFFERS: "continues another transcript than the turn before left",
    Verdict.OTHER_TENANT: "continues a response of another tenant or upstream",
    Verdict.NAMES_NO_RESPONSE: "is incremental and names no response that it continues",
    Verdict.NO_DIGEST: "has no digest of what it continued",
    Verdict.NO_PREDECESSOR: "continues a response of which no row is left",
    Verdict.PREDECESSOR_WITHOUT_DIGEST: "continues a turn that has no digest",
}


class Continued(NamedTuple):
    """The columns of an incremental turn that the audit reads."""

    turn_id: str
    session: str | None
    session_key: str
    tenant: str
    upstream: str
    previous_response_id: str | None
    prefix_digest: str | None


class Answered(NamedTuple):
    """The columns of a turn that others may continue."""

    tenant: str
    upstream: str
    response_id: str
    baseline_digest: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One incremental turn that is not verified."""

    turn: Continued
    verdict: Verdict


@dataclass(slots=True)
class Result:
    """``rows`` were read; each incremental one has a verdict."""

    rows: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)

    @property
    def incremental(self) -> int:
        return self.verdicts.total()

    @property
    def wrong(self) -> int:
        return sum(count for verdict, count in self.verdicts.items() if verdict.wrong)

    @property
    def unknown(self) -> int:
        return self.incremental - self.wrong - self.verdicts[Verdict.VERIFIED]


def judge(turn: Continued, candidates: Sequence[Answered]) -> Verdict:
    """What is known of a turn, given all rows with the response id that it names.

    A response may have more than one row (a turn that was recorded by two gateways), and more than
    one turn may continue it (forks over stored responses): one that fits is enough.
    """
    if turn.prefix_digest is None:
        return Verdict.NO_DIGEST
    if turn.previous_response_id is None:
        return Verdict.NAMES_NO_RESPONSE
    own = [one for one in candidates if (one.tenant, one.upstream) == (turn.tenant, turn.upstream)]
    if not own:
        # An import may bring the same response under its own tenant: only equal digests are proof.
        taken = any(one.baseline_digest == turn.prefix_digest for one in candidates)
        return Verdict.OTHER_TENANT if taken else Verdict.NO_PREDECESSOR
    digests = {one.baseline_digest for one in own} - {None}
    if turn.prefix_digest in digests:
        return Verdict.VERIFIED
    return Verdict.PREFIX_DIFFERS if digests else Verdict.PREDECESSOR_WITHOUT_DIGEST


Key: TypeAlias = tuple[str, str, str]


class Recent:
    """The latest answers, by tenant, upstream and response id, within a bound."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._digests: OrderedDict[Key, set[str]] = OrderedDict()

    def add(self, answered: Answered) -> None:
        if answered.baseline_digest is None:
            return
        key = (answered.tenant, answered.upstream, answered.response_id)
        self._digests.setdefault(key, set()).add(answered.baseline_digest)
        self._digests.move_to_end(key)
        while len(self._digests) > self._limit:
            self._digests.popitem(last=False)

    def holds(self, turn: Continued) -> bool:
        """Whether one of them is what the turn continued: then there is nothing to look up."""
        key = (turn.tenant, turn.upstream, turn.previous_response_id or "")
        return turn.prefix_digest in self._digests.get(key, ())


def audit(
    engine: Engine,
    view: Filter,
    result: Result,
    *,
    progress: Callable[[int], None] = lambda _rows: None,
) -> Iterator[Finding]:
    """Verify the rows of a view; every incremental turn that is not verified is yielded.

    ``result`` is counted up as the findings are taken. Predecessors are found wherever they are,
    in the view or not. Memory does not grow with the ledger: rows are read in chunks, oldest first,
    and of the answers only the last ``REMEMBERED`` digests are kept.
    """
    recent = Recent(REMEMBERED)
    pending: list[Continued] = []
    for chunk in queries.stream(engine, view, columns=_READ, chunk=CHUNK):
        for *known, response_id, baseline, mode in chunk:
            turn = Continued(*known)
            if response_id is not None:
                recent.add(Answered(turn.tenant, turn.upstream, response_id, baseline))
            if mode not in _INCREMENTAL:
                continue
            if turn.prefix_digest is not None and recent.holds(turn):
                result.verdicts[Verdict.VERIFIED] += 1
            else:
                pending.append(turn)
            if len(pending) >= PENDING:
                yield from _settle(engine, pending, result)
        result.rows += len(chunk)
        progress(result.rows)
    yield from _settle(engine, pending, result)


def _settle(engine: Engine, pending: list[Continued], result: Result) -> Iterator[Finding]:
    """Judge the rows whose predecessor was not among the latest answers."""
    asked = [turn for turn in pending if turn.prefix_digest is not None]
    found = _predecessors(engine, asked)
    for turn in pending:
        verdict = judge(turn, found.get(turn.previous_response_id or "", ()))
        result.verdicts[verdict] += 1
        if verdict is not Verdict.VERIFIED:
            yield Finding(turn, verdict)
    pending.clear()


def _predecessors(engine: Engine, asked: Sequence[Continued]) -> dict[str, list[Answered]]:
    """The rows with the response ids that these turns name, by response id.

    First those within their sessions, for which there is an index; then everywhere, for the turns
    that are not verified by them.
    """
    found: dict[str, list[Answered]] = {}
    left = list(asked)
    for near in (True, False):
        ids = {turn.previous_response_id for turn in left if turn.previous_response_id is not None}
        if not ids:
            break
        condition: ColumnElement[bool] = c.response_id.in_(sorted(ids))
        if near:
            condition = condition & c.session_key.in_(sorted({turn.session_key for turn in left}))
        query = select(c.tenant, c.upstream, c.response_id, c.baseline_digest).where(condition)
        read: dict[str, list[Answered]] = {}
        with engine.connect() as connection:
            for record in connection.execute(query):
                answered = Answered(*record)
                read.setdefault(answered.response_id, []).append(answered)
        found |= read
        left = [
            turn
            for turn in left
            if judge(turn, found.get(turn.previous_response_id or "", ())) is not Verdict.VERIFIED
        ]
    return found


_READ = (*Continued._fields, "response_id", "baseline_digest", "mode")


def line(finding: Finding, form: str) -> str:
    """A finding as one line of ``text`` or ``jsonl``."""
    turn, verdict = finding.turn, finding.verdict
    if form == "jsonl":
        return json.dumps({**turn._asdict(), "verdict": verdict, "wrong": verdict.wrong})
    named = turn.session if turn.session and turn.session.isprintable() else turn.session_key
    kind = "wrong" if verdict.wrong else "unknown"
    before = f" (response {turn.previous_response_id})" if turn.previous_response_id else ""
    return f"{kind}: turn {turn.turn_id} of session {named} {WORDS[verdict]}{before}"


def summary(result: Result, form: str) -> str:
    """The counts as one line of ``text`` or ``jsonl``."""
    counts = {verdict.value: result.verdicts[verdict] for verdict in Verdict}
    if form == "jsonl":
        totals = {"rows": result.rows, "incremental": result.incremental}
        return json.dumps({**totals, **counts, "wrong": result.wrong, "unknown": result.unknown})
    told = [f"{number} {verdict}" for verdict, number in result.verdicts.most_common()]
    return (
        f"{result.rows} turns read, {result.incremental} of them incremental: "
        f"{result.verdicts[Verdict.VERIFIED]} verified, {result.wrong} wrong, "
        f"{result.unknown} unknown" + (f" ({', '.join(told)})" if result.unknown else "")
    )
