"""For all tests: how many random examples a property meets, and that each may take its time; and
the event loop, which is the service's."""

from __future__ import annotations

from typing import Any

import uvloop
from hypothesis import settings

# On top of what is loaded already: where CI is set, that is Hypothesis' own profile for it.
# Properties that need more say so; the whole suite has to stay below ten minutes.
settings.register_profile("suite", settings.default, deadline=None, max_examples=60)
settings.load_profile("suite")


def pytest_asyncio_loop_factories() -> dict[str, Any]:
    return {"uvloop": uvloop.new_event_loop}
