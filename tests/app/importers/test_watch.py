"""Folders that are watched, and folders that are imported again and again: what changes in them is
taken in, and nothing else is read."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError

from app.errors import AppError
from app.importers import run as runs
from app.importers.unchanged import Unchanged
from app.importers.watch import EVERY, Around, Watch
from app.judging import judge_all
from app.ledger import imports, taking
from app.ledger.models import import_keys
from app.ledger.writer import write_rows
from tests.support.clock import ManualClock
from tests.support.growing import folder
from tests.support.importing import ALL, IDENTITY, NOW, imported, stored
from tests.support.rollouts import THREAD, Rollout, thread, usage
from tests.support.rollups import found_whole, turns_in

on_sqlite = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def engine(holding) -> Engine:
    return holding([])


def ledger(engine):
    judge_all(engine, ManualClock(now=NOW))
    rows = [replace(row, import_id=None) for row in stored(engine)]
    with engine.connect() as connection:
        keys = set(connection.execute(select(import_keys.c.key)).scalars())
    return rows, found_whole(engine, ALL), keys


class Watching:
    """A watch, look by look, and what it said."""

    def __init__(self, engine: Engine, *paths: Path, steps=()) -> None:
        self.brought: list[int] = []
        self.said: list[str] = []
        self.rests: list[float] = []
        self.settled = 0
        self.left: int | None = None
        self.stopped = False
        self.clock = ManualClock(now=NOW)
        self._steps = list(steps)
        self.watch = Watch(
            engine,
            paths,
            self.clock,
            IDENTITY,
            Around(
                rest=self._rest,
                stopped=lambda: self.stopped,
                brought=lambda report: self.brought.append(report.counts.new),
                trouble=self.said.append,
                settle=self._settle,
                progress=self._progress,
            ),
            make_id=lambda: "watch",
        )

    def _rest(self, seconds: float) -> bool:
        self.rests.append(seconds)
        if not self._steps:
            return True
        self._steps.pop(0)()
        return False

    def _settle(self) -> None:
        self.settled += 1

    def _progress(self, _done: int, _of: int) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise KeyboardInterrupt


@on_sqlite
@settings(max_examples=6)
@given(data=st.data())
def test_whatever_becomes_of_files_meanwhile_it_is_the_ledger_of_the_files_in_the_end(
    holding, tmp_path_factory, data
):
    """In pieces as they grow, cut and regrown, moved, compressed, in any order, interrupted."""
    made = folder(tmp_path_factory.mktemp("codex"), data.draw(st.integers(0, 2**32)))
    engine = holding([])
    watching = Watching(engine, made.root) if data.draw(st.booleans()) else None
    steps = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(sorted(made.whole)),
                st.sampled_from(["write", "archive", "compress"]),
                st.integers(0, 99) | st.just(100),
                st.none() | st.integers(0, 6),
            ),
            max_size=8,
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "BATCH", 2)
        for name, what, percent, after in steps:
            made.act(name, what, percent)
            _look(watching, engine, made.root, after)
        made.finish()
        for _ in range(2):
            _look(watching, engine, made.root, None)
    found = ledger(engine)
    assert 0 == imported(engine, made.root, unchanged=Unchanged(engine, IDENTITY)).counts.known
    cold = holding([])
    imported(cold, made.root)
    assert ledger(cold) == found


def _look(watching: Watching | None, engine: Engine, root: Path, after: int | None) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        if watching is not None:
            watching.left = after
            watching.watch.look()
            return
        stopping = Watching(engine)
        stopping.left = after
        unchanged = Unchanged(engine, IDENTITY)
        imported(engine, root, progress=stopping._progress, unchanged=unchanged)


@on_sqlite
def test_a_file_in_which_an_import_was_interrupted_is_read_again(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "BATCH", 1)
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(1_000, 2_000, 3_000))
    found = []
    for after in (2, None):
        _look(None, engine, path, after)
        found.append(turns_in(engine))
    assert [2, 3] == found


def log(*sizes: int) -> bytes:
    file = Rollout()
    for size in sizes:
        file.sent().counted(usage(size))
    return file.data


@on_sqlite
def test_what_is_added_is_taken_and_all_of_it_is_one_import(engine: Engine, tmp_path: Path):
    place, whole = tmp_path / "logs" / "a.jsonl", log(1_000, 2_000, 3_000)
    place.parent.mkdir()
    place.write_bytes(log(1_000))
    (tmp_path / "logs" / "notes.txt").write_text("x")
    seen = Watching(
        engine,
        tmp_path / "logs",
        steps=[
            lambda: None,
            lambda: place.write_bytes(whole[:-30]),
            lambda: place.write_bytes(whole),
            lambda: place.rename(tmp_path / "logs" / "b.jsonl"),
            lambda: None,
        ],
    )
    report = seen.watch.run()
    assert ([1, 1, 1, 0], 4, []) == (seen.brought, seen.settled, seen.said)
    assert {EVERY} == set(seen.rests)
    (found,) = imports.listed(engine)
    assert ("watch", "logs (watched)", "done", 3, 3, "codex") == (
        found.id, found.names, found.state, found.rows_new, found.rows_known, found.formats,
    )  # fmt: skip
    assert (3, 3) == (report.counts.new, turns_in(engine))
    assert imports.undo(engine, "watch").rows == 3


@on_sqlite
def test_calls_that_a_gateway_had_seen_are_told_at_the_end(engine: Engine, tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(1_000, 2_000))
    report = imported(engine, path)
    rows = stored(engine)
    imports.undo(engine, report.import_id)
    write_rows(engine, [replace(rows[0], turn_id="g", source="gateway", import_id=None)])
    report = Watching(engine, path).watch.run()
    assert (2, 1, 0) == (report.counts.new, report.merged, report.differing)


@on_sqlite
def test_known_rows_of_a_file_are_those_that_the_watch_did_not_bring(engine: Engine, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(1_000))
    imported(engine, path)
    steps = [lambda n=n: path.write_bytes(log(*range(1_000, n * 1_000, 1_000))) for n in (3, 4, 5)]
    counts = Watching(engine, path, steps=steps).watch.run().counts
    assert (3, 1) == (counts.new, counts.known)


@on_sqlite
def test_a_fork_is_read_again_when_its_parent_is_there(engine: Engine, tmp_path: Path):
    fork = Rollout("fork", forked_from_id=THREAD).meta(THREAD)
    for size in (1_000, 9_000):
        fork.sent().counted(usage(size), at=90)
    (tmp_path / "fork.jsonl").write_bytes(fork.data)
    unchanged = Unchanged(engine, IDENTITY)
    assert 0 == imported(engine, tmp_path, unchanged=unchanged).counts.new
    parent = tmp_path / "parent.jsonl"
    steps = [lambda: None, lambda: parent.write_bytes(log(1_000, 2_000)), lambda: None]
    seen = Watching(engine, tmp_path, steps=steps)
    seen.watch.run()
    assert [0, 2, 1] == seen.brought


@on_sqlite
def test_the_more_there_is_to_read_the_longer_is_the_rest(engine: Engine, tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(1_000))
    seen = Watching(engine, path)
    settle = seen.watch._around.settle
    seen.watch._around = replace(
        seen.watch._around, settle=lambda: (settle(), seen.clock.advance(3))
    )
    seen.watch.run()
    assert [27.0] == seen.rests


@on_sqlite
def test_files_that_vanish_or_cannot_be_read_are_told_once(engine: Engine, tmp_path: Path):
    logs, path = tmp_path / "logs", tmp_path / "logs" / "a.jsonl"
    logs.mkdir()
    path.write_bytes(log(1_000))
    gone = tmp_path / "gone"
    seen = Watching(
        engine,
        logs,
        steps=[
            lambda: logs.rename(gone),
            lambda: None,
            lambda: gone.rename(logs),
            lambda: path.write_bytes(log(1_000, 2_000)),
        ],
    )
    seen.watch.run()
    assert ([f"There is no file {logs}."], [1, 1]) == (seen.said, seen.brought)
    with pytest.raises(AppError, match="There is no file"):
        Watching(engine, tmp_path / "nowhere").watch.run()


@on_sqlite
def test_a_database_that_is_away_is_told_once_and_nothing_is_lost(
    engine: Engine, tmp_path: Path, monkeypatch
):
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(1_000))
    take = taking.take

    def away(*_: object, **__: object) -> None:
        raise OperationalError("", {}, Exception())

    def back() -> None:
        monkeypatch.setattr(taking, "take", take)

    monkeypatch.setattr(taking, "take", away)
    seen = Watching(engine, path, steps=[lambda: None, back])
    report = seen.watch.run()
    assert ["The ledger cannot be used (Exception). Trying again.",
            "The ledger can be used again."] == seen.said  # fmt: skip
    assert (1, 1, [1]) == (report.counts.new, turns_in(engine), seen.brought)


@on_sqlite
def test_what_it_has_brought_may_be_undone_and_ends_it(engine: Engine, tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(1_000))
    seen = Watching(engine, path, steps=[lambda: imports.undo(engine, "watch")])
    with pytest.raises(AppError, match="was undone: it ends here"):
        seen.watch.run()
    assert ("undone", 0) == (imports.one(engine, "watch").state, turns_in(engine))


@on_sqlite
def test_what_another_import_gives_back_is_read_again(engine: Engine, tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(1_000))
    imported(engine, path, unchanged=Unchanged(engine, IDENTITY), make_id=lambda: "before")
    seen = Watching(engine, path, steps=[lambda: imports.undo(engine, "before")])
    seen.watch.run()
    assert [1] == seen.brought


@on_sqlite
def test_it_ends_in_the_middle_of_a_file(engine: Engine, tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(log(1_000))
    seen = Watching(engine, tmp_path)
    seen.stopped = True
    seen.watch.run()
    assert ("interrupted", 0) == (imports.one(engine, "watch").state, turns_in(engine))


@on_sqlite
def test_a_row_of_the_future_is_taken_when_its_time_has_come(engine: Engine, tmp_path: Path):
    day = 24 * 3_600
    file = Rollout(thread(1, at=day)).sent().counted(usage(1_000))
    (tmp_path / "a.jsonl").write_bytes(file.data)
    seen = Watching(engine, tmp_path, steps=[lambda: seen.clock.set_now(NOW)])
    seen.clock.set_now(1_793_527_200 - 2 * day)
    seen.watch.run()
    assert [0, 1] == seen.brought
