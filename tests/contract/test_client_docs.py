"""The documentation of clients says what the tests hold true."""

from __future__ import annotations

from tests.support.captured_turns import TURNS, markdown
from tests.support.markdown import section, table


def test_the_table_of_turns_is_the_one_that_clients_are_held_to() -> None:
    shown = section("clients.md", "Turn by turn")
    assert shown.endswith("\n\n" + markdown())
    assert len(TURNS) == len(table(shown))
