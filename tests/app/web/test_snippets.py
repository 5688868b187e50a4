"""That they work with the real clients is seen in tests/clients."""

import json
import tomllib

import pytest

from app.web import snippets

SECRET = "WARMLINE_TOKEN"


@pytest.mark.parametrize("token", [False, True])
def test_each_client_is_given_the_address_and_is_told_where_the_token_comes_from(token):
    for client in snippets.clients(token=token):
        texts = [snippet.text for snippet in client.snippets]
        assert all(1 == text.count(snippets.URL) for text in texts)
        assert token == any("x-warmline-token" in text for text in texts)
        names_it = SECRET in texts[0] or "THE TOKEN" in texts[0]
        assert token == names_it


@pytest.mark.parametrize("token", [False, True])
def test_files_of_settings_are_well_formed(token):
    for client in snippets.clients(token=token):
        for snippet in client.snippets:
            if snippet.language == "toml":
                tomllib.loads(snippet.text)
            elif snippet.language == "json":
                json.loads(snippet.text)
            elif snippet.language == "python":
                compile(snippet.text, client.name, "exec")
