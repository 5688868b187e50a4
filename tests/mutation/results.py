"""What is known of a target's mutants from earlier runs, and the list of those that may survive."""

from __future__ import annotations

import ast
import hashlib
import json
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.targets import ROOT, Target
from tests.mutation.trial import Outcome

STATE = ROOT / ".cache" / "mutants"
LIST = ROOT / "docs" / "mutants.toml"


def mutants(target: Target, source: str) -> list[Mutant]:
    return [one for one in mutants_of(source) if target.holds(one.function)]


TOOL = tuple(f"tests/mutation/{name}.py" for name in ("mutants", "operators", "trial"))


def digest(target: Target) -> str:
    """Of all that an outcome rests on: while it is the same, so are the outcomes."""
    made = hashlib.sha256(target.file.encode())
    for path in sorted(rests_on(target)):
        made.update(path.read_bytes())
    return made.hexdigest()


def rests_on(target: Target) -> set[Path]:
    """The target, its tests and this tool, and whatever of the project these import."""
    found: set[Path] = set()
    waiting = [target.path, *(ROOT / name for name in TOOL)]
    for path in (ROOT / name for name in target.tests):
        waiting += path.rglob("*.py") if path.is_dir() else [path]
        waiting += (
            above / "conftest.py" for above in path.parents if ROOT in (above, *above.parents)
        )
    while waiting:
        path = waiting.pop()
        if path not in found and path.is_file():
            found.add(path)
            waiting += _imported(path)
    return found


def _imported(path: Path) -> Iterable[Path]:
    """What a file may import of the project; a name that is no module has no file."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        for place in (ROOT.joinpath(*name.split(".")) for name in names):
            yield place.with_suffix(".py")
            yield place / "__init__.py"


class Results:
    """Outcomes by the mutants' names, kept in a file while what they rest on is the same.

    ``again`` takes over what was killed, whatever has changed since: for work on the tests. What
    is kept then is not taken for the outcomes of a whole run.
    """

    def __init__(self, target: Target, state: Path, *, fresh: bool, again: bool) -> None:
        self.path = state / f"{target.module}.json"
        self._digest = digest(target)
        self.outcomes: dict[str, Outcome] = {}
        if fresh or not self.path.exists():
            return
        kept = json.loads(self.path.read_text())
        known = {name: Outcome(**one) for name, one in kept["outcomes"].items()}
        if again:
            known = {name: one for name, one in known.items() if one.word == "killed"}
            if known:
                self._digest = kept["digest"]
        elif kept["digest"] != self._digest:
            return
        self.outcomes = known

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        outcomes = {name: asdict(one) for name, one in self.outcomes.items()}
        text = json.dumps({"digest": self._digest, "outcomes": outcomes}, indent=0)
        staged = self.path.with_suffix(".new")
        staged.write_text(text)
        staged.replace(self.path)


@dataclass(frozen=True)
class Listed:
    """A mutant that may survive, and why no test can or should notice it."""

    file: str
    function: str
    was: str
    now: str
    place: int
    reason: str

    @property
    def name(self) -> str:
        return f"{self.function} #{self.place}: {self.was} -> {self.now}"


def listed(path: Path = LIST) -> list[Listed]:
    """The list: a ``[[reason]]`` with its words, and the mutants for which it holds."""
    groups: list[dict[str, Any]] = tomllib.loads(path.read_text()).get("reason", [])
    return [
        Listed(**{"place": 1, **entry, "reason": group["why"]})
        for group in groups
        for entry in group["mutants"]
    ]


def as_toml(target: Target, mutant: Mutant) -> str:
    """The entry that would list it, below its reason."""
    lines = ["[[reason.mutants]]", f"file = {_quoted(target.file)}"]
    lines += [f"{name} = {_quoted(getattr(mutant, name))}" for name in ("function", "was", "now")]
    if mutant.place > 1:
        lines.append(f"place = {mutant.place}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text and text.isprintable() else json.dumps(text)
