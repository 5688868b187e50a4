"""Shapes of real clients' conversations: made small from captures, and played again.

A capture is what a client and a scripted server said to each other, event by event. Its shape is
what of it decides about continuation: who asked over which connection, the bodies with all their
keys in order, and what was answered. Texts are replaced by tokens: the same text by the same token.

To make the shapes anew: ``python -m tests.support.captures FOLDER`` (a folder of captures).
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SHAPES = Path(__file__).resolve().parents[1] / "captures"

_HEADERS = """
user-agent originator openai-beta session-id thread-id x-session-id x-session-affinity
x-openai-subagent x-codex-parent-thread-id x-codex-window-id x-codex-turn-metadata
x-client-request-id x-openai-internal-codex-responses-lite content-encoding version
"""
HEADERS = tuple(_HEADERS.split())
"""Those that tell who asks, or how the body has to be read."""
_METADATA = ("session_id", "thread_id", "turn_id", "request_kind", "thread_source")
"""Of Codex's turn metadata."""
_WORDS = """
text content output instructions description query queries refusal definition title revised_prompt
encrypted_content message
"""
_TEXTS = frozenset(_WORDS.split())
"""Keys whose strings are words of people, models and tools, however short."""
_LONG = 60
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RESPONSE = re.compile(r"resp_(mock|warm)(\d{4})0*")
_OTHER_ID = re.compile(r"\bses_\w{16,}")
_PREFIXES = {"ct_x": "ctc_x", "ls_x": "lsh_x", "ts_x": "tsc_x"}
"""Ids that the capture's server gave and a provider would not take back."""
_LOST = re.compile(r"<text (\d+) chars>")
_SHARED = 40
"""Values of more characters than this stand once in a shape, however often they are said."""


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- from a capture to its shape ---------------------------------------------------------------


class Shortener:
    """Tokens for texts and ids; one for all of a capture."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, str], str] = {}
        self._ids: dict[str, str] = {}
        self._thoughts: dict[str, set[str]] = {}

    def answers(self, items: Iterable[Json]) -> None:
        """Learn which reasoning has which ciphertext: captures have lost most of them."""
        for item in items:
            lost = item.get("encrypted_content")
            if isinstance(lost, str) and _LOST.fullmatch(lost):
                self._thoughts.setdefault(lost, set()).add(item["id"])

    def short(self, value: Any, key: str = "", owner: str = "") -> Any:
        """``owner``: whose text it is. Where a text is lost, it is taken for the same only at the
        same place: of the item with that id, or of whatever has that name or role."""
        if key == "parameters" and isinstance(value, dict):
            names = value.get("properties", {})
            return {"type": "object", "properties": {name: {} for name in names}}
        if isinstance(value, dict):
            named = value.get("id") or value.get("name") or value.get("role")
            owner = f"{owner}/{named}" if isinstance(named, str) else owner
            return {k: self.short(v, k, self._owner(value, k, owner)) for k, v in value.items()}
        if isinstance(value, list):
            return [self.short(one, key, owner) for one in value]
        if isinstance(value, str):
            return self._string(value, key, owner)
        return value

    def _owner(self, item: Json, key: str, owner: str) -> str:
        lost = item.get(key)
        if key != "encrypted_content" or lost not in self._thoughts:
            return f"{owner}/{key}"
        if item.get("id"):
            return item["id"]  # type: ignore[no-any-return]
        [only] = self._thoughts[lost]  # without an id: there must be no other to be taken for
        return only

    def _string(self, text: str, key: str, owner: str) -> str:
        if key == "x-codex-turn-metadata":
            told = json.loads(text)
            return dumps({k: self.short(v) for k, v in told.items() if k in _METADATA})
        if key == "x-codex-ws-stream-request-start-ms":
            return "1"
        if _LOST.fullmatch(text):
            return self._token("cipher" if key == "encrypted_content" else "text", owner + text)
        if key in _TEXTS or (len(text) > _LONG and not _RESPONSE.search(text)):
            # A text that is there is its own owner; the empty one says something by being empty.
            return text and self._token("text", text)
        text = _RESPONSE.sub(lambda m: f"resp_{'w' if m[1] == 'warm' else ''}{int(m[2])}", text)
        text = _OTHER_ID.sub(lambda m: f"ses_{self._id(m)}", _UUID.sub(self._id, text))
        return _PREFIXES[text[:4]] + text[4:] if key == "id" and text[:4] in _PREFIXES else text

    def _token(self, kind: str, what: str) -> str:
        known = self._tokens
        return known.setdefault((kind, what), f"{kind} {sum(k == kind for k, _ in known) + 1}")

    def _id(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found[0], f"u{len(self._ids) + 1}")


def shape(capture: Json) -> Json:
    """The shape of a capture: ``client``, perhaps ``refused``, ``values`` and ``steps``."""
    scenario, events = capture["server_scenario"], capture["events"]
    short = Shortener()
    for reply in scenario["replies"]:
        short.answers(reply.get("items", ()))
    used: Counter[Any] = Counter()
    replies = {event["to_n"]: event for event in events if event["what"] == "reply"}
    steps = []
    for event in events:
        match event["what"]:
            case "ws_upgrade" if event["server_action"] == "accept":
                head = {"do": "open", "socket": event["conn"], "path": event["line"].split()[1]}
                steps.append({**head, "headers": _headers(event, short)})
            case "ws_text_frame":
                steps.append({"do": "send", "socket": event["conn"]} | _asked(event, short))
            case "http_request":
                head = {"do": "post", "path": event["line"].split()[1]}
                steps.append({**head, "headers": _headers(event, short)} | _asked(event, short))
            case "ws_closed":
                steps.append({"do": "close", "socket": event["conn"], "code": event["close_code"]})
                continue
            case _:
                continue
        if steps[-1]["do"] != "open":
            reply = replies[event["n"]]
            answer = _answer(reply, scenario["replies"], short)
            steps[-1]["answer"] = _as_another(answer, used[reply["scenario_reply"]])
            used[reply["scenario_reply"]] += 1
    head = {"client": capture["client"]}
    if refused := [e["server_action"] for e in events if e["what"] == "ws_upgrade"]:
        head |= {} if "accept" in refused else {"refused": refused[0]}
    return _shared({**head, "steps": steps})


def _headers(event: Json, short: Shortener) -> Json:
    found = {name.lower(): value for name, value in event["headers"]}
    return {
        k: v if k == "user-agent" else short.short(v, k) for k, v in found.items() if k in HEADERS
    }


def _asked(event: Json, short: Shortener) -> Json:
    body = event["body"]
    if isinstance(body["input"], str):
        body = {**body, "input": short.short(body["input"], "text")}
        rest = short.short({k: v for k, v in body.items() if k != "input"})
        return {"body": {k: rest.get(k, v) for k, v in body.items()}}
    return {"body": short.short(body)}


def _answer(reply: Json, replies: list[Json], short: Shortener) -> Json:
    answer: Json = {"id": short.short(reply["response_id"])}
    if reply["scenario_reply"] == "prewarm":
        return answer
    scripted = replies[reply["scenario_reply"]]
    if "event" in scripted:
        return {"error": short.short(scripted["event"])}
    answer["items"] = short.short(scripted["items"])
    if reply["fault"] == "close_mid":
        answer["cut"] = scripted["after"]
    if reply["fault"] == "close_after":
        answer["closes"] = 1000
    return answer


def _as_another(answer: Json, times: int) -> Json:
    """No provider gives one id to two items; what such an answer said is not repeated by clients."""
    if not times or "items" not in answer:
        return answer
    items = [{k: f"{v}_{times}" if k == "id" else v for k, v in i.items()} for i in answer["items"]]
    return {**answer, "items": items}


def _places(found: Json) -> Iterable[tuple[Any, Any]]:
    """Where a value may be said more than once: container and key, the inner ones last."""
    for step in found["steps"]:
        if "headers" in step:
            yield step, "headers"
        yield from ((step.get("body", {}), key) for key in step.get("body", {}))
        for items in (step.get("body", {}).get("input"), step.get("answer", {}).get("items")):
            if isinstance(items, list):
                yield from ((items, index) for index in range(len(items)))


def _shared(found: Json) -> Json:
    """The same, with what is said more than once in ``values``, and ``{"$": index}`` in its place."""
    values: dict[str, int] = {}
    counts = Counter(dumps(holder[key]) for holder, key in _places(found))
    for holder, key in [place for place in _places(found) if place[1] != "input"]:
        text = dumps(holder[key])
        if counts[text] > 1 and len(text) > _SHARED:
            holder[key] = {"$": values.setdefault(text, len(values))}
    rest = {key: value for key, value in found.items() if key != "steps"}
    return {**rest, "values": [json.loads(text) for text in values], "steps": found["steps"]}


# --- a shape, as it stands in its file ---------------------------------------------------------


def load(name: str) -> Json:
    """A shape with all its values in their places."""
    found: Json = json.loads((SHAPES / f"{name}.json").read_text())
    values = found.pop("values")

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"$"}:
                return values[value["$"]]
            return {key: whole(one) for key, one in value.items()}
        return [whole(one) for one in value] if isinstance(value, list) else value

    return whole(found)  # type: ignore[no-any-return]


def text_of(found: Json) -> str:
    """One step or shared value a line."""
    lines = []
    for key, value in found.items():
        if isinstance(value, list):
            inner = ",\n".join(dumps(one) for one in value)
            lines.append(f"{dumps(key)}:[\n{inner}\n]" if value else f"{dumps(key)}:[]")
        else:
            lines.append(f"{dumps(key)}:{dumps(value)}")
    return "{" + ",\n".join(lines) + "}\n"


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.json")):
        capture = json.loads(path.read_text())
        (SHAPES / path.name).write_text(text_of(shape(capture)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
