"""Which record of a log tells of a call that a gateway has a row of, and what that row learns.

Pure. Two that are one call have the same session name, and

1. the same response id, if nothing else of that session has it on either side. An id that is
   missing, empty, or given to several calls proves nothing; and one that goes with other tokens at
   another time was given twice.
2. Else the same figures (input, output and cached tokens; of a failure its kind) and ends that are
   no more than ``NEAR_MS`` apart. As many are matched as can be, in the order in which they ended:
   of two calls with equal figures each finds its own. What contradicts it is another response id
   or another turn of the client's; another name of the model does not, since one side may know it
   by an alias, but an equal one goes first, and then the nearest.

No row is matched twice. The result hangs on what there is, never on the order in which it came.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from app.ledger.rows import TurnRow
from engine.model import Status, UsageState

LOGGED = "import:"
"""How ``source`` begins where another tool's log tells of the call."""
NEAR_MS = 10_000
"""Logs are written after the call, some by whole seconds, and clocks are not the same."""

_MOST_NEAR = 100
"""Equal records near one call; of more nobody can tell which is which, and to try takes long."""


class Call(NamedTuple):
    """What of a row tells whether another one is the same call."""

    turn_id: str
    ended_at: int
    status: str
    response_id: str | None
    turn_group: str | None
    model: str | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None

    @classmethod
    def of(cls, row: TurnRow) -> Call:
        return cls(*_of_row(row))


_of_row = attrgetter(*Call._fields)
_Figures = tuple[Any, ...]
_Score = tuple[int, int, int]
"""Pairs; minus those with different models; minus the milliseconds that they are apart."""
_NOTHING: _Score = (0, 0, 0)


def matched(seen: Iterable[Call], logged: Iterable[Call]) -> dict[str, str]:
    """Of one session: the ids of records of logs, each with that of the gateway's row."""
    seen, logged = list(seen), list(logged)
    found = _by_response(seen, logged)
    taken = set(found.values())
    groups: dict[_Figures, tuple[list[Call], list[Call]]] = defaultdict(lambda: ([], []))
    for side, calls, done in ((0, seen, taken), (1, logged, found.keys())):
        for call in calls:
            figures = _figures(call)
            if figures is not None and call.turn_id not in done:
                groups[figures][side].append(call)
    for mine, theirs in groups.values():
        if mine and theirs:
            order = attrgetter("ended_at", "turn_id")
            found |= _aligned(sorted(mine, key=order), sorted(theirs, key=order))
    return found


def _by_response(seen: Sequence[Call], logged: Sequence[Call]) -> dict[str, str]:
    mine, theirs = _alone(seen), _alone(logged)
    return {
        call.turn_id: mine[name].turn_id
        for name, call in theirs.items()
        if name in mine and (_near(mine[name], call) or not differ(mine[name], call))
    }


def _alone(calls: Sequence[Call]) -> dict[str, Call]:
    """Calls by a response id that no other one has."""
    times = Counter(call.response_id for call in calls)
    return {
        call.response_id: call for call in calls if call.response_id and times[call.response_id] < 2
    }


def differ(one: Call | TurnRow, other: Call | TurnRow) -> bool:
    """Whether a figure that both know is not the same."""
    names = ("input_tokens", "cached_tokens", "output_tokens")
    return any(_told_apart(getattr(one, name), getattr(other, name)) for name in names)


def _figures(call: Call) -> _Figures | None:
    if call.input_tokens and call.output_tokens is not None:
        return call.input_tokens, call.output_tokens
    silent = call.input_tokens is None and call.output_tokens is None
    return (call.status,) if silent and call.status != Status.COMPLETED else None


def _near(one: Call, other: Call) -> bool:
    return abs(one.ended_at - other.ended_at) <= NEAR_MS


def _may_be_one(one: Call, other: Call) -> bool:
    return not (
        _told_apart(one.response_id or None, other.response_id or None)
        or _told_apart(one.turn_group, other.turn_group)
        or _told_apart(one.cached_tokens, other.cached_tokens)
    )


def _told_apart(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _score(one: Call, other: Call) -> _Score:
    return 1, -_told_apart(one.model, other.model), -abs(one.ended_at - other.ended_at)


def _aligned(seen: Sequence[Call], logged: Sequence[Call]) -> dict[str, str]:
    """The best matching of calls with equal figures, both in order, that never crosses itself.

    From the last one backwards: the best that can be made of what is left on both sides. Only what
    is near needs to be looked at, so that long rows of equal calls cost no more each.
    """
    times = [call.ended_at for call in logged]
    near = [
        (
            bisect_left(times, call.ended_at - NEAR_MS),
            bisect_right(times, call.ended_at + NEAR_MS),
        )
        for call in seen
    ]
    best: list[list[_Score]] = [[]] * len(seen) + [[_NOTHING]]
    if any(end - first > _MOST_NEAR for first, end in near):
        return {}
    near.append((len(logged), len(logged)))

    def left(i: int, j: int) -> _Score:
        first = near[i][0]
        return best[i][max(j, first) - first]

    def paired(i: int, j: int) -> _Score | None:
        if not _may_be_one(seen[i], logged[j]):
            return None
        pairs, models, apart = left(i + 1, j + 1)
        one = _score(seen[i], logged[j])
        return pairs + one[0], models + one[1], apart + one[2]

    for i in reversed(range(len(seen))):
        first, end = near[i]
        row = best[i] = [_NOTHING] * (end - first + 1)
        row[-1] = left(i + 1, end)
        for j in reversed(range(first, end)):
            row[j - first] = max(paired(i, j) or _NOTHING, left(i + 1, j), row[j + 1 - first])
    found = {}
    i = j = 0
    while i < len(seen):
        j = max(j, near[i][0])
        if j >= near[i][1] or left(i, j) == left(i + 1, j):
            i += 1
        elif left(i, j) == paired(i, j):
            found[logged[j].turn_id] = seen[i].turn_id
            i, j = i + 1, j + 1
        else:
            j += 1
    return found


_OFF_THE_WIRE = (
    "root_session",
    "turn_group",
    "client",
    "client_version",
    "epoch_reset_reason",
    "provider_miss_reason",
)
"""What a request need not say. What it does say, and does not hold, is known not to be there."""
_USAGE = (
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "cache_write_long_tokens",
    "non_cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "total_tokens",
    "usage_state",
)


def learned(row: TurnRow, record: TurnRow) -> TurnRow:
    """A gateway's row with what only the log's record knows; what the gateway measured stays."""
    names = [name for name in _OFF_THE_WIRE if getattr(row, name) is None]
    if row.usage_state == UsageState.MISSING:
        names += _USAGE
    return replace(row, **{name: getattr(record, name) for name in names})
