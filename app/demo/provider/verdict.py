"""What a turn should have become, given everything that happened before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .connection import Connection
from .core import Provider
from .headers import HeadersLike, credential_of, lower_headers
from .held import Held
from .items import Item, kind_of
from .oracle import (
    Input,
    changed_fields,
    decoded,
    extends,
    items_of,
    made_by_model,
    same_in_order,
)
from .wire import Json


@dataclass(slots=True)
class Turn:
    """A turn that was answered, as the test knows it. Its baseline is what the provider holds."""

    response_id: str
    credential: str
    session: str
    body: Json
    held: Held
    socket: str | None
    reset: bool = False
    _made: tuple[Held, list[Item]] | None = None

    def made(self) -> list[Item]:
        """The held items that were made by the model; found once for what is held."""
        if self._made is None or self._made[0] is not self.held:
            self._made = self.held, [item for item in self.held.items if _made(item)]
        return self._made[1]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An idle connection whose latest response the request extends."""

    connection: Connection
    response_id: str
    delta: list[Any]
    changed: list[str]
    warmup: bool

    @property
    def length(self) -> int:
        """Items of the baseline: the more, the better."""
        return len(self.connection.latest.items) if self.connection.latest else 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` in the ledger's words; ``ok`` with the response that was to be continued."""

    reason: str
    response_id: str | None = None
    delta: list[Any] | None = None
    changed: tuple[str, ...] = ()
    index: int | None = None
    """Where the input parts from the compared baseline."""


class Oracle:
    """Tell it of each answered turn, and ask it right before the next is sent."""

    def __init__(self, core: Provider) -> None:
        self.core = core
        self.turns: list[Turn] = []

    # --- what the test knows ------------------------------------------------------------------

    def answered(
        self,
        response_id: str,
        *,
        headers: HeadersLike,
        session: str,
        body: Json,
        socket: str | None = None,
    ) -> None:
        """A turn ended with ``completed`` or ``incomplete``. ``socket``: who leases its chain."""
        credential = credential_of(lower_headers(headers))
        held = self.core.held(response_id)
        self.turns.append(Turn(response_id, credential, session, body, held, socket))

    def socket_closed(self, socket: str) -> None:
        """The client's WebSocket has ended, and with it its leases."""
        for turn in self.turns:
            if turn.socket == socket:
                turn.socket = None

    def reset(self, session: str) -> None:
        """A new epoch: nothing answered so far is continued."""
        for turn in self.turns:
            if turn.session == session:
                turn.reset = True

    # --- what it concludes --------------------------------------------------------------------

    def candidates(
        self,
        *,
        headers: HeadersLike,
        session: str,
        body: Json,
        given: Input = None,
        socket: str | None = None,
    ) -> list[Candidate]:
        """Every idle connection of the session that holds a prefix of the request, best first.

        ``given`` replaces ``body["input"]`` where the logical input is longer than what was sent.
        """
        credential = credential_of(lower_headers(headers))
        logical = body.get("input") if given is None else given
        out = []
        for turn in self.turns:
            connection = self._holder(turn)
            if connection is None or not connection.idle or turn.reset:
                continue
            if (turn.credential, turn.session) != (credential, session):
                continue
            if turn.socket not in (None, socket):
                continue
            delta = extends(turn.held.items, logical)
            if delta is not None:
                changed = changed_fields(turn.body, body)
                out.append(
                    Candidate(connection, turn.response_id, delta, changed, turn.held.warmup)
                )
        out.sort(key=lambda c: (bool(c.changed), -c.length))
        return out

    def best(
        self,
        *,
        headers: HeadersLike,
        session: str,
        body: Json,
        given: Input = None,
        socket: str | None = None,
    ) -> Candidate | None:
        """The candidate to be continued: equal fields, something to send, the longest baseline."""
        for candidate in self.candidates(
            headers=headers, session=session, body=body, given=given, socket=socket
        ):
            if not candidate.changed and (candidate.delta or candidate.warmup):
                return candidate
        return None

    def verdict(
        self,
        *,
        headers: HeadersLike,
        session: str,
        body: Json,
        given: Input = None,
        socket: str | None = None,
    ) -> Verdict:
        """The reason that the ledger should show if the turn goes over a healthy WebSocket."""
        best = self.best(headers=headers, session=session, body=body, given=given, socket=socket)
        if best is not None:
            return Verdict("ok", best.response_id, best.delta)
        credential = credential_of(lower_headers(headers))
        logical = items_of(body.get("input") if given is None else given)
        mine = [t for t in self.turns if (t.credential, t.session) == (credential, session)]
        compared = _most_echoed(mine, logical)
        if compared is None:
            return Verdict("no_baseline")
        if compared.reset:
            return Verdict("epoch_reset", compared.response_id)
        changed = tuple(changed_fields(compared.body, body))
        index = _parting(compared.held.items, logical)
        if changed:
            return Verdict("non_input_fields_changed", compared.response_id, None, changed, index)
        if index is not None:
            return Verdict("prefix_mismatch", compared.response_id, index=index)
        connection = self._holder(compared)
        if len(logical) == len(compared.held.items) and not compared.held.warmup:
            return Verdict("empty_delta", compared.response_id)
        if connection is not None and (
            not connection.idle or compared.socket not in (None, socket)
        ):
            return Verdict("chain_busy", compared.response_id)
        return Verdict("connection_lost", compared.response_id)

    def _holder(self, turn: Turn) -> Connection | None:
        """The open connection that holds the turn's response as its latest."""
        for connection in self.core.connections:
            latest = connection.latest
            if latest is not None and latest.response_id == turn.response_id:
                return connection
        return None


def _most_echoed(turns: Sequence[Turn], logical: Sequence[Any]) -> Turn | None:
    """The turn of whose baseline the request repeats the most items made by the model."""
    sent: dict[str, list[Any]] = {}
    for one in logical:
        text = (
            one.text if isinstance(one, Item) else one if isinstance(one, str) else json.dumps(one)
        )
        sent.setdefault(kind_of(decoded(text)), []).append(one if isinstance(one, Item) else text)
    rivals: dict[tuple[str, bool, bool], list[int]] = {}

    def equals(item: Item) -> list[int]:
        """Which of what was sent is this item. Of what the model made: only of its own kind."""
        key = (item.text, item.made, item.from_string)
        if key not in rivals:
            given = sent.get(item.kind, ())
            rivals[key] = [n for n, one in enumerate(given) if same_in_order(item, one)]
        return rivals[key]

    def echoes(turn: Turn) -> int:
        """What was sent is an echo of one item, not of all that say the same."""
        taken: set[tuple[str, int]] = set()
        for item in turn.made():
            rivals_of = equals(item)
            if rivals_of:
                kind = item.kind
                free = [n for n in rivals_of if (kind, n) not in taken]
                taken.update((kind, n) for n in free[:1])
        return len(taken)

    best, most = None, 0
    for turn in reversed(turns):  # of equals the last
        if len(turn.made()) <= most:
            continue  # it has no more to be echoed
        count = echoes(turn)
        if count > most:
            best, most = turn, count
    return best


def _made(item: Item) -> bool:
    return item.made or made_by_model(item.value)


def _parting(held: Sequence[Item], logical: Sequence[Any]) -> int | None:
    """Where the request leaves the baseline; None if it begins with all of it."""
    for index, item in enumerate(held):
        if index >= len(logical) or not same_in_order(item, logical[index]):
            return index
    return None
