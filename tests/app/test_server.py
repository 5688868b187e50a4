import gc
import logging
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
import uvloop

from app.errors import AppError, LedgerError
from app.server import PlainFailure, configure, configure_logging, run
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
    assert uvloop.new_event_loop is config.get_loop_factory()
    assert ("HttpConnection", "WebSocketsSansIOProtocol") == (
        config.http_protocol_class.__name__,
        config.ws_protocol_class.__name__,
    )


def test_at_debug_level_only_our_own_lines_are_detailed(logging_restored):
    configure_logging("debug")
    assert logging.getLogger("app").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("uvicorn.error").isEnabledFor(logging.DEBUG)
    for name in ("websockets.server", "aiohttp.access", "sqlalchemy.engine", "alembic.runtime"):
        assert not logging.getLogger(name).isEnabledFor(logging.INFO)


def test_a_stricter_level_holds_for_libraries_too(logging_restored):
    configure_logging("error")
    assert not logging.getLogger("uvicorn").isEnabledFor(logging.WARNING)


async def failing(error: BaseException, *, when: str) -> list[dict]:
    """What a server hears of an application whose start or end fails, as frameworks do it."""

    async def app(scope, receive, send):
        if when == "start":
            await send({"type": "lifespan.startup.failed", "message": "Traceback"})
        else:
            await send({"type": "lifespan.startup.complete"})
        raise error

    heard = []

    async def send(message):
        heard.append(message)

    try:
        await PlainFailure(app)({"type": "lifespan"}, None, send)
    except BaseException as raised:
        heard.append(raised)
    return heard


async def test_an_error_of_ours_at_the_start_is_told_in_its_own_words():
    heard = await failing(LedgerError("key_mismatch", "Wrong key.", "Restore it."), when="start")
    assert [{"type": "lifespan.startup.failed", "message": "Wrong key. Restore it."}] == heard


async def test_any_other_error_keeps_its_traceback():
    error = ValueError("a bug")
    assert [
        {"type": "lifespan.startup.failed", "message": "Traceback"},
        error,
    ] == await failing(error, when="start")


async def test_an_error_after_the_start_is_not_swallowed():
    error = LedgerError("x", "y")
    assert [{"type": "lifespan.startup.complete"}, error] == await failing(error, when="end")


async def test_requests_pass_untouched():
    seen = []

    async def app(*arguments):
        seen.append(arguments)

    await PlainFailure(app)({"type": "http"}, "receive", "send")
    assert [({"type": "http"}, "receive", "send")] == seen


def test_an_interrupt_ends_quietly_once_everything_is_closed(settings, monkeypatch):
    def interrupted(server):
        raise KeyboardInterrupt

    monkeypatch.setattr("uvicorn.Server.run", interrupted)
    assert run(application, settings) is None


def test_a_port_that_is_taken_is_told_with_what_to_do_before_anything_is_opened(
    settings, monkeypatch
):
    monkeypatch.setattr(uvicorn.Server, "run", lambda _: pytest.fail("it started"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AppError, match=f"Port {port} cannot be used .* with --port"):
            run(application, replace(settings, host="127.0.0.1", port=port))


def test_what_is_there_at_the_start_is_not_collected_again_and_no_thread_computes_for_long(
    settings, monkeypatch
):
    done = []
    for name in ("collect", "freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *given, name=name: done.append((name, *given)))
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: done.append(("switch", seconds)))
    monkeypatch.setattr(uvicorn.Server, "run", lambda _: done.append(("run",)))
    run(application, settings)
    assert done == [
        ("collect",),
        ("freeze",),
        ("set_threshold", 20_000, 20, 20),
        ("switch", 0.0005),
        ("run",),
    ]


def test_a_connection_outlasts_the_work_of_an_agent_between_two_turns(settings):
    assert 120 == configure(application, settings).timeout_keep_alive
