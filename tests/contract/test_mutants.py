"""The list of mutants that may survive cannot rot: each entry is one of the code as it stands."""

import pytest

from tests.mutation.results import LIST, Listed, listed, mutants
from tests.mutation.targets import ROOT, TARGETS, Target

ENTRIES = listed()
OF = {target.file: target for target in TARGETS}


def test_each_target_and_its_tests_are_there():
    assert [target.file for target in TARGETS if not target.path.is_file()] == []
    named = {name for target in TARGETS for name in target.tests}
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.file)
def test_each_function_that_is_named_has_mutants(target: Target):
    functions = {one.function for one in mutants(target, target.path.read_text())}
    assert [
        name
        for name in target.functions
        if not any(one == name or one.startswith(f"{name}.") for one in functions)
    ] == []


def test_the_list_names_targets_only():
    assert {entry.file for entry in ENTRIES} <= OF.keys()


@pytest.mark.parametrize("file", sorted({entry.file for entry in ENTRIES} & OF.keys()))
def test_each_listed_mutant_is_one_of_the_code_as_it_stands(file: str):
    made = {one.name for one in mutants(OF[file], OF[file].path.read_text())}
    assert [entry.name for entry in ENTRIES if entry.file == file and entry.name not in made] == []


def test_no_mutant_is_listed_twice():
    names = [(entry.file, entry.name) for entry in ENTRIES]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def says_why(entry: Listed) -> bool:
    return len(entry.reason) > 20 and entry.reason.endswith(".")


def test_each_reason_is_a_sentence():
    assert LIST.is_file()
    assert [entry.name for entry in ENTRIES if not says_why(entry)] == []
