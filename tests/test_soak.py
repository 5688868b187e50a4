"""The soak itself: it finds faults that are planted in the engine, and keeps its accounts."""

from __future__ import annotations

import json
import sys

import pytest

from engine import items
from engine.chain import Chain
from engine.sessions import Sessions
from engine.stream import Fold
from tests.soak import main, soak
from tests.support.report import Report
from tests.support.soaking import STEPS, class_of, run_seed, shortened
from tests.support.totals import Totals, engine_digest

WITHIN = 3_000
"""Turns within which a planted fault has to be found: a few seconds of a soak."""


def first_found(wanted: set[str]) -> tuple[str, int, int]:
    """The class of the first fault that is one of these, its seed, and the turns until then."""
    turns = 0
    for seed in range(500, 600):
        report = run_seed(seed)
        turns += report.turns
        for fault in report.faults:
            if class_of(fault) in wanted:
                return class_of(fault), seed, turns
        if turns > WITHIN:
            break
    pytest.fail(f"none of {sorted(wanted)} was found in {turns} turns")


def ignore_texts(monkeypatch):
    exact = items.difference

    def loose(held, now, *, model_made):
        path = exact(held, now, model_made=model_made)
        return None if path and path[-1] == "text" else path

    monkeypatch.setattr(items, "difference", loose)


def ignore_ids(monkeypatch):
    exact = items.difference

    def loose(held, now, *, model_made):
        path = exact(held, now, model_made=model_made)
        return None if path == ("id",) else path

    monkeypatch.setattr(items, "difference", loose)


def ignore_outputs_of_tools(monkeypatch):
    exact = items.difference

    def loose(held, now, *, model_made):
        path = exact(held, now, model_made=model_made)
        return None if path and path[0] == "output" else path

    monkeypatch.setattr(items, "difference", loose)


def refuse_long_chains(monkeypatch):
    free = Chain.free_for

    def sometimes(self, *asker):
        return (self.anchor is None or len(self.anchor.items) < 9) and free(self, *asker)

    monkeypatch.setattr(Chain, "free_for", sometimes)


def never_release_leases(monkeypatch):
    monkeypatch.setattr(Sessions, "release", lambda self, socket: None)


def ignore_leases(monkeypatch):
    free = Chain.free_for

    def careless(self, socket, *rest):
        return free(self, self.leased_by, *rest)

    monkeypatch.setattr(Chain, "free_for", careless)


def forget_the_last_output(monkeypatch):
    outputs = Fold.outputs.fget
    monkeypatch.setattr(Fold, "outputs", property(lambda self: outputs(self)[:2]))


def ignore_missing_items(monkeypatch):
    monkeypatch.setattr(Fold, "lacks_items", False)
    monkeypatch.setattr(Fold, "conflicts", False)


@pytest.mark.parametrize(
    ("plant", "classes"),
    [
        (ignore_texts, {"transcript"}),
        (ignore_ids, {"transcript"}),
        (ignore_outputs_of_tools, {"transcript"}),
        (refuse_long_chains, {"needless_full"}),
        (never_release_leases, {"needless_full"}),
        (ignore_leases, {"unproven"}),
        (forget_the_last_output, {"transcript", "needless_full"}),
        (ignore_missing_items, {"transcript", "unproven", "reason"}),
    ],
)
def test_a_fault_planted_in_the_engine_is_found_within_a_bounded_number_of_turns(
    plant, classes, monkeypatch
):
    plant(monkeypatch)
    class_, _, turns = first_found(classes)
    assert class_ in classes
    assert turns <= WITHIN + 200


def test_a_fault_is_shown_by_a_few_steps_of_its_seed(monkeypatch):
    ignore_texts(monkeypatch)
    class_, seed, _ = first_found({"transcript"})
    steps = shortened(seed, class_)
    assert len(steps) < STEPS / 2
    assert class_ in {class_of(fault) for fault in run_seed(seed, steps=steps).faults}


def test_a_seed_is_the_same_run_each_time():
    one, other = (run_seed(7) for _ in range(2))
    assert one == other
    assert one.turns > 30


def test_what_breaks_inside_a_run_is_a_fault_and_no_end_of_the_soak(monkeypatch):
    monkeypatch.setattr(Chain, "stage", None)
    assert run_seed(1).faults != []


def test_totals_are_added_up_over_runs_and_an_interrupted_seed_is_run_again(tmp_path):
    path = tmp_path / "soak.json"
    assert soak(0.5, 1, path) == 0
    first = Totals.read(path)
    assert first.turns > 0
    assert first.open_seeds == []
    first.take()  # as if it had been interrupted in this seed
    first.write(path)
    assert soak(0.5, 1, path) == 0
    second = Totals.read(path)
    assert second.seeds == second.next_seed > first.seeds
    assert second.turns > first.turns
    assert second.turns == second.counts["modes"].total()
    assert soak(0.0, 1, path, fresh=True) == 0
    assert Totals.read(path).turns == 0


def test_an_interrupted_run_keeps_its_totals_and_runs_the_open_seed_again(tmp_path, monkeypatch):
    path = tmp_path / "soak.json"

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tests.soak.wait", interrupted)
        assert soak(5, 1, path) == 0
    assert (Totals.read(path).open_seeds, Totals.read(path).seeds) == ([0], 0)
    soak(0.5, 1, path)
    after = Totals.read(path)
    assert after.open_seeds == []
    assert after.seeds == after.next_seed


def test_the_totals_survive_their_file(tmp_path):
    totals = Totals()
    report = Report(turns=3, faults=["transcript: turn_1: x"])
    report.modes["ws_full"] += 3
    totals.add(totals.take(), report, "e1")
    totals.write(tmp_path / "state.json")
    assert Totals.read(tmp_path / "state.json") == totals
    assert json.loads((tmp_path / "state.json").read_text())["faults"] == {"transcript": 1}


def test_turns_are_counted_for_the_engine_that_made_them(tmp_path):
    (tmp_path / "a.py").write_text("one")
    before = engine_digest(tmp_path)
    assert before == engine_digest(tmp_path)
    (tmp_path / "a.py").write_text("two")
    assert before != engine_digest(tmp_path)


def test_a_seed_alone_tells_its_turns(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["soak", "--seed", "3", "--steps", "1,2,3"])
    assert main() == 0
    told = capsys.readouterr().out
    assert "step 3" in told
    assert "0 faults" in told
