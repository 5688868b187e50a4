"""What clients do to their histories and requests between two turns, by intent or not."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from tests.support.regimes import TOOLS
from tests.support.spellings import CLIENTS, said

if TYPE_CHECKING:
    from tests.support.agents import Agent


def is_user(text: str) -> bool:
    return json.loads(text).get("role") == "user"


def awaits_model(text: str) -> bool:
    """The item is one that the model is to answer."""
    item = json.loads(text)
    return item.get("role") == "user" or "output" in item


def calls_without_output(history: list[str]) -> bool:
    """The provider refuses such a history."""
    items = [json.loads(text) for text in history]
    calls = {i["call_id"] for i in items if i.get("type") in ("function_call", "custom_tool_call")}
    return bool(calls - {i["call_id"] for i in items if "output" in i and "call_id" in i})


def change(agent: Agent, source: random.Random, number: int) -> str:
    """Apply one change, and tell which. It may find nothing to change."""
    name = source.choice(sorted(_CHANGES))
    before = list(agent.history)
    _CHANGES[name](agent, source, number)
    if agent.history != before:
        # The provider's copy is another one now: the client sends the whole.
        agent.anchor = None
    return name


def _edited_user(agent: Agent, source: random.Random, number: int) -> None:
    places = [n for n, text in enumerate(agent.history) if is_user(text)]
    if places:
        text = json.dumps(said(agent.client, f"edited {number}", number))
        agent.history[source.choice(places)] = text


def _edited_output(agent: Agent, source: random.Random, number: int) -> None:
    """A tool output is trimmed, or its metadata moves."""
    places = [n for n, text in enumerate(agent.history) if '"output": ' in text]
    if places:
        place = source.choice(places)
        item = json.loads(agent.history[place])
        if isinstance(item.get("output"), str):
            item["output"] = source.choice((item["output"] + " ", f"other {number}"))
            agent.history[place] = json.dumps(item)


def move_metadata(history: list[str]) -> None:
    """Only the newest tool output keeps its metadata, as some tools have it."""
    places = [n for n, text in enumerate(history) if '"output": ' in text]
    for place in places[:-1]:
        item = json.loads(history[place])
        if isinstance(item["output"], str) and '"_meta": 1, ' in item["output"]:
            item["output"] = item["output"].replace('"_meta": 1, ', "")
            history[place] = json.dumps(item)


def _moved_metadata(agent: Agent, source: random.Random, number: int) -> None:
    del source, number
    move_metadata(agent.history)


def _edited_answer(agent: Agent, source: random.Random, number: int) -> None:
    """One text of the model is not what it said."""
    del number
    places = [n for n, text in enumerate(agent.history) if '"output_text"' in text]
    if places:
        place = source.choice(places)
        item = json.loads(agent.history[place])
        item["content"][0]["text"] += "."
        agent.history[place] = json.dumps(item)


def _edited_id(agent: Agent, source: random.Random, number: int) -> None:
    """Another item in the place of one of the model's, with the same words."""
    places = [n for n, text in enumerate(agent.history) if '"id": "msg_0' in text]
    if places:
        place = source.choice(places)
        item = json.loads(agent.history[place])
        agent.history[place] = json.dumps({**item, "id": f"msg_other{number}"})


def _dropped_reasoning(agent: Agent, source: random.Random, number: int) -> None:
    del number
    places = [n for n, text in enumerate(agent.history) if '"reasoning"' in text]
    if places:
        del agent.history[source.choice(places)]


def _reordered_keys(agent: Agent, source: random.Random, number: int) -> None:
    """No difference at all."""
    del source, number
    agent.history[:] = [
        json.dumps(dict(reversed(json.loads(text).items()))) for text in agent.history
    ]


def _rewound(agent: Agent, source: random.Random, number: int) -> None:
    """Back to one of the user's messages, which is said anew."""
    del number
    places = [n for n, text in enumerate(agent.history) if is_user(text)]
    if places:
        del agent.history[source.choice(places) :]


def _retried(agent: Agent, source: random.Random, number: int) -> None:
    """Back to right before the last answer: the same question again."""
    del source, number
    places = [n for n, text in enumerate(agent.history) if is_user(text)]
    if places:
        del agent.history[places[-1] + 1 :]


def _begun_anew(agent: Agent, source: random.Random, number: int) -> None:
    del source, number
    agent.history.clear()


def _summarized(agent: Agent, source: random.Random, number: int) -> None:
    """Local compaction: a summary in the place of all but the last message."""
    del source
    last = [text for text in agent.history if is_user(text)][-1:]
    summary = json.dumps(said(agent.client, f"summary {number}", 10_000 + number))
    agent.history[:] = [summary, *last]


def _inserted(agent: Agent, source: random.Random, number: int) -> None:
    """A note of the client in the midst, never between a call and its output."""
    places = [n for n, text in enumerate(agent.history) if is_user(text)]
    if places:
        note = json.dumps({"role": "developer", "content": f"note {number}"})
        agent.history.insert(source.choice(places), note)


def _fields(agent: Agent, source: random.Random, number: int) -> None:
    del number
    name, values = source.choice(
        (
            ("instructions", ("be brief", "be long", None)),
            ("tools", (TOOLS[:2], TOOLS, list(reversed(TOOLS)))),
            ("reasoning", ({"effort": "low"}, {"effort": "high"})),
            ("prompt_cache_key", ("k1", "k2")),
            ("metadata", ({"a": "1"}, {"a": "2"})),
            ("temperature", (1, 1.0)),
        )
    )
    agent.fields = {**agent.fields, name: source.choice(values)}


def _respelled(agent: Agent, source: random.Random, number: int) -> None:
    """Another program resumes: from here on its spelling."""
    del number
    same = [c for c in CLIENTS if c.fields.get("store") == agent.client.fields.get("store")]
    agent.client = source.choice([c for c in same if agent.transport in c.transports])
    agent.anchoring = agent.anchoring and agent.client.anchors


_CHANGES: dict[str, Any] = {
    function.__name__.strip("_"): function
    for function in (
        _edited_user,
        _edited_output,
        _moved_metadata,
        _edited_answer,
        _edited_id,
        _dropped_reasoning,
        _reordered_keys,
        _rewound,
        _retried,
        _begun_anew,
        _summarized,
        _inserted,
        _fields,
        _respelled,
    )
}
