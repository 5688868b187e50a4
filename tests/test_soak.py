"""The soak itself: it finds faults that are planted in the engine, and keeps its accounts."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from engine import items, kept, matching
from engine.chain import Chain
from engine.condensed import Condensed
from engine.frozen import Frozen
from engine.keeper import Keeper
from engine.model import ColdCause
from engine.over_http import HttpSide
from engine.sessions import Sessions
from engine.shadow import Shadow
from engine.stream import Fold
from tests.soak import main, soak
from tests.support.conversations import Conversations
from tests.support.report import Report
from tests.support.soaking import begun, class_of, run_seed, shortened, steps_of
from tests.support.totals import Totals, engine_digest

WITHIN = 3_000
"""Turns within which a planted fault has to be found: a few seconds of a soak."""


def first_found(
    wanted: set[str], kind: str | None = None, first: int = 508
) -> tuple[str, int, int]:
    """The class of the first fault that is one of these, its seed, and the turns until then.

    ``kind``: only in runs of this regime, or of this class. ``first``: where to begin; a seed that
    shows it soon, to save time.
    """
    turns = 0
    for seed in range(first, first + 1000):
        if kind not in (None, kind_of(seed)):
            continue
        report = run_seed(seed)
        turns += report.turns
        for fault in report.faults:
            if class_of(fault) in wanted:
                return class_of(fault), seed, turns
        if turns > WITHIN:
            break
    pytest.fail(f"none of {sorted(wanted)} was found in {turns} turns")


def kind_of(seed: int) -> str:
    run = begun(seed, (), print)
    return run.regime.name if isinstance(run, Conversations) else run.name


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


def forget_resets(monkeypatch):
    monkeypatch.setattr(Sessions, "reset", lambda self, *_: [])


def use_again_what_a_client_left(monkeypatch):
    abandon = Keeper.abandon

    def careless(self, turn, cause):
        if cause is ColdCause.AFTER_CANCEL and turn.chain is not None and not turn.ended:
            turn.chain.release()
        else:
            abandon(self, turn, cause)

    monkeypatch.setattr(Keeper, "abandon", careless)


def open_a_chain_for_each_shadow(monkeypatch):
    monkeypatch.setattr(Shadow, "_take", lambda self, turn: self._open(turn))


def touch_what_is_only_observed(monkeypatch):
    sent = HttpSide._post

    def padded(self, turn, body):
        return sent(self, turn, body + b" " if turn.observed else body)

    monkeypatch.setattr(HttpSide, "_post", padded)


def count_nothing_as_frozen(monkeypatch):
    monkeypatch.setattr(matching, "frozen", lambda known, now: 0)


def take_digests_for_granted(monkeypatch):
    monkeypatch.setattr(Condensed, "is_same", lambda self, index, now: True)


def freeze_nothing_embedded(monkeypatch):
    monkeypatch.setattr(Frozen, "commit", lambda self, applied: None)


def let_short_kept_responses_be(monkeypatch):
    covers = kept.decide

    def sometimes(anchors, *rest, **more):
        return covers([a for a in anchors if len(a.items) > 4], *rest, **more)

    monkeypatch.setattr(kept, "decide", sometimes)


@pytest.mark.parametrize(
    ("plant", "classes", "kind", "first"),
    [
        (ignore_texts, {"transcript"}, None, 508),
        (ignore_ids, {"transcript"}, None, 508),
        (ignore_outputs_of_tools, {"transcript"}, None, 507),
        (refuse_long_chains, {"needless_full"}, None, 506),
        (never_release_leases, {"needless_full"}, None, 509),
        (ignore_leases, {"unproven"}, None, 516),
        (forget_the_last_output, {"transcript", "needless_full"}, None, 508),
        (ignore_missing_items, {"transcript", "unproven", "reason"}, None, 502),
        (forget_resets, {"unproven"}, None, 519),
        (
            use_again_what_a_client_left,
            {"overlap", "transcript", "unproven", "hang", "crash"},
            None,
            506,
        ),
        (open_a_chain_for_each_shadow, {"shadow"}, "observe", 577),
        (touch_what_is_only_observed, {"observed"}, "observe", 577),
        (count_nothing_as_frozen, {"frozen"}, "freeze", 629),
        (take_digests_for_granted, {"transcript", "unproven"}, "small", 563),
        (freeze_nothing_embedded, {"embedded"}, "embedded", 583),
        (let_short_kept_responses_be, {"kept"}, "kept", 541),
    ],
)
def test_a_fault_planted_in_the_engine_is_found_within_a_bounded_number_of_turns(
    plant, classes, kind, first, monkeypatch
):
    plant(monkeypatch)
    class_, _, turns = first_found(classes, kind, first)
    assert class_ in classes
    assert turns <= WITHIN + 200


def test_a_fault_is_shown_by_a_few_steps_of_its_seed(monkeypatch):
    ignore_texts(monkeypatch)
    class_, seed, _ = first_found({"transcript"})
    steps = shortened(seed, class_)
    assert len(steps) < steps_of(seed) / 2
    assert class_ in {class_of(fault) for fault in run_seed(seed, steps=steps).faults}


@pytest.mark.parametrize("seed", [8, 12, 13])
def test_a_seed_is_the_same_run_each_time(seed):
    one, other = (run_seed(seed) for _ in range(2))
    assert one == other
    assert one.turns > 15


def test_what_breaks_inside_a_run_is_a_fault_and_no_end_of_the_soak(monkeypatch):
    monkeypatch.setattr(Conversations, "conclude", None)
    assert [class_of(fault) for fault in run_seed(1).faults] == ["crash"]


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


def test_a_run_leaves_the_log_as_it_was():
    logger = logging.getLogger("warmline.engine")
    level = logger.level
    run_seed(1, steps=[1])
    assert level == logger.level
