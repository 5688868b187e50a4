"""The built-in provider in a process of its own: ``python -m tests.support.provider_alone``.

It prints its base URL. Answers to requests that say ``HELD`` stop in their midst; a line on standard
input lets them go on, those to come as well. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from app.demo.provider.actions import Gate
from app.demo.provider.core import Provider
from app.demo.provider.faults import Hold
from app.demo.provider.script import Attempt
from app.demo.provider.server import serve

HELD = "wait for the gate"


def _is_held(attempt: Attempt) -> bool:
    return HELD in json.dumps(attempt.body.get("input"))


async def main() -> None:
    core, gate = Provider("openai", now=time.time), Gate()
    core.faults.on_request(
        Hold(gate, after="response.output_text.delta"), when=_is_held, times=None
    )
    async with serve(core) as server:
        print(server.url, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            gate.open()


if __name__ == "__main__":
    asyncio.run(main())
