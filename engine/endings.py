"""How a turn ends: what it leaves is committed or made cold, and its row goes out, once.

Nothing here waits, so that nothing can come between a terminal event and what it leaves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from engine.keeper import Keeper
from engine.model import ColdCause, TurnFacts
from engine.outcome import Answer, Ended, name_of
from engine.transports.base import Clock
from engine.turn import Turn, error_body_code, facts

_log = logging.getLogger("warmline.engine")


class Endings:
    """The turns under way, and how each of them is concluded."""

    def __init__(
        self,
        *,
        keeper: Keeper,
        clock: Clock,
        new_id: Callable[[str], str],
        key: bytes,
        on_turn: Callable[[TurnFacts], None],
    ) -> None:
        self._keeper, self._clock, self._new_id = keeper, clock, new_id
        self._key, self._on_turn = key, on_turn
        self.active: dict[str, Turn] = {}

    def begin(self, turn: Turn) -> None:
        """From now on the turn is under way: it is owed a row, and its scope is in use."""
        self.active[turn.call.turn_id] = turn
        turn.scope.turns += 1

    def conclude(self, turn: Turn) -> None:
        """A terminal event was seen: commit, or cool; then the facts. Nothing is relayed before."""
        fold, call = turn.fold, turn.call
        turn.ended = True
        try:
            if fold.commits:
                self._keeper.commit(turn)
                if turn.over_socket:
                    self._keeper.health.succeeded(call.tenant, call.upstream.name)
            else:
                self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
        except Exception as error:  # the answer is the client's whatever happens here
            _log.error("turn %s left no anchor: %s", call.turn_id, name_of(error))
            self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
        self.emit(turn)

    def emit(self, turn: Turn) -> None:
        """The turn's row, if it has none yet; from now on it is over."""
        turn.ended = True
        if self.active.pop(turn.call.turn_id, None) is None:
            return
        if turn.timer is not None:
            turn.timer.stop()
            turn.timer = None
        if turn.fold.unreadable:  # relayed as it came; what it said is nobody's to log
            _log.warning(
                "turn %s: %d events could not be read", turn.call.turn_id, turn.fold.unreadable
            )
        try:
            self._on_turn(
                facts(
                    turn,
                    key=self._key,
                    ended_at=self._clock.now(),
                    ended_mono=self._clock.monotonic(),
                )
            )
        except Exception as error:  # the ledger must never fail a turn
            _log.error("facts of turn %s lost: %s", turn.call.turn_id, name_of(error))
        turn.scope.turns -= 1
        try:
            if turn.gone and turn.call.socket is not None:
                self._keeper.disown(turn.call.socket)
            self._keeper.close(self._keeper.sessions.trim(turn.scope))
        except Exception as error:  # nor must what is left of other turns
            _log.error("nothing was tidied after turn %s: %s", turn.call.turn_id, name_of(error))

    def finish(self, turn: Turn, end: Ended) -> Answer:
        """An answer that is no stream: an error, or a refusal."""
        turn.session = turn.session or self._new_id("anon-")
        turn.http_status = end.status
        if turn.error_code is None and turn.fold.error is None:
            turn.error_code = error_body_code(end.body)
        self.emit(turn)
        answer = self.plain(turn, end.status, end.body, end.headers)
        answer.frame = end.frame
        return answer

    def plain(self, turn: Turn, status: int, body: bytes, headers: list[tuple[str, str]]) -> Answer:
        return Answer(turn.call.turn_id, turn.mode, turn.reason, status, headers, body)
