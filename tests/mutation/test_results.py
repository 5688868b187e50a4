"""What is kept of a run, and how the list is read."""

from pathlib import Path

import pytest

from tests.mutation.mutants import mutants_of
from tests.mutation.results import Listed, Results, as_toml, digest, listed, rests_on
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


def test_outcomes_rest_on_what_the_target_and_its_tests_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = {
        "engine/a.py": "import json\nfrom engine import b, nothing\n",
        "engine/b.py": "def f():\n    import engine.c\n",
        "engine/c.py": "",
        "engine/d/__init__.py": "from engine.a import C\n",
        "tests/engine/test_a.py": "from tests.support.s import raw\n",
        "tests/support/s.py": "from engine.d import D\n",
        "tests/conftest.py": "",
        "tests/engine/of_a/test_more.py": "",
        "tests/mutation/operators.py": "",
    }
    others = ["engine/other.py", "tests/engine/test_b.py", "tests/mutation/targets.py"]
    for name, text in [*files.items(), *((name, "") for name in others)]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for module in ("results", "targets"):
        monkeypatch.setattr(f"tests.mutation.{module}.ROOT", tmp_path)
    target = Target("engine/a.py", ("tests/engine/test_a.py", "tests/engine/of_a"))
    assert rests_on(target) == {tmp_path / name for name in files}
    before = digest(target)
    (tmp_path / "engine/c.py").write_text("x = 1")
    assert digest(target) != before


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
