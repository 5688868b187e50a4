"""What is kept of a run, and how the list is read."""

from pathlib import Path

from tests.mutation.mutants import mutants_of
from tests.mutation.results import Listed, Results, as_toml, listed
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
