"""Several evaluators on one database: in threads, in processes, and killed ones (CASES 114)."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.alerts import causes, measures, store
from app.ledger.database import WRITES, open_engine
from tests.support.alerts import (
    MINUTE,
    make_evaluator,
    make_rule,
    make_teller,
    messages,
    moves,
    write,
)
from tests.support.clock import START, ManualClock
from tests.support.rows import START_MS

CROSSINGS = 50
SHARES = (13, 13, 12, 12)
"""Of four processes; each crossing is a thread."""
PATIENCE = 120.0
"""Seconds after which a party that does not come fails the test."""


def minute(number: int) -> ManualClock:
    return ManualClock(START + 60 * number)


def test_fifty_concurrent_crossings_in_four_processes_are_told_once(
    engine: Engine, database: str
) -> None:
    """Each records a turn that crosses the threshold; then all evaluate at the same moment, and
    once more when it is over."""
    store.create_rule(engine, make_rule(), START_MS)
    write(engine, START_MS + MINUTE, good=5)
    cross(database)
    assert messages(engine) == [("firing", "ops"), ("resolved", "ops")]
    assert moves(engine) == [(1, "inactive", "firing"), (2, "firing", "inactive")]


def cross(database: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(CROSSINGS)
    firsts = [sum(SHARES[:number]) for number in range(len(SHARES))]
    workers = [
        spawn.Process(target=_cross_in_threads, args=(database, first, share, barrier))
        for first, share in zip(firsts, SHARES, strict=True)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
    assert [worker.exitcode for worker in workers] == [0] * len(SHARES)


def _cross_in_threads(database: str, first: int, share: int, barrier: Any) -> None:
    engine = open_engine(database)
    failed: list[Exception] = []

    def cross_once(number: int) -> None:
        try:
            write(engine, START_MS + number, bad=1, turn_id=f"crossing-{number}")
            for instant in (1, 2):
                own = f"crossing-{number}-{instant}-".__add__
                live = make_evaluator(engine, minute(instant), new_id=own)
                barrier.wait(PATIENCE)
                live.tick()
        except Exception as error:
            failed.append(error)
            barrier.abort()

    threads = [threading.Thread(target=cross_once, args=(first + n,)) for n in range(share)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.dispose()
    if failed:
        raise failed[0]


@pytest.mark.parametrize("place", ["before it writes", "while it writes"])
def test_a_process_that_is_killed_has_changed_nothing(
    engine: Engine, database: str, place: str
) -> None:
    rule = make_rule()
    store.create_rule(engine, rule, START_MS)
    write(engine, START_MS, bad=1)
    worker = multiprocessing.get_context("spawn").Process(
        target=_die_evaluating, args=(database, place)
    )
    worker.start()
    worker.join(PATIENCE)
    assert worker.exitcode == -signal.SIGKILL
    assert (messages(engine), moves(engine)) == ([], [])
    assert store.get_rule(engine, rule.id).evaluated_until == START_MS
    make_evaluator(engine, minute(1)).tick()
    assert messages(engine) == [("firing", "ops")]


def _die_evaluating(database: str, place: str) -> None:
    def die(*_given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    engine = open_engine(database)
    if place == "before it writes":
        causes.details = die  # type: ignore[assignment]  # the last thing that is read
        make_evaluator(engine, minute(1)).tick()
    else:
        make_evaluator(engine, minute(1), new_id=die).tick()  # asked for within the transaction


def test_whoever_was_overtaken_discards_everything(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process evaluates between the reading and the writing of this one."""
    store.create_rule(engine, make_rule(), START_MS)
    write(engine, START_MS, good=1)
    write(engine, START_MS + MINUTE, bad=1)
    make_evaluator(engine, minute(1)).tick()
    late, early = (make_evaluator(engine, minute(2)) for _ in range(2))
    meanwhile(monkeypatch, early.tick)
    assert late.tick() == 0
    assert messages(engine) == [("firing", "ops")]
    assert moves(engine) == [(2, "inactive", "firing")]


def test_an_edit_during_an_evaluation_discards_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_rule(engine, make_rule(), START_MS)
    write(engine, START_MS, bad=1)
    live = make_evaluator(engine, minute(1))
    milder = make_rule(min_turns=2)
    meanwhile(
        monkeypatch,
        lambda: store.update_rule(engine, milder, START_MS + 1, teller=make_teller(engine)),
    )
    assert live.tick() == 0
    assert live.tick() == 1
    assert messages(engine) == []


def test_a_deletion_during_an_evaluation_discards_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = make_rule()
    store.create_rule(engine, rule, START_MS)
    write(engine, START_MS, bad=1)
    meanwhile(
        monkeypatch,
        lambda: store.delete_rule(engine, rule.id, START_MS, teller=make_teller(engine)),
    )
    assert make_evaluator(engine, minute(1)).tick() == 0
    assert (messages(engine), moves(engine), store.all_rules(engine)) == ([], [], [])


def test_a_rule_that_was_paused_since_the_tick_began_is_not_evaluated(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = make_rule()
    store.create_rule(engine, rule, START_MS)
    write(engine, START_MS, bad=1)
    before = store.all_rules(engine)
    store.set_enabled(engine, rule.id, False, START_MS, teller=make_teller(engine))
    monkeypatch.setattr(store, "all_rules", lambda *_, **__: before)
    assert make_evaluator(engine, minute(1)).tick() == 0
    assert moves(engine) == []


def test_an_evaluation_locks_nobody_out_before_it_writes(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a large ledger must not keep turns from being recorded."""
    store.create_rule(engine, make_rule(), START_MS)
    came_through: list[bool] = []

    def take_the_lock() -> None:
        with engine.execution_options(**WRITES).begin() as connection:
            connection.execute(text("SELECT 1"))
            came_through.append(True)

    meanwhile(monkeypatch, take_the_lock)
    assert make_evaluator(engine, minute(1)).tick() == 1
    assert came_through == [True]


def meanwhile(monkeypatch: pytest.MonkeyPatch, other: Callable[[], Any]) -> None:
    """Let ``other`` happen once, after the next evaluation has read the ledger."""
    read = measures.windows
    waiting = [other]

    def windows(*given: Any) -> Any:
        found = list(read(*given))
        if waiting:
            waiting.pop()()
        return iter(found)

    monkeypatch.setattr(measures, "windows", windows)
