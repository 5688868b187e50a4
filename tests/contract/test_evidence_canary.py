"""No content in evidence: whole random conversations, and not a word of them in any row's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from app.ledger.facts import to_row
from tests.support import virtual_time
from tests.support.conversations import Conversations

SHORTEST = 6
# Words of the protocol and names: these may be told (DESIGN 4.4).
NAMES = {"type", "role", "content", "output", "arguments", "name", "call_id", "id", "model", "tools",
         "summary", "encrypted_content", "instructions", "status", "prompt_cache_key", "reasoning"}  # fmt: skip


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def names(value: Any) -> Iterator[str]:
    """Types, roles, and the names of tools and models."""
    if isinstance(value, dict):
        yield from (str(value[key]) for key in ("type", "role", "name", "model") if key in value)
        for each in value.values():
            yield from names(each)
    elif isinstance(value, list):
        for each in value:
            yield from names(each)


def test_no_string_of_a_conversation_is_in_the_evidence_of_its_turns():
    rows = 0
    for seed in range(4000, 4006):
        run = Conversations(seed)
        virtual_time.run(run.run(60))
        said, named = set(), set(NAMES)
        for entry in run.core.log:
            said |= set(strings(entry.body))
            named |= set(names(entry.body))
        told = [
            row.evidence
            for row in (to_row(facts, gateway_version=None) for facts in run.stack.facts)
            if row.evidence is not None
        ]
        canaries = [text for text in said - named if len(text) >= SHORTEST]
        assert len(canaries) >= 50
        shown = json.dumps(told)
        assert [] == [text for text in canaries if text in shown or json.dumps(text)[1:-1] in shown]
        rows += len(told)
    assert rows >= 40
