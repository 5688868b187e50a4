"""The engine is embedded in applications on either event loop."""

import asyncio
from typing import Any

import uvloop


def pytest_asyncio_loop_factories() -> dict[str, Any]:
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
