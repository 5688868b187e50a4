import pytest

from app.cli import COMMANDS
from app.version import VERSION
from tests.support.commands import run


@pytest.mark.parametrize(
    "command", [(), ("db", "upgrade"), ("db", "rollup"), *((name,) for name in COMMANDS)]
)
def test_every_command_has_help(command):
    result = run(*command, "--help")
    assert (0, True) == (result.exit_code, result.output.startswith("Usage:"))


@pytest.mark.parametrize("command", [(), ("db",)])
def test_no_line_of_the_list_of_commands_is_cut_off(command):
    listed = run(*command, "--help").output.partition("Commands:")[2]
    assert "..." not in listed


def test_an_unknown_command_is_a_mistake_of_use():
    result = run("exporrt")
    assert (2, True) == (result.exit_code, "No such command 'exporrt'" in result.output)


def test_the_version_is_that_of_the_package():
    assert f"warmline, version {VERSION}\n" == run("--version").output
