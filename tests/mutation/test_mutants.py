"""Which code is mutated, and how a mutant is named."""

import ast

from tests.mutation.mutants import mutants_of

SOURCE = '''
"""Words."""
from __future__ import annotations

WORDS = frozenset({"a", "b"})
Alias: TypeAlias = dict[str, int]
T = TypeVar("T")
__all__ = ["f"]


class Shape(Protocol):
    side: int = 4


@decorated(by=1)
class C:
    __slots__ = ("x",)

    @property
    def p(self, x: Literal["n"] = 1) -> str:
        """Words."""
        raise ValueError("words")

    @overload
    def q(self) -> int: return 1
'''


def names(source: str) -> list[str]:
    return [mutant.name for mutant in mutants_of(source)]


def test_code_outside_functions_and_in_properties_is_mutated_and_words_are_not():
    assert names(SOURCE) == [
        "WORDS #1: WORDS = frozenset({'a', 'b'}) -> WORDS = frozenset({'b'})",
        "WORDS #1: WORDS = frozenset({'a', 'b'}) -> WORDS = frozenset({'a'})",
        "C.p #1: self, x: Literal['n']=1 -> self, x: Literal['n']=2",
        "C.p #1: self, x: Literal['n']=1 -> self, x: Literal['n']=0",
        "C.p #1: raise ValueError('words') -> (removed)",
    ]


def test_a_member_of_a_long_list_is_named_alone():
    words = ", ".join(f'"word{number}"' for number in range(20))
    assert names(f"WORDS = {{{words}}}")[:2] == [
        "WORDS #1: 'word0' -> (removed)",
        "WORDS #1: 'word1' -> (removed)",
    ]


def test_the_same_code_twice_in_a_function_makes_mutants_that_are_told_apart():
    made = mutants_of("def f(a):\n    if a:\n        g()\n    if a:\n        g()\n")
    assert [(m.was, m.now, m.place) for m in made if m.now == "if True:"] == [
        ("if a:", "if True:", 1),
        ("if a:", "if True:", 2),
    ]
    assert len({m.name for m in made}) == len(made)


def test_a_name_does_not_change_with_code_elsewhere():
    code = "def f(a):\n    return a + 1\n"
    assert names(code) == names("def g():\n    pass\n\n\n" + code)[-len(names(code)) :]


def test_a_mutant_is_one_change_and_leaves_the_tree_as_it_is():
    tree = ast.parse("def f(a):\n    return a + 1\n")
    before = ast.dump(tree)
    made = [ast.unparse(one.applied(tree)) for one in mutants_of(ast.unparse(tree))]
    assert made == [
        "def f(a):\n    return None",
        "def f(a):\n    return a - 1",
        "def f(a):\n    return a",
        "def f(a):\n    return 1",
        "def f(a):\n    return a + 2",
        "def f(a):\n    return a + 0",
    ]
    assert ast.dump(tree) == before


def test_a_return_at_the_end_of_a_function_is_not_left_out_and_an_early_one_is():
    early = "def f(a):\n    if a:\n        return True\n    g(a)\n"
    last = (
        "def f(a):\n    try:\n        g(a)\n    except E:\n        if a:\n            return True\n"
    )
    loop = "def f(a):\n    for i in a:\n        return True\n"
    removed = [
        any("return True -> (removed)" in one for one in names(s)) for s in (early, last, loop)
    ]
    assert removed == [True, False, True]
