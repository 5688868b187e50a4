"""All mutants of a source file, each with a name that outlives edits elsewhere in the file."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.mutation.operators import REMOVED, may_be_removed, variants

Step = tuple[str, int | None]
SHOWN = 100
"""So many characters of the code around a fault are shown, where there are so many."""


@dataclass(frozen=True)
class Mutant:
    """One fault: ``was`` in ``function`` became ``now``; the ``place``-th such code in it, from 1."""

    function: str
    was: str
    now: str
    place: int
    path: tuple[Step, ...] = field(compare=False, repr=False)
    node: ast.AST = field(compare=False, repr=False)
    line: int = field(compare=False, default=0)

    @property
    def name(self) -> str:
        return f"{self.function} #{self.place}: {self.was} -> {self.now}"

    def applied(self, tree: ast.Module) -> ast.Module:
        """A copy of the tree with the fault in it."""
        made = copy.deepcopy(tree)
        _put(made, self.path, copy.deepcopy(self.node))
        return ast.fix_missing_locations(made)


def mutants_of(source: str) -> list[Mutant]:
    """In the order of the source; the same code makes the same mutants."""
    tree = ast.parse(source)
    members: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = members.setdefault(node.value.id, [])
            if node.attr.isupper() and node.attr not in names:
                names.append(node.attr)
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for site in _sites(tree):
        for made, was, now in site.faults(members):
            key = (site.function, was, now)
            seen[key] += 1
            found.append(Mutant(*key, seen[key], site.path, made, site.line))
    return found


@dataclass(frozen=True)
class _Site:
    """A node that may be mutated, with its way down from the module."""

    way: tuple[ast.AST, ...]
    path: tuple[Step, ...]
    function: str

    @property
    def node(self) -> ast.AST:
        return self.way[-1]

    @property
    def line(self) -> int:
        return next(node.lineno for node in reversed(self.way) if hasattr(node, "lineno"))

    def faults(self, members: dict[str, list[str]]) -> Iterator[tuple[ast.AST, str, str]]:
        for variant in variants(self.node, members):
            shown = self._shown(variant.node)
            if variant.part is not None and len(shown[0]) > SHOWN:
                shown = (variant.part, REMOVED)
            yield (variant.node, *shown)
        if self._may_be_removed():
            yield ast.Pass(), _header(self.node), REMOVED

    def _may_be_removed(self) -> bool:
        """Leaving out a last ``return`` is to return None, which is a mutant already."""
        if not isinstance(self.node, ast.stmt) or not may_be_removed(self.node):
            return False
        if not any(isinstance(node, ast.FunctionDef) for node in self.way):
            return False
        return not (isinstance(self.node, ast.Return) and self._is_at_the_end())

    def _is_at_the_end(self) -> bool:
        """Whether the function ends where this statement does."""
        for below, above in zip(self.way[::-1], self.way[-2::-1], strict=False):
            if isinstance(above, (ast.For, ast.While)):
                return False
            blocks = [getattr(above, name, []) for name in ("body", "orelse", "finalbody")]
            if not isinstance(below, ast.ExceptHandler) and not any(
                block and block[-1] is below for block in blocks
            ):
                return False
            if isinstance(above, ast.FunctionDef):
                return True
        return False

    def _shown(self, made: ast.AST) -> tuple[str, str]:
        """The code around the fault, before and after: as much of one expression as is short."""
        depth = len(self.way) - 1
        while depth > 1 and not isinstance(self.way[depth], (ast.stmt, ast.ExceptHandler)):
            above = self.way[depth - 1]
            if isinstance(above, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                break
            if len(_header(above)) > SHOWN and isinstance(self.way[depth], ast.expr):
                break
            depth -= 1
        around = copy.deepcopy(self.way[depth])
        below = self.path[depth:]
        if not below:
            return _header(self.node), _header(made)
        was = _header(around)
        _put(around, below, copy.deepcopy(made))
        return was, _header(around)


def _sites(tree: ast.Module) -> Iterator[_Site]:
    stack = [_Site((tree,), (), "")]
    while stack:
        site = stack.pop()
        yield site
        stack += reversed(list(_below(site)))


def _below(site: _Site) -> Iterator[_Site]:
    node = site.node
    for name, value in ast.iter_fields(node):
        if _is_left_alone(node, name):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and not _is_no_code(child, node):
                step = (name, index if isinstance(value, list) else None)
                yield _Site((*site.way, child), (*site.path, step), _function(site, child))


def _function(site: _Site, child: ast.AST) -> str:
    """Where a reader finds it: functions with their classes, else the name that is assigned."""
    inside = site.function
    if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
        return f"{inside}.{child.name}" if inside else child.name
    if not inside and isinstance(child, (ast.Assign, ast.AnnAssign)):
        target = child.targets[0] if isinstance(child, ast.Assign) else child.target
        return ast.unparse(target)
    return inside


def _is_left_alone(node: ast.AST, name: str) -> bool:
    """Annotations, decorators, names of what is caught or assigned, words of errors: no decisions."""
    if name in (
        "annotation",
        "returns",
        "decorator_list",
        "target",
        "targets",
        "bases",
        "format_spec",
    ):
        return True
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Subscript) and name == "ctx")


def _is_no_code(child: ast.AST, parent: ast.AST) -> bool:
    match child:
        case ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
        case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.FunctionDef():
            return any(isinstance(d, ast.Name) and d.id == "overload" for d in child.decorator_list)
        case ast.ClassDef():
            return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in child.bases)
        case ast.Tuple():
            return isinstance(parent, ast.Subscript)
        case ast.Constant() | ast.Attribute():
            return isinstance(parent, ast.Set)  # another member is one that is missing
    return False


def _put(root: ast.AST, path: tuple[Step, ...], node: ast.AST) -> None:
    *way, (name, index) = path
    for step, at in way:
        value = getattr(root, step)
        root = value if at is None else value[at]
    if index is None:
        setattr(root, name, node)
    else:
        getattr(root, name)[index] = node


def _header(node: ast.AST) -> str:
    """The code of a node; of a compound statement the line that opens it."""
    if isinstance(
        node, (ast.If, ast.While, ast.For, ast.With, ast.Try, ast.FunctionDef, ast.ClassDef)
    ):
        bare = copy.copy(node)
        bare.body = [ast.Pass()]
        for name in ("orelse", "finalbody", "decorator_list"):
            if hasattr(bare, name):
                setattr(bare, name, [])
        if isinstance(bare, ast.Try):
            return "try:"
        return ast.unparse(bare).splitlines()[0]
    if isinstance(node, ast.ExceptHandler):
        bare = copy.copy(node)
        bare.body = [ast.Pass()]
        return ast.unparse(bare).strip().splitlines()[0]
    return " ".join(ast.unparse(node).split())
