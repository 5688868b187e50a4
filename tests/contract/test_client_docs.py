"""The documentation of clients says what the tests hold true."""

from __future__ import annotations

import re

import pytest

from app.web import snippets
from tests.support.captured_turns import TURNS, markdown
from tests.support.markdown import section, table

URL = "http://127.0.0.1:8787/v1"


def test_the_table_of_turns_is_the_one_that_clients_are_held_to() -> None:
    shown = section("clients.md", "Turn by turn")
    assert shown.endswith("\n\n" + markdown())
    assert len(TURNS) == len(table(shown))


@pytest.mark.parametrize("token", [False, True])
def test_the_settings_of_each_client_are_those_that_the_page_shows(token: bool) -> None:
    whole = section("clients.md", "Connect")
    without, _, with_token = whole.partition("### With a gateway token")
    shown = with_token if token else without
    blocks = re.findall(r"^([^\n]+):\n\n```\w+\n(.*?\n)```$", shown, re.DOTALL | re.MULTILINE)
    expected = []
    for client in snippets.clients(token=token):
        for one in client.snippets[:1] if token else client.snippets:
            place = f"{client.title}, {one.place}" if token else one.place
            expected.append((place, one.text.replace(snippets.URL, URL)))
        assert client.note in whole
    assert blocks == expected
