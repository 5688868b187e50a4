"""Which row of a session goes on from which: the chains that verdicts on the cache are about.

Rows come in the order of ``order_of``: as they ended, so that whatever a row can go on from came
before it, and gateways, which write turns at their end, hardly ever bring one too late. A row
follows, the first that holds:

1. the row whose response it names (``previous_response_id``);
2. the latest row of its own ``chain``;
3. nothing, if it is of a log that names its chain and gives no reason: a sub-agent begins, or
   another conversation of the same session;
4. of a log that tells no modes: the row before it;
5. nothing, if it has ``no_baseline`` (also as ``shadow_reason``) and is shorter than the row that
   it would follow by its time: another conversation of the same session. A longer one is the same
   after a restart;
6. the row that ended last before it started.

Two rows may follow one: there the chain branches. What is remembered of a session is bounded,
however long it is.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from app.analysis.testimony import Told, compared
from app.analysis.verdicts import Judged, Place, follow, stored
from app.ledger.rows import TurnRow
from engine.model import Reason

ANSWERS = 512
"""The newest responses that a row may name."""
CHAINS = 64
"""The chains that went on last."""
ENDED = 64
"""The rows that ended last."""

Order = tuple[int, int, int, int, int, str]


def order_of(row: TurnRow) -> Order:
    """As rows ended. Where clocks are coarse: as the client counted, else as a history grows."""
    return (
        row.ended_at,
        row.started_at,
        -1 if row.epoch is None else row.epoch,
        -1 if row.epoch_turn is None else row.epoch_turn,
        -1 if row.input_tokens is None else row.input_tokens,
        row.turn_id,
    )


class Link(Told, Protocol):
    """What is read of a row to tell which one it goes on from."""

    @property
    def source(self) -> str: ...
    @property
    def chain(self) -> str | None: ...
    @property
    def mode(self) -> str | None: ...
    @property
    def previous_response_id(self) -> str | None: ...
    @property
    def response_id(self) -> str | None: ...
    @property
    def started_at(self) -> int: ...
    @property
    def ended_at(self) -> int: ...
    @property
    def items_total(self) -> int | None: ...
    @property
    def input_tokens(self) -> int | None: ...


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Ended(Generic[T]):
    at: int
    known: T
    items: int | None
    tokens: int | None


class Before(Generic[T]):
    """What is known of the row before, for the rows of one session as they come."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, T] = OrderedDict()
        self._chains: OrderedDict[str, T] = OrderedDict()
        self._ended: deque[_Ended[T]] = deque(maxlen=ENDED)

    def of(self, row: Link) -> T | None:
        """None of a row that begins a chain."""
        if row.previous_response_id is not None and row.previous_response_id in self._answers:
            return self._answers[row.previous_response_id]
        if row.chain is not None and row.chain in self._chains:
            return self._chains[row.chain]
        logged = row.source.startswith("import") and row.reason is None
        if logged and row.chain is not None:
            return None
        silent = logged and row.mode is None
        last = next(
            (one for one in reversed(self._ended) if silent or one.at <= row.started_at), None
        )
        if last is None or (compared(row) == Reason.NO_BASELINE and not _longer(row, last)):
            return None
        return last.known

    def push(self, row: Link, known: T) -> None:
        """What those that follow the row shall know of it."""
        if row.response_id is not None:
            _put(self._answers, row.response_id, known, ANSWERS)
        if row.chain is not None:
            _put(self._chains, row.chain, known, CHAINS)
        self._ended.append(_Ended(row.ended_at, known, row.items_total, row.input_tokens))


class Session:
    """Judges the rows of one session as they come.

    ``cut``: its beginning is no longer kept. What its first rows were taken for is then as good as
    it gets, and stays.
    """

    def __init__(self, *, cut: bool = False) -> None:
        self._cut = cut
        self._before: Before[Place] = Before()

    def push(self, row: TurnRow) -> dict[str, Judged]:
        """The verdicts that are new or another one with this row, by ``turn_id``."""
        before = self._before.of(row) or Place()
        place, changed = follow(before, row, start=self._known(row))
        self._before.push(row, place)
        return changed

    def _known(self, row: TurnRow) -> Judged | None:
        return stored(row) if self._cut else None


def judge_session(rows: Iterable[TurnRow]) -> dict[str, Judged]:
    """The verdicts on all rows of one session, in whatever order they are given."""
    session = Session()
    found: dict[str, Judged] = {}
    for row in sorted(rows, key=order_of):
        found |= session.push(row)
    return found


def _longer(row: Link, last: _Ended[T]) -> bool:
    """Whether a row is at least as long as another; what cannot be told is taken for no."""
    if row.items_total is not None and last.items is not None:
        return row.items_total >= last.items
    if row.input_tokens is not None and last.tokens is not None:
        return row.input_tokens >= last.tokens
    return False


def _put(names: OrderedDict[str, T], name: str, known: T, most: int) -> None:
    names[name] = known
    names.move_to_end(name)
    if len(names) > most:
        names.popitem(last=False)
