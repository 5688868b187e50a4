"""The live evaluation of rules, by any number of processes on one database.

An evaluation reads a rule, its states and the ledger, folds one instant after the other, and
writes what came of it in one transaction. That begins with moving the rule on, if it still is
where it was read::

    UPDATE alert_rules SET evaluated_until = :t WHERE id = :id
        AND evaluated_until = :seen AND version = :version

Whoever changes no row by it was overtaken: someone else evaluated these instants, or the rule was
edited. Then everything is discarded. So each instant is evaluated once, whatever happens at the
same time, and a process that is killed half-way has done nothing.

Times are epoch milliseconds.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlalchemy import Engine, update
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.alerts import (
    evaluation,
    event_store,
    measures,
    silences,
    state_store,
    states,
    store,
    tables,
)
from app.alerts.evaluation import Notification, Outcome
from app.alerts.groups import ALONE, GroupKey
from app.alerts.records import Observation
from app.alerts.rules import Rule
from app.alerts.signals import Reading
from app.alerts.silences import Silence
from app.alerts.state_store import GroupState
from app.alerts.states import Notice, Transition
from app.alerts.store import StoredRule
from app.alerts.teller import Dispatch, Letter, Receivers, Teller
from app.clock import Clock
from app.ledger.database import WRITES
from app.ledger.rows import to_ms
from app.tasks import describe

logger = logging.getLogger(__name__)

CATCH_UP = 86_400_000
"""After a stop, instants older than this are skipped."""
AHEAD = 300_000
"""A rule that was evaluated for a time further ahead than this is evaluated anew: a clock that was
wrong has been set back. Less is the difference between the clocks of two machines."""
STILL = 60.0
"""Seconds beyond a rule's step for which such a rule must stand still first: while it moves on,
another machine evaluates it, whose clock is ahead, and the two must not evaluate in turn."""
CHUNK = 1_440
"""Evaluations of a rule in one transaction, at most: what they bring is held in memory."""
CHUNK_LETTERS = 200
CHUNK_TRANSITIONS = 5_000
UNREADABLE_EVERY = 60_000
"""How often a rule is tried again whose definition cannot be read."""
_PASSES = (OperationalError, InterfaceError, PoolTimeoutError)
"""Locked, full, unreachable: the next tick tries again, and nothing has changed."""


class _OvertakenError(Exception):
    """Someone else has evaluated or changed the rule since it was read."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    stored: StoredRule
    states: Mapping[GroupKey, GroupState]
    silences: Sequence[Silence]
    unreadable: ValueError | None
    """Why the states cannot be read."""


@dataclass(slots=True)
class _Result:
    """What is to be written of a chunk."""

    until: int
    states: dict[GroupKey, GroupState]
    rule: Rule | None = None
    """None of a failure."""
    evaluations: int = 0
    failure: str | None = None
    transitions: list[tuple[GroupKey, Transition, Observation | None]] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.letters) >= CHUNK_LETTERS or len(self.transitions) >= CHUNK_TRANSITIONS


class Evaluator:
    """``on_queued`` is called, in the evaluating thread, after messages were written."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        receivers: Receivers,
        base_url: str,
        new_id: Callable[[str], str],
        on_queued: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._teller = Teller(engine, receivers=receivers, base_url=base_url, new_id=new_id)
        self._on_queued = on_queued
        self._late: set[str] = set()
        """Rules whose evaluation waits for the database; the log has said so."""
        self._ahead: dict[str, tuple[int, float]] = {}
        """Rules that are ahead of this clock: how far they were, and since when they are."""
        self._closed = False

    def close(self) -> None:
        """Begin nothing more; a ``tick`` that is under way ends soon. From any thread."""
        self._closed = True

    def tick(self) -> int:
        """Evaluate every rule at every instant that is due; returns how many evaluations.

        Blocks on the database. Raises only what keeps the rules from being read at all.
        """
        now = to_ms(self._clock.now())
        evaluations = 0
        rules = store.all_rules(self._engine, enabled_only=True)
        waiting = [stored.id for stored in rules if self._is_due(stored, now)]
        # A chunk of each in turn: who has much to make up for must not hold up the others.
        while waiting:
            unfinished = []
            for rule_id in waiting:
                result = None if self._closed else self._try_evaluating(rule_id, now)
                if result is not None:
                    evaluations += result.evaluations
                    unfinished.append(rule_id)
            waiting = unfinished
        return evaluations

    def _try_evaluating(self, rule_id: str, now: int) -> _Result | None:
        """None where nothing is due, or nothing can be done before the next tick."""
        try:
            result = self._evaluate(rule_id, now)
        except _OvertakenError:
            return None
        except _PASSES as error:
            if rule_id not in self._late:
                logger.warning("rule %s is evaluated later: %s", rule_id, describe(error))
            self._late.add(rule_id)
            return None
        except Exception as error:
            logger.error("rule %s: %s", rule_id, describe(error))
            return None
        self._late.discard(rule_id)
        return result

    def _evaluate(self, rule_id: str, now: int) -> _Result | None:
        """The next chunk of a rule, read, folded and written; None when nothing is due."""
        snapshot = self._read(rule_id, now)
        if snapshot is None:
            return None
        dispatch = self._teller.dispatch()
        result = self._result(snapshot, now, dispatch)
        try:
            self._write(snapshot, result, now, dispatch)
        except (_OvertakenError, *_PASSES):
            raise
        except Exception as error:
            result = _failed(snapshot, result.until, error)
            self._write(snapshot, result, now, dispatch)
        if result.letters:
            self._on_queued()
        return result

    def _is_due(self, stored: StoredRule, now: int) -> bool:
        until, moment = stored.evaluated_until, self._clock.monotonic()
        if until <= now + AHEAD:
            self._ahead.pop(stored.id, None)
            return _is_due(stored, now)
        if stored.id not in self._ahead or self._ahead[stored.id][0] != until:
            self._ahead[stored.id] = until, moment
        stands_for = moment - self._ahead[stored.id][1]
        return _is_due(stored, now) and stands_for >= stored.rule().every + STILL

    def _read(self, rule_id: str, now: int) -> _Snapshot | None:
        with self._engine.connect() as connection:
            stored = store.read(connection, rule_id)
            if stored is None or not stored.enabled or not self._is_due(stored, now):
                return None
            quiet = silences.since(connection, now - CATCH_UP)
            try:
                known = state_store.load(connection, rule_id)
            except ValueError as error:
                return _Snapshot(stored, {}, quiet, error)
        return _Snapshot(stored, known, quiet, None)

    def _result(self, snapshot: _Snapshot, now: int, dispatch: Dispatch) -> _Result:
        try:
            rule = snapshot.stored.rule()
        except Exception as error:
            return _failed(snapshot, _unreadable_instant(now), error)
        instants, skipped = _due(rule, snapshot.stored.evaluated_until, now)
        newest, instants = instants[-1], instants[:CHUNK]
        try:
            if snapshot.unreadable is not None:
                raise snapshot.unreadable
            known = dict(snapshot.states)
            if skipped:
                known = {key: _interrupted(state, instants[0]) for key, state in known.items()}
            return self._fold(rule, snapshot.silences, known, (instants, newest), dispatch)
        except _PASSES:
            raise
        except Exception as error:
            return _failed(snapshot, instants[-1], error)

    def _fold(
        self,
        rule: Rule,
        silenced: Sequence[Silence],
        known: dict[GroupKey, GroupState],
        due: tuple[range, int],
        dispatch: Dispatch,
    ) -> _Result:
        """``due`` are the instants of this chunk, and the newest of all that are due: only that
        one reminds people, for the others lie in the past."""
        instants, newest = due
        quiet = partial(silences.silenced, silenced, rule.id)
        result = _Result(instants[0], known, rule)
        unreminded = replace(rule, renotify_every=0)
        for at, measured in measures.windows(self._engine, rule, instants[0], instants[-1]):
            memories = {key: state.memory for key, state in result.states.items()}
            by = rule if at == newest else unreminded
            outcome = evaluation.evaluate(by, memories, at, measured, quiet)
            _take(result, rule, at, outcome, dispatch)
            if result.full:
                break
        return result

    def _write(self, snapshot: _Snapshot, result: _Result, now: int, dispatch: Dispatch) -> None:
        stored = snapshot.stored
        rules = tables.rules
        claim = (
            update(rules)
            .where(
                rules.c.id == stored.id,
                rules.c.evaluated_until == stored.evaluated_until,
                rules.c.version == stored.version,
            )
            .values(evaluated_until=result.until, failure=result.failure)
        )
        with self._engine.execution_options(**WRITES).begin() as connection:
            if connection.execute(claim).rowcount != 1:
                raise _OvertakenError
            state_store.save(connection, stored.id, snapshot.states, result.states)
            event_store.add(connection, stored.id, stored.name, result.transitions, result.rule)
            dispatch.post(connection, result.letters, now)


def _is_due(stored: StoredRule, now: int) -> bool:
    try:
        rule = stored.rule()
    except Exception:
        return _unreadable_instant(now) > stored.evaluated_until
    return bool(_due(rule, stored.evaluated_until, now)[0])


def _due(rule: Rule, until: int, now: int) -> tuple[range, bool]:
    """The instants to evaluate, and whether some before them are left out."""
    if until > now + AHEAD:
        return measures.instants(rule, now - rule.every * 1_000, now), True
    oldest = now - CATCH_UP
    skipped = bool(measures.instants(rule, until, oldest))
    return measures.instants(rule, max(until, oldest), now), skipped


def _interrupted(state: GroupState, at: int) -> GroupState:
    return replace(state, memory=states.interrupted(state.memory, at))


def _unreadable_instant(now: int) -> int:
    return now - now % UNREADABLE_EVERY


def _take(result: _Result, rule: Rule, at: int, outcome: Outcome, dispatch: Dispatch) -> None:
    """Add what one evaluation brought."""
    start, end = evaluation.window(rule, at)
    seen = {
        key: Observation(_without_samples(reading), at, start, end)
        for key, reading in outcome.readings.items()
    }
    causes = {key: transition.cause for key, transition in outcome.transitions}
    told = {key: state.told_receivers for key, state in result.states.items()}
    last = {key: state.observation for key, state in result.states.items()} | seen
    for notification in outcome.notices:
        key = notification.key
        telling = dispatch.compose(
            rule,
            notification,
            cause=causes.get(key),
            observation=last.get(key),
            told_receivers=told.get(key, ()),
            evaluated=key in seen,
        )
        result.letters += telling.letters
        told[key] = telling.told_receivers
    for key, memory in outcome.memories.items():
        if memory.told is None or not memory.fires or memory.hushed:
            continue
        # Receivers that were added to the rule after it fired have heard nothing of it yet.
        telling = dispatch.compose(
            rule,
            Notification(key, Notice(memory.told, at), memory, memory),
            cause=causes.get(key),
            observation=last.get(key),
            told_receivers=told.get(key, ()),
            evaluated=key in seen,
            newcomers=True,
        )
        result.letters += telling.letters
        told[key] = telling.told_receivers
    result.transitions += [
        (key, transition, seen.get(key)) for key, transition in outcome.transitions
    ]
    result.states = {
        key: GroupState(memory, last.get(key), told.get(key, ()))
        for key, memory in outcome.memories.items()
    }
    result.until = at
    result.evaluations += 1


def _without_samples(reading: Reading) -> Reading:
    """They are many, and the value is made."""
    if not reading.measure.samples:
        return reading
    return replace(reading, measure=replace(reading.measure, samples=()))


def _failed(snapshot: _Snapshot, until: int, error: Exception) -> _Result:
    """Every group of the rule is in error; states that cannot be read stay as they are."""
    failure = describe(error)
    if failure != snapshot.stored.failure:
        logger.error("rule %s cannot be evaluated: %s", snapshot.stored.id, failure)
    result = _Result(until, dict(snapshot.states), failure=failure)
    if not snapshot.states and snapshot.unreadable is None and not _grouped(snapshot.stored):
        result.states[ALONE] = GroupState()
    for key, state in list(result.states.items()):
        memory, moved = states.fail(state.memory, until)
        result.states[key] = replace(state, memory=memory)
        result.transitions += [(key, transition, None) for transition in moved]
    return result


def _grouped(stored: StoredRule) -> bool:
    try:
        definition = json.loads(stored.definition)
    except ValueError:
        return False
    return isinstance(definition, dict) and bool(definition.get("group_by"))
