import logging
from pathlib import Path

import pytest

from app.server import configure, configure_logging
from app.settings import load


async def application(scope, receive, send): ...


@pytest.fixture
def settings(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return load(
        environ={"XDG_DATA_HOME": str(tmp_path)},
        flags={"port": "0", "host": "::1", "max_body_bytes": "5000"},
    )


@pytest.fixture
def logging_restored():
    root = logging.getLogger()
    before = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logging.root.manager.loggerDict}
    yield
    root.handlers[:], root.level = before
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_the_server_listens_where_the_settings_say(settings):
    config = configure(application, settings)
    assert ("::1", 0) == (config.host, config.port)


def test_a_frame_may_be_as_large_as_a_body(settings):
    assert 5_000 == configure(application, settings).ws_max_size


def test_addresses_are_not_logged_and_the_server_does_not_name_itself(settings):
    config = configure(application, settings)
    assert (False, False) == (config.access_log, config.server_header)


def test_the_protocols_that_are_asked_for_are_installed(settings):
    config = configure(application, settings)
    config.load()
    assert ("HttpToolsProtocol", "WebSocketsSansIOProtocol") == (
        config.http_protocol_class.__name__,
        config.ws_protocol_class.__name__,
    )


def test_at_debug_level_only_our_own_lines_are_detailed(logging_restored):
    configure_logging("debug")
    assert logging.getLogger("app").isEnabledFor(logging.DEBUG)
    for name in ("uvicorn", "websockets", "aiohttp", "asyncio", "sqlalchemy", "alembic"):
        assert not logging.getLogger(name).isEnabledFor(logging.DEBUG)


def test_a_stricter_level_holds_for_libraries_too(logging_restored):
    configure_logging("error")
    assert not logging.getLogger("uvicorn").isEnabledFor(logging.WARNING)
