"""What may be wrong with one node of a program: each operator makes a small fault of it.

Most mutation tools leave alone what stands outside functions and what is decorated; here the
members of the sets that decide equality and the properties are among what matters most.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

REMOVED = "(removed)"


@dataclass(frozen=True)
class Variant:
    """Another node in the place of one. ``part`` names what is gone from a node too long to show."""

    node: ast.AST
    part: str | None = None


_COMPARED: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COMPUTED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_TWINS = {"min": "max", "any": "all", "startswith": "endswith", "keys": "values"}
_TWIN_OF = {**_TWINS, **{other: name for name, other in _TWINS.items()}}
_SYMMETRIC = {"min", "max", "suppress"}
_NOT_UNWRAPPED = {"isinstance", "len", "range", "frozenset", "ref", "cast"}


def variants(node: ast.AST, members: Mapping[str, list[str]]) -> Iterator[Variant]:
    """All faults of one node; ``members`` are the constants (``Reason.OK``) named in the file."""
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BoolOp():
            yield from _joined(node)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield Variant(node.operand)
        case ast.BinOp():
            yield from _computed(node)
        case ast.AugAssign() if type(node.op) in _COMPUTED:
            yield Variant(_with(node, op=_COMPUTED[type(node.op)]()))
        case ast.Constant():
            yield from _constants(node)
        case ast.Attribute():
            yield from _members(node, members)
        case ast.Call():
            yield from _called(node)
        case ast.Set() | ast.List() | ast.Tuple():
            yield from _elements(node)
        case ast.Dict():
            yield from _entries(node)
        case ast.Slice():
            for name in ("lower", "upper", "step"):
                if getattr(node, name) is not None:
                    yield Variant(_with(node, **{name: None}))
        case ast.If() | ast.IfExp() if not isinstance(node.test, ast.Constant):
            for value in (True, False):
                yield Variant(_with(node, test=ast.Constant(value)))
        case ast.While() if not isinstance(node.test, ast.Constant):
            yield Variant(_with(node, test=ast.Constant(value=False)))
        case ast.For():
            yield Variant(_with(node, iter=ast.Tuple([], ast.Load())))
        case ast.comprehension():
            for place in range(len(node.ifs)):
                yield Variant(_with(node, ifs=node.ifs[:place] + node.ifs[place + 1 :]))
        case ast.ExceptHandler(type=ast.Name() | ast.Attribute()):
            yield Variant(_with(node, type=ast.Tuple([], ast.Load())))
        case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
            yield Variant(ast.Return(ast.Constant(None)))


def may_be_removed(node: ast.stmt) -> bool:
    """Whether a statement can be left out as such; ``assert`` is for readers and type checkers."""
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return isinstance(
        node,
        (ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Continue, ast.Break, ast.Return),
    )


def _with(node: ast.AST, **fields: object) -> ast.AST:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _compared(node: ast.Compare) -> Iterator[Variant]:
    for place, op in enumerate(node.ops):
        for other in _COMPARED[type(op)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield Variant(_with(node, ops=ops))


def _joined(node: ast.BoolOp) -> Iterator[Variant]:
    yield Variant(_with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And()))
    for place in range(len(node.values)):
        rest = node.values[:place] + node.values[place + 1 :]
        yield Variant(rest[0] if len(rest) == 1 else _with(node, values=rest))


def _computed(node: ast.BinOp) -> Iterator[Variant]:
    if type(node.op) in _COMPUTED:
        yield Variant(_with(node, op=_COMPUTED[type(node.op)]()))
        yield Variant(node.left)
        if isinstance(node.op, (ast.Add, ast.BitOr, ast.BitAnd)):
            yield Variant(node.right)


def _constants(node: ast.Constant) -> Iterator[Variant]:
    value = node.value
    if isinstance(value, bool):
        yield Variant(ast.Constant(not value))
    elif isinstance(value, int):
        yield Variant(ast.Constant(value + 1))
        yield Variant(ast.Constant(value - 1))
    elif isinstance(value, str):
        yield Variant(ast.Constant(value + "X"))
    elif isinstance(value, bytes):
        yield Variant(ast.Constant(value + b"X"))


def _members(node: ast.Attribute, members: Mapping[str, list[str]]) -> Iterator[Variant]:
    if isinstance(node.value, ast.Name) and node.attr.isupper():
        names = members[node.value.id]
        if len(names) > 1:
            other = names[(names.index(node.attr) + 1) % len(names)]
            yield Variant(_with(node, attr=other))


def _called(node: ast.Call) -> Iterator[Variant]:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name in _TWIN_OF:
        yield Variant(_with(node, func=ast.Name(_TWIN_OF[name], ast.Load())))
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in _TWIN_OF:
            yield Variant(_with(node, func=_with(node.func, attr=_TWIN_OF[node.func.attr])))
        yield Variant(node.func.value)
    elif node.args and name not in _NOT_UNWRAPPED and not isinstance(node.args[0], ast.Starred):
        yield Variant(node.args[0])
    args = node.args
    for place in range(len(args) - 1):
        if name not in _SYMMETRIC and ast.dump(args[place]) != ast.dump(args[place + 1]):
            swapped = [*args[:place], args[place + 1], args[place], *args[place + 2 :]]
            yield Variant(_with(node, args=swapped))
    if len(args) > 1:
        yield Variant(_with(node, args=args[:-1]))
    for place, keyword in enumerate(node.keywords):
        if keyword.arg == "strict" and ast.unparse(keyword.value) == "False":
            continue  # what it is without
        rest = node.keywords[:place] + node.keywords[place + 1 :]
        yield Variant(_with(node, keywords=rest), part=ast.unparse(keyword))


def _elements(node: ast.Set | ast.List | ast.Tuple) -> Iterator[Variant]:
    is_written = isinstance(node, ast.Set) or isinstance(node.ctx, ast.Load)
    if is_written and (len(node.elts) > 1 or not isinstance(node, ast.Tuple)):
        for place, element in enumerate(node.elts):
            rest = node.elts[:place] + node.elts[place + 1 :]
            empty = ast.Call(ast.Name("set", ast.Load()), [], [])
            left = _with(node, elts=rest) if rest or not isinstance(node, ast.Set) else empty
            yield Variant(left, part=ast.unparse(element))


def _entries(node: ast.Dict) -> Iterator[Variant]:
    for place, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        left = ast.Dict(
            node.keys[:place] + node.keys[place + 1 :],
            node.values[:place] + node.values[place + 1 :],
        )
        yield Variant(left, part=ast.unparse(ast.Dict([key], [value]))[1:-1])
