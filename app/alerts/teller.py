"""From something to tell to the messages in the outbox: to whom, and what.

A message is composed outside of any transaction, since its causes are read from the ledger, and
posted in the transaction that writes the state it tells of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from app.alerts import causes, groups, links, outbox, payloads
from app.alerts.causes import Details
from app.alerts.evaluation import Notification, window
from app.alerts.groups import GroupKey
from app.alerts.message import Links, Message
from app.alerts.records import Observation
from app.alerts.rules import Rule
from app.alerts.states import Cause, Labels, Told
from app.tasks import describe

logger = logging.getLogger(__name__)


class Addressee(outbox.Addressee, Protocol):
    @property
    def kind(self) -> str: ...


class Receivers(Protocol):
    def all(self) -> Sequence[Addressee]: ...


@dataclass(frozen=True, slots=True)
class Letter:
    """A message on its way to one receiver."""

    receiver: Addressee
    rule: Rule
    group_key: GroupKey
    told: Told
    repeat: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Telling:
    letters: tuple[Letter, ...]
    told_receivers: tuple[str, ...]
    """Ids of those who know that it fires, once the letters are written."""


class Teller:
    """``base_url`` is where people reach the dashboard; messages link there."""

    def __init__(
        self,
        engine: Engine,
        *,
        receivers: Receivers,
        base_url: str,
        new_id: Callable[[str], str],
    ) -> None:
        self._engine = engine
        self._receivers = receivers
        self._base_url = base_url
        self._new_id = new_id

    def dispatch(self) -> Dispatch:
        """To the receivers as they are now. Asks for them, so call it outside of transactions."""
        return Dispatch(self._engine, self._receivers.all(), self._base_url, self._new_id)


class Dispatch:
    """Composing and posting, to the receivers of one moment."""

    def __init__(
        self,
        engine: Engine,
        receivers: Iterable[Addressee],
        base_url: str,
        new_id: Callable[[str], str],
    ) -> None:
        self._engine = engine
        self._by_id = {receiver.id: receiver for receiver in receivers}
        self._by_name = {receiver.name: receiver for receiver in self._by_id.values()}
        self._base_url = base_url
        self._new_id = new_id

    def compose(
        self,
        rule: Rule,
        notification: Notification,
        *,
        cause: Cause | None,
        observation: Observation | None,
        told_receivers: tuple[str, ...],
        evaluated: bool = True,
        newcomers: bool = False,
    ) -> Telling:
        """Messages to those whom it concerns; with ``newcomers`` only to those of them who do not
        know yet.

        That an alert fires is told to the rule's receivers, that it ended to those who were told
        that it fires, whatever the rule says by now. What a disabled receiver is told is kept for
        a replay; it does not count as told, so that it is once it is enabled.

        ``cause`` is that of the state's last change at this instant, None where there was none (a
        reminder, the end of a silence). ``observation`` is the last one; ``evaluated`` says
        whether it is what led to this.
        """
        told = notification.notice.told
        if told is Told.RESOLVED:
            concerned = [self._by_id[id_] for id_ in told_receivers if id_ in self._by_id]
            knowing: tuple[str, ...] = ()
        else:
            concerned = [self._by_name[name] for name in rule.receivers if name in self._by_name]
            reached = [one for one in concerned if one.disabled is None]
            if newcomers:
                concerned = [one for one in reached if one.id not in told_receivers]
            knowing = tuple(sorted({*told_receivers, *(one.id for one in reached)}))
            if not newcomers and len(concerned) < len(rule.receivers):
                missing = [name for name in rule.receivers if name not in self._by_name]
                logger.warning("rule %s has receivers that do not exist: %s", rule.id, missing)
        if not concerned:
            return Telling((), knowing)
        message = self._message(rule, notification, cause, observation, evaluated=evaluated)
        letters = tuple(
            Letter(
                receiver,
                rule,
                notification.key,
                told,
                notification.notice.repeat,
                payloads.encode(receiver.kind, message, receiver.name),
            )
            for receiver in concerned
        )
        return Telling(letters, knowing)

    def post(self, connection: Connection, letters: Iterable[Letter], now: int) -> int:
        """Write them to the outbox in the caller's transaction; returns how many."""
        posted = 0
        for letter in letters:
            outbox.enqueue(
                connection,
                receiver=letter.receiver,
                rule=letter.rule,
                group_key=letter.group_key,
                told=letter.told,
                repeat=letter.repeat,
                body=letter.body,
                now=now,
                new_id=self._new_id,
            )
            posted += 1
        return posted

    def _message(
        self,
        rule: Rule,
        notification: Notification,
        cause: Cause | None,
        observation: Observation | None,
        *,
        evaluated: bool,
    ) -> Message:
        key, notice, before, after = notification
        labels = groups.labels_of(key)
        if observation is None:
            start, end = window(rule, notice.at)
        else:
            start, end = observation.window_start, observation.window_end
        return Message(
            told=notice.told,
            before=before.state,
            now=after.state,
            rule=rule,
            labels=labels,
            reading=observation.reading if evaluated and observation is not None else None,
            start=start,
            end=end,
            started_at=after.started_at,
            ended_at=after.ended_at,
            peak=after.peak,
            cause=cause,
            repeat=notice.repeat,
            absence=after.absence,
            details=(
                None if notice.told is Told.RESOLVED else self._details(rule, labels, start, end)
            ),
            links=self._links(rule, labels, start, end),
            dedupe_key=groups.dedupe_key(rule.id, key),
            at=notice.at,
        )

    def _details(self, rule: Rule, labels: Labels, start: int, end: int) -> Details | None:
        """None where the causes cannot be told: better a message without them than none."""
        try:
            return causes.details(self._engine, rule, labels, start, end)
        except SQLAlchemyError:
            raise
        except Exception as error:
            logger.error("the causes of an alert of %s: %s", rule.id, describe(error))
            return None

    def _links(self, rule: Rule, labels: Labels, start: int, end: int) -> Links:
        rows = links.offending(rule, labels, start, end)
        return Links(
            alert=links.alert_link(self._base_url, rule.id),
            rows=links.rows_link(self._base_url, rows),
            csv=links.csv_link(self._base_url, rows),
            silence=links.silence_link(self._base_url, rule.id, labels),
        )
