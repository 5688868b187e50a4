"""Alerts as a running part of the service: rules are evaluated, and what they say is delivered.

Both run beside the turns and never before them. The evaluation has a thread of its own, in which
at most one tick runs at a time; sends are the only work on the event loop, and wait for nobody.
Whatever fails here is logged by its kind and tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Engine

from app.alerts import config, state_store, store
from app.alerts.courier import Courier
from app.alerts.endpoints import shown_name
from app.alerts.evaluator import Evaluator
from app.alerts.file_rules import sync_file_rules
from app.alerts.groups import GroupKey
from app.alerts.guard import Guard
from app.alerts.receiver_file import parse_file
from app.alerts.receivers import Receivers
from app.alerts.rules import BadRuleError, Rule
from app.alerts.sealed import Seal
from app.alerts.state_store import GroupState
from app.alerts.states import State
from app.alerts.store import StoredRule
from app.alerts.teller import Teller
from app.alerts.webhook import Result, Sender
from app.clock import Clock
from app.errors import AppError
from app.keys import Keys
from app.ledger.rows import to_ms
from app.settings import Settings
from app.tasks import Tasks, describe

logger = logging.getLogger(__name__)

TICK_SECONDS = 1.0
"""Between two looks at what is due. Instants lie on a grid, so nothing drifts by it."""
LEASE_MARGIN = 15.0
"""Seconds beyond the time-out of a send in which its result is recorded. A message whose sender was
killed is repeated when both are over."""
CLOSE_SECONDS = 10.0
"""How long an evaluation that is under way may go on at the end."""
OnAttempt = Callable[[str, str], None]
"""Told of each attempt: the receiver's name and what became of it, in one of a few words."""


class Alerts:
    """``start`` and ``aclose`` on the event loop; everything else in worker threads."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        keys: Keys,
        clock: Clock,
        *,
        environ: Mapping[str, str] | None = None,
        guard: Guard | None = None,
        on_attempt: OnAttempt = lambda _receiver, _outcome: None,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        """Raises ``SettingsError`` where rules or receivers of the file cannot be read."""
        variables = os.environ if environ is None else environ
        self.config = config.read(settings)
        self.engine = engine
        self.base_url = settings.base_url
        self.guard = guard or Guard(settings.webhook_private_hosts)
        place = self.config.receivers.place
        self.receivers = Receivers(
            engine,
            Seal(keys),
            self.guard,
            parse_file(self.config.receivers.receivers, variables, self.guard, place),
            environ=variables,
            clock=clock,
            new_id=partial(new_id, "rcv_"),
        )
        common: dict[str, Any] = {
            "receivers": self.receivers,
            "base_url": self.base_url,
            "new_id": new_id,
        }
        self.teller = Teller(engine, **common)
        self.courier = Courier(
            engine,
            clock,
            self.receivers,
            Sender(self.guard, settings.webhook_timeout),
            random.random,
            lease=settings.webhook_timeout + LEASE_MARGIN,
            on_attempt=lambda name, result: on_attempt(name, outcome_class(result)),
        )
        self.evaluator = Evaluator(engine, clock, **common, on_queued=self.courier.wake)
        self._clock = clock
        self._tick_seconds = tick_seconds
        self._evaluating, self._delivering = Tasks(), Tasks()
        self._stop = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="alerts")
        self._failing = False

    def now(self) -> int:
        """Epoch milliseconds."""
        return to_ms(self._clock.now())

    def wake(self) -> None:
        """There may be something to deliver. From any thread."""
        self.courier.wake()

    # Life

    async def start(self) -> None:
        """Raises ``AppError`` where the settings file and the database do not fit together."""
        await asyncio.to_thread(self.prepare)
        self._evaluating.start(self._evaluate(), name="alerts-evaluation")
        self._delivering.start(self.courier.run(), name="alerts-delivery")

    def prepare(self) -> None:
        """Bring the rules and receivers of the settings file into force."""
        self.receivers.start()
        known = {receiver.name for receiver in self.receivers.all()}
        config.check_receivers(self.config.rules, known, self.config.receivers.place)
        sync_file_rules(self.engine, self.config.rules, self.now(), teller=self.teller)
        for stored, rule in self._rules():
            for name in set(rule.receivers) - known:
                logger.warning(
                    "rule %s tells %s, which is no receiver", stored.id, shown_name(name)
                )

    async def aclose(self) -> None:
        """The evaluation ends first: what it has written by then lies in the outbox."""
        self._stop.set()
        self.evaluator.close()
        await self._evaluating.aclose(grace=CLOSE_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.courier.aclose()
        except TimeoutError:
            logger.warning("the database does not answer: deliveries are left to their next start")
        await self._delivering.aclose(grace=1.0)

    async def _evaluate(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stop.is_set():
            try:
                await loop.run_in_executor(self._thread, self.evaluator.tick)
                self._works()
            except Exception as error:
                self._fails(error)
            try:
                async with asyncio.timeout(self._tick_seconds):
                    await self._stop.wait()
            except TimeoutError:
                continue

    # The database's health, told once per change

    def _fails(self, error: Exception) -> None:
        if not self._failing:
            logger.warning("alerts cannot be evaluated: %s", describe(error))
        self._failing = True

    def _works(self) -> None:
        if self._failing:
            logger.info("alerts are evaluated again")
        self._failing = False

    # For the page and the metrics

    def overview(self) -> list[Watched]:
        """All rules with their groups, by name, as they are at one moment."""
        with self.engine.connect() as connection:
            stored = store.read_all(connection)
            groups = state_store.load_all(connection)
        return [Watched(rule, groups.get(rule.id, {})) for rule in stored]

    def watched(self, rule_id: str) -> Watched:
        """Raises ``AppError`` ``not_found`` (404)."""
        stored = store.get_rule(self.engine, rule_id)
        with self.engine.connect() as connection:
            return Watched(stored, state_store.load(connection, rule_id))

    def figures(self) -> Iterator[tuple[str, str, str, int]]:
        """Rule, severity, state, and how many of its groups are in that state."""
        for rule, groups in self.overview():
            try:
                severity = rule.rule().severity.value
            except (AppError, ValueError):
                continue  # a rule that cannot be read is told by the page and the log
            present = Counter(group.memory.state for group in groups.values())
            for state in State:
                yield rule.name, severity, state.value, present[state]

    def check_receivers(self, rule: Rule) -> None:
        """Raises ``BadRuleError`` where a rule names a receiver that is not there."""
        known = {receiver.name for receiver in self.receivers.all()}
        for name in rule.receivers:
            if name not in known:
                raise BadRuleError(
                    "receivers",
                    f"There is no receiver {shown_name(name)}.",
                    f"There are: {', '.join(sorted(known))}." if known else "Add one first.",
                )

    def refuse_in_use(self, name: str) -> None:
        """Raises ``AppError`` (409) while rules name this receiver: they would tell nobody."""
        rules = [rule.name for rule, read in self._rules() if name in read.receivers]
        if rules:
            raise AppError(
                "in_use",
                f"These rules tell {name}: {', '.join(rules[:5])}{', …' * (len(rules) > 5)}.",
                "Take it out of them first.",
                409,
            )

    def _rules(self) -> Iterator[tuple[StoredRule, Rule]]:
        """Those that can be read."""
        for stored in store.all_rules(self.engine):
            with contextlib.suppress(AppError, ValueError):
                yield stored, stored.rule()


class Watched(NamedTuple):
    rule: StoredRule
    groups: Mapping[GroupKey, GroupState]


def new_id(prefix: str = "") -> str:
    """Not to be guessed; short enough for a URL."""
    return f"{prefix}{secrets.token_hex(12)}"


def outcome_class(result: Result) -> str:
    """``delivered``, ``http_3xx`` … ``http_5xx``, or ``no_answer``: a label of metrics."""
    if result.status is None:
        return "no_answer"
    family = result.status // 100
    return "delivered" if family == 2 else f"http_{family}xx"
