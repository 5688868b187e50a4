import re

from app.gateway.wiring import build_gateway, ids, upstreams
from app.keys import Keys
from app.settings import load
from tests.support.clock import ManualClock


def settings(tmp_path, text=""):
    file = tmp_path / "warmline.toml"
    file.write_text(text)
    return load(config=file, environ={}, flags={"database": str(tmp_path / "l.sqlite3")})


def test_ids_are_unique_and_carry_their_kind():
    new_id = ids()
    assert new_id("turn").startswith("turn_")
    assert re.fullmatch("anon-[0-9a-f]{24}", new_id("anon-"))
    assert re.fullmatch("resp_[0-9a-f]{24}", new_id("resp_"))
    assert len({new_id("turn") for _ in range(1_000)}) == 1_000


def test_every_upstream_of_the_settings_is_found_with_its_policy(tmp_path):
    text = """
    upstream = "https://one.example/v1/"
    [upstreams.azure]
    base_url = "https://two.example/openai/v1"
    continuation = "off"
    """
    found = upstreams(settings(tmp_path, text))
    default = found.find("/v1/responses").upstream
    assert (default.name, default.base_url) == ("default", "https://one.example/v1")
    named = found.find("/u/azure/v1/responses").upstream
    assert (named.base_url, named.policy.continuation) == ("https://two.example/openai/v1", "off")
    assert found.find("/u/default/v1/responses").upstream == default


async def test_the_bounds_of_the_engine_are_the_settings(tmp_path):
    text = "max_sessions = 3\nchains_per_session = 2\nmax_connections = 5\nbaseline_bytes = 7"
    wired = build_gateway(
        settings(tmp_path, text),
        Keys(b"k" * 32),
        ManualClock(),
        on_turn=lambda _facts: None,
        on_pass=lambda _upstream, _status: None,
    )
    bounds = wired.driver.sessions._bounds
    assert (bounds.sessions, bounds.chains_per_session) == (3, 2)
    assert (bounds.connections, bounds.bytes) == (5, 7)
    await wired.aclose()
