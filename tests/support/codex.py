"""The real Codex CLI, with a home of its own, pointed at a base URL.

One process per prompt: ``Codex(folder, url).run("run echo hi")``; many turns in one process:
``with AppServer(folder, url) as app: app.turn("...")``.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = "0.171.0"
INSTALL = f"npm install --prefix .cache/codex --no-save @openai/codex@{VERSION}"
MODEL = "gpt-5.5"
PATIENCE = 60.0
"""Seconds for one process; a run takes one to ten."""
QUIET = (
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    "features.plugins=false",
    "features.apps=false",
    "features.unbounded_connection_retries=false",
)
Json = dict[str, Any]


def missing(what: str, command: str) -> None:
    """Skip, or fail where every client has to be there."""
    message = f"{what} is not installed; install it with: {command}"
    if os.environ.get("CI") == "true":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def binary() -> Path:
    """Codex's own executable, which needs no node."""
    modules = ROOT / ".cache" / "codex" / "node_modules" / "@openai"
    found = sorted(modules.glob("codex-*/vendor/*/bin/codex"))
    if not found:
        missing("Codex CLI", INSTALL)
    return found[0]


@dataclass
class Result:
    code: int
    events: list[Json]
    last: str
    """The final message."""
    errors: str

    def named(self, kind: str) -> list[Json]:
        """The items of this type that were completed."""
        items = [e["item"] for e in self.events if e["type"] == "item.completed"]
        return [item for item in items if item["type"] == kind]


@dataclass
class Codex:
    folder: Path
    url: str
    model: str = MODEL
    websocket: bool = False
    builtin: bool = False
    """The provider that Codex knows as ``openai``, moved to ``url``."""
    account: bool = False
    """Logged in with an account instead of a key; over HTTP Codex then compresses its bodies."""
    retries: int = 1
    config: tuple[str, ...] = ()
    patience: float = PATIENCE
    home: Path = field(init=False)
    work: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home, self.work = self.folder / "codex", self.folder / "work"
        self.home.mkdir(parents=True, exist_ok=True)
        self.work.mkdir(parents=True, exist_ok=True)
        if self.account:
            self._log_in_with_account()

    def log_in(self) -> None:
        """Leave the key where Codex's own provider looks for one when it serves an app."""
        (self.home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-test"}))

    def _log_in_with_account(self) -> None:
        claims = {"chatgpt_account_id": "account", "chatgpt_plan_type": "pro", "user_id": "user"}
        parts: tuple[Json, ...] = (
            {"alg": "none", "typ": "JWT"},
            {"exp": 9_999_999_999, "https://api.openai.com/auth": claims},
            {},
        )
        token = ".".join(
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in parts
        )
        tokens = {"id_token": token, "access_token": token, "refresh_token": "refresh"}
        login = {
            "auth_mode": "chatgpt",
            "tokens": {**tokens, "account_id": "account"},
            "last_refresh": datetime.now(UTC).isoformat(),
        }
        (self.home / "auth.json").write_text(json.dumps(login))

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the machine's but the path."""
        keys = {} if self.account else {"GW_KEY": "sk-test", "CODEX_API_KEY": "sk-test"}
        homes = {"HOME": str(self.folder), "CODEX_HOME": str(self.home)}
        return {"PATH": os.environ["PATH"], **homes, **keys}

    @property
    def options(self) -> list[str]:
        if self.builtin:
            chosen = ('model_provider="openai"', f'openai_base_url="{self.url}"')
        else:
            spoken = "true" if self.websocket else "false"
            login = "requires_openai_auth=true" if self.account else 'env_key="GW_KEY"'
            name = "OpenAI" if self.account else "gw"
            gateway = (
                f'{{name="{name}",base_url="{self.url}",wire_api="responses",{login},'
                f"supports_websockets={spoken},request_max_retries=0,"
                f"stream_max_retries={self.retries},stream_idle_timeout_ms=20000}}"
            )
            chosen = ('model_provider="gw"', f"model_providers.gw={gateway}")
        backend = (f'chatgpt_base_url="{self.url}"',) if self.account else ()
        settings = (*chosen, *backend, *QUIET, *self.config)
        return [part for setting in settings for part in ("-c", setting)]

    def run(self, prompt: str, *, resume: bool = False, model: str | None = None) -> Result:
        """One process: a new thread, or with ``resume`` the last one once more."""
        last = self.folder / "last.txt"
        last.unlink(missing_ok=True)
        command = [str(binary()), "exec", *(["resume", "--last"] if resume else [])]
        command += ["--json", "--skip-git-repo-check", "-o", str(last), "-m", model or self.model]
        command += ["--dangerously-bypass-approvals-and-sandbox", *self.options, prompt]
        done = subprocess.run(
            command,
            check=False,
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self.patience,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        text = last.read_text() if last.exists() else ""
        return Result(done.returncode, [json.loads(line) for line in lines], text, done.stderr)


class AppServer:
    """``codex app-server``: one process, one thread of conversation, many turns."""

    def __init__(self, codex: Codex) -> None:
        self.codex = codex
        self.seen: list[Json] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._asked = 0
        self._thread = ""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [str(binary()), "app-server", *self.codex.options, "-c", f'model="{self.codex.model}"'],
            cwd=self.codex.work,
            env=self.codex.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        info = {"name": "warmline-test", "title": "test", "version": "1"}
        self._ask("initialize", {"clientInfo": info})
        self._say({"method": "initialized"})
        begun = self._ask(
            "thread/start",
            {
                "cwd": str(self.codex.work),
                "approvalPolicy": "never",
                "sandbox": "danger-full-access",
            },
        )
        self._thread = begun["thread"]["id"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait(10)
        self._reader.join(10)
        self._process.stdout.close()

    def turn(self, prompt: str) -> Json:
        """A turn of the user up to its end; what Codex says of it (``status``, ``error``)."""
        given = [{"type": "text", "text": prompt}]
        self._ask("turn/start", {"threadId": self._thread, "input": given})
        return self._turn_ended()

    def compact(self) -> Json:
        """The turn in which Codex compacts its history."""
        self._ask("thread/compact/start", {"threadId": self._thread})
        return self._turn_ended()

    def _turn_ended(self) -> Json:
        def wanted(message: Json) -> bool:
            own = message.get("params", {}).get("threadId") == self._thread
            return own and message.get("method") == "turn/completed"

        return self._until(wanted)["params"]["turn"]  # type: ignore[no-any-return]

    def wait_for_children(self, count: int) -> None:
        """Until so many sub-agents have ended their turn."""

        def ended() -> int:
            told = [m["params"] for m in self.seen if m.get("method") == "turn/completed"]
            return len({p["threadId"] for p in told} - {self._thread})

        while ended() < count:
            self._until(lambda m: m.get("method") == "turn/completed")

    def _ask(self, method: str, params: Json) -> Json:
        self._asked += 1
        number = self._asked
        self._say({"id": number, "method": method, "params": params})
        answer = self._until(lambda m: m.get("id") == number and "method" not in m)
        assert "result" in answer, answer
        return answer["result"]  # type: ignore[no-any-return]

    def _say(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _until(self, wanted: Any) -> Json:
        end = time.monotonic() + self.codex.patience
        while True:
            line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            assert line is not None, "Codex has ended"
            message: Json = json.loads(line)
            self.seen.append(message)
            if wanted(message):
                return message
