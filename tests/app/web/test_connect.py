import pytest

from tests.support.site import open_site

TOML = """
gateway_token_file = "{file}"

[upstreams.edge]
base_url = "https://ai-gateway.vercel.sh/v1"
"""


@pytest.fixture
def told(tmp_path):
    (tmp_path / "gateway").write_text("canary-of-the-gateway")
    site = open_site(tmp_path, toml=TOML.format(file=tmp_path / "gateway"))
    yield site.client.get("/api/connect")
    site.close()


def test_clients_are_told_of_each_upstream_and_of_the_token_but_never_the_token(told):
    shown = told.json()
    assert [("default", "/v1"), ("edge", "/u/edge/v1")] == [
        (one["name"], one["path"]) for one in shown["upstreams"]
    ]
    assert shown["gateway_token"] is True
    codex = shown["clients"][0]["snippets"][0]["text"]
    assert f'base_url = "{shown["placeholder"]}"' in codex
    assert "WARMLINE_TOKEN" in codex
    assert "canary" not in told.text
