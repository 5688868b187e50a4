"""Each operator, by the faults that it makes of a line."""

import ast

import pytest

from tests.mutation.mutants import mutants_of


def faults(line: str, inside: str = "def f(a, b, c):\n    {}\n    return\n") -> list[str]:
    """What becomes of a line in a function, shown as the list shows it."""
    made = mutants_of(inside.format(line))
    tree = ast.parse(inside.format(line))
    for mutant in made:
        compile(mutant.applied(tree), "f", "exec")
        assert ast.dump(mutant.applied(tree)) != ast.dump(tree)
    return [mutant.now for mutant in made]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = a == b", ["x = a != b", "(removed)"]),
        ("x = a < b", ["x = a <= b", "x = a >= b", "(removed)"]),
        ("x = a <= b", ["x = a < b", "x = a > b", "(removed)"]),
        ("x = a > b", ["x = a >= b", "x = a <= b", "(removed)"]),
        ("x = a >= b", ["x = a > b", "x = a < b", "(removed)"]),
        ("x = a is b", ["x = a is not b", "(removed)"]),
        ("x = a not in b", ["x = a in b", "(removed)"]),
        ("x = a < b < c", ["x = a <= b < c", "x = a >= b < c", "x = a < b <= c", "x = a < b >= c",
                           "(removed)"]),
        ("x = a and b", ["x = a or b", "x = b", "x = a", "(removed)"]),
        ("x = a or b or c", ["x = a and b and c", "x = b or c", "x = a or c", "x = a or b",
                             "(removed)"]),
        ("x = not a", ["x = a", "(removed)"]),
        ("x = -a", ["x = a", "(removed)"]),
        ("x = a - b", ["x = a + b", "x = a", "(removed)"]),
        ("x = a + b", ["x = a - b", "x = a", "x = b", "(removed)"]),
        ("a += b", ["a -= b", "(removed)"]),
        ("x = 5", ["(removed)", "x = 6", "x = 4"]),
        ("x = True", ["(removed)", "x = False"]),
        ("x = 'a'", ["(removed)", "x = 'aX'"]),
        ("x = b'a'", ["(removed)", "x = b'aX'"]),
        ("x = None", ["(removed)"]),
        ("x = f(a)", ["x = a", "(removed)"]),
        ("x = isinstance(a, b)", ["x = isinstance(b, a)", "x = isinstance(a)", "(removed)"]),
        ("x = a.f()", ["x = a", "(removed)"]),
        ("x = f(a, b)", ["x = a", "x = f(b, a)", "x = f(a)", "(removed)"]),
        ("x = f(k=a)", ["x = f()", "(removed)"]),
        ("x = any(a)", ["x = all(a)", "x = a", "(removed)"]),
        ("x = {a, b}", ["x = {b}", "x = {a}", "(removed)"]),
        ("x = {a}", ["x = set()", "(removed)"]),
        ("x = (a, b)", ["x = (b,)", "x = (a,)", "(removed)"]),
        ("x = {'k': a}", ["x = {}", "x = {'kX': a}", "(removed)"]),
        ("x = a[b:c]", ["x = a[:c]", "x = a[b:]", "(removed)"]),
        ("x = A.UP or A.DOWN",
         ["x = A.UP and A.DOWN", "x = A.DOWN", "x = A.UP", "x = A.DOWN or A.DOWN", "x = A.UP or A.UP",
          "(removed)"]),
        ("x = [i for i in a if b]", ["x = [i for i in a]", "(removed)"]),
        ("x = a if b else c", ["x = a if True else c", "x = a if False else c", "(removed)"]),
        ("del a", ["(removed)"]),
        ("raise a", ["(removed)"]),
        ("assert a == b", []),
    ],
)  # fmt: skip
def test_a_line_is_spoiled_in_these_ways(line, expected):
    assert sorted(faults(line)) == sorted(expected)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("if a:\n        g(b)", ["if True:", "if False:", "b", "(removed)"]),
        ("while a:\n        break", ["while False:", "(removed)"]),
        ("for i in a:\n        continue", ["for i in ():", "(removed)"]),
        ("try:\n        g()\n    except (A, B):\n        return 1",
         ["except (B,):", "except (A,):", "return 2", "return 0", "(removed)", "(removed)"]),
        ("try:\n        g()\n    except A:\n        pass", ["except ():", "(removed)"]),
        ("if a:\n        return b", ["if True:", "if False:", "return None", "(removed)"]),
    ],
)  # fmt: skip
def test_branches_loops_and_early_returns_are_spoiled_too(lines, expected):
    assert sorted(faults(lines)) == sorted(expected)
