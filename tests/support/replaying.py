"""Plays the shape of a capture through a running service, and notes what came of each turn.

The built-in provider answers what the capture's server answered. It continues nothing but the
latest response of the same connection, and keeps what it holds after each.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from socket import SHUT_RDWR
from urllib.parse import urlsplit

import zstandard
from websockets.sync.client import ClientConnection, connect

from app.demo.provider import faults
from app.demo.provider.replies import Asked, Reply
from app.ledger.rows import TurnRow
from tests.support.captures import Json, dumps
from tests.support.stack import TERMINAL, Stack

PATIENCE = 20.0
"""Seconds for one answer; they take milliseconds."""


class Scripted:
    """The model: it says what the turn's script says."""

    reply: Reply = Reply(())

    def __call__(self, asked: Asked, /) -> Reply:
        return self.reply


@dataclass
class Replay:
    """One conversation under a credential of its own."""

    stack: Stack
    model: Scripted
    credential: str
    _sockets: dict[int, ClientConnection] = field(default_factory=dict)
    _renamed: dict[str, str] = field(default_factory=dict)
    """What the capture's server called a response, a compaction or its content, to what it is
    called here: clients repeat what they were answered."""

    _answer: Json = field(default_factory=dict)
    """What the turn under way is answered."""

    def play(self, shape: Json) -> None:
        """All its steps, in their order. Sockets that are still open at the end are closed."""
        if "refused" in shape:
            refusal = faults.RefuseUpgrade(shape["refused"])
            self.stack.up.core.faults.on_upgrade(refusal, times=None)
        try:
            for step in shape["steps"]:
                getattr(self, f"_{step['do']}")(step)
        finally:
            for number in list(self._sockets):
                self._close({"socket": number, "code": 1000})
            self.stack.up.core.faults.clear()

    def _open(self, step: Json) -> None:
        url = self.stack.url.replace("http", "ws").removesuffix("/v1") + step["path"]
        headers = self._headers(step)
        agent = headers.pop("user-agent")
        self._sockets[step["socket"]] = connect(
            url,
            additional_headers=headers,
            user_agent_header=agent,
            open_timeout=PATIENCE,
            legacy=True,  # it is closed at a step of its own, not at the end of a block
        )

    def _close(self, step: Json) -> None:
        """As the client does: with a code, or by dropping TCP."""
        socket = self._sockets.pop(step["socket"])
        if step["code"] == 1006:
            socket.socket.shutdown(SHUT_RDWR)
        socket.close(step["code"] if step["code"] != 1006 else 1000)
        assert self.stack.tap.socket_ended.acquire(timeout=PATIENCE)

    def _send(self, step: Json) -> None:
        self._prepare(step["answer"])
        socket = self._sockets[step["socket"]]
        socket.send(self._body(step))
        events: list[Json] = []
        while not events or events[-1]["type"] not in TERMINAL:
            events.append(json.loads(socket.recv(PATIENCE)))
        self._answered(step["answer"], events[-1].get("response"))

    def _post(self, step: Json) -> None:
        self._prepare(step["answer"])
        body = self._body(step).encode()
        headers = {**self._headers(step), "content-type": "application/json"}
        if headers.get("content-encoding") == "zstd":
            body = zstandard.compress(body)
        address = urlsplit(self.stack.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, PATIENCE)
        connection.request("POST", step["path"], body, headers)
        connection.getresponse().read()
        connection.close()
        self._answered(step["answer"], self.stack.tap.exchanges[-1].response)

    def _headers(self, step: Json) -> dict[str, str]:
        return {**step["headers"], "authorization": f"Bearer {self.credential}"}

    def _body(self, step: Json) -> str:
        text = dumps(step["body"])
        for theirs, ours in self._renamed.items():
            text = text.replace(dumps(theirs), dumps(ours))
        return text

    def _prepare(self, answer: Json) -> None:
        self.model.reply = Reply(tuple(answer.get("items", ())), verbatim=True)
        self._answer = answer
        planted = self.stack.up.core.faults
        if "error" in answer:
            # Every attempt of this turn meets it, unless it is said how many.
            fault, times = faults.ErrorFrame(raw=answer["error"]), answer.get("times")
            planted.on_request(fault, times=times, when=lambda _: self._answer is answer)
        if "cut" in answer:
            planted.on_request(faults.abort(after=answer["cut"]))

    def _answered(self, answer: Json, response: Json | None) -> None:
        if response is not None and "id" in answer:
            self._renamed[answer["id"]] = response["id"]
            for theirs, ours in zip(answer.get("items", ()), response["output"], strict=False):
                if theirs["type"] == "compaction":
                    keys = ("id", "encrypted_content")
                    self._renamed |= {theirs[key]: ours[key] for key in keys}
        if "closes" in answer:
            assert self.stack.up.call("drop_connections", answer["closes"])


def told(rows: list[TurnRow]) -> list[list[str]]:
    """Of each turn: kind, mode, reason, items sent of all, session, of which root if of another.

    Behind the reason stand what forced it, or the item at which the histories part.
    """
    names: dict[str, str] = {}
    lines = []
    for row in rows:
        session = row.session or ""
        if session.startswith("anon-"):
            session = names.setdefault(session, f"anon{len(names) + 1}")
        if row.root_session not in (None, row.session):
            session += f"<{row.root_session}"
        why = str(row.reason)
        if row.reason == "prefix_mismatch":
            why += f"@{row.diverged_at}"
        elif row.fallback_reason:
            why += f":{row.fallback_reason}"
        sent = f"{row.items_sent}/{row.items_total}"
        lines.append([str(row.kind), str(row.mode), why, sent, session])
    return lines
