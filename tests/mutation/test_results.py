"""What is kept of a run, and how the list is read."""

from pathlib import Path

import pytest

from tests.mutation.mutants import mutants_of
from tests.mutation.results import Listed, Results, as_toml, digest, listed
from tests.mutation.targets import TARGETS, Target
from tests.mutation.trial import Outcome

TARGET = Target("engine/model.py", ("tests/engine/test_decision.py",), ("NOT_ELIGIBLE",))


def test_outcomes_are_kept_while_code_and_tests_are_the_same(tmp_path: Path):
    results = Results(TARGET, tmp_path, fresh=False, again=False)
    results.outcomes = {"a": Outcome("killed", "t", 0.5), "b": Outcome("survived")}
    results.write()
    kept = Results(TARGET, tmp_path, fresh=False, again=False)
    assert kept.outcomes == results.outcomes
    assert Results(TARGET, tmp_path, fresh=True, again=False).outcomes == {}
    again = Results(TARGET, tmp_path, fresh=False, again=True)
    assert again.outcomes == {"a": Outcome("killed", "t", 0.5)}


def test_outcomes_of_other_code_or_other_tests_are_forgotten(tmp_path: Path):
    results = Results(TARGET, tmp_path, fresh=False, again=False)
    results.outcomes = {"a": Outcome("killed", "t", 0.5)}
    results.write()
    other = Target("engine/model.py", ("tests/engine/test_kept.py",), ("NOT_ELIGIBLE",))
    assert Results(other, tmp_path, fresh=False, again=False).outcomes == {}


def test_what_was_killed_before_a_change_is_no_outcome_of_a_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    results = Results(TARGET, tmp_path, fresh=False, again=False)
    results.outcomes = {"a": Outcome("killed", "t", 0.5), "b": Outcome("survived")}
    results.write()
    monkeypatch.setattr("tests.mutation.results.digest", lambda _: "changed")
    again = Results(TARGET, tmp_path, fresh=False, again=True)
    again.outcomes["b"] = Outcome("killed", "t", 0.5)
    again.write()
    assert Results(TARGET, tmp_path, fresh=False, again=True).outcomes == again.outcomes
    assert Results(TARGET, tmp_path, fresh=False, again=False).outcomes == {}


def test_outcomes_rest_on_the_whole_engine_and_on_what_the_tests_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    target = Target("engine/a.py", ("tests/engine/test_a.py",))
    files = ["engine/a.py", "engine/b.py", "tests/engine/test_a.py", "tests/support/c.py",
             "tests/mutation/operators.py"]  # fmt: skip
    for name in [*files, "tests/engine/test_b.py", "tests/mutation/targets.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr("tests.mutation.results.ROOT", tmp_path)
    seen = {digest(target)}
    for count, name in enumerate(files, 2):
        (tmp_path / name).write_text("x")
        seen.add(digest(target))
        assert len(seen) == count
    for name in ("tests/engine/test_b.py", "tests/mutation/targets.py"):
        (tmp_path / name).write_text("x")
    assert digest(target) in seen


def test_the_entry_that_is_printed_lists_the_mutant(tmp_path: Path):
    made = mutants_of(
        "def f(a):\n    if a['b'] == \"it's\":\n        return 1\n    return b'\\x00'\n"
    )
    entries = "\n".join(as_toml(TARGETS[0], one) for one in made)
    path = tmp_path / "mutants.toml"
    path.write_text(f'[[reason]]\nwhy = "Because."\n{entries}\n')
    assert listed(path) == [
        Listed(TARGETS[0].file, one.function, one.was, one.now, one.place, "Because.")
        for one in made
    ]


def test_a_function_that_is_named_holds_what_stands_in_it():
    target = Target("a.py", (), ("f",))
    assert [target.holds(name) for name in ("f", "f.g", "fg", "g.f")] == [True, True, False, False]
    assert Target("a.py", ()).holds("anything")
    assert Target("a/b.py", ()).module == "a.b"
