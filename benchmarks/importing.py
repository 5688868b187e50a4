"""What it costs to take half a gigabyte of rollouts in, again, and to report on them.

Makes rollouts of Codex in the shapes of 0.171 and runs the commands that users run, each in a
process of its own: into SQLite and into a PostgreSQL that is started for it, plain and compressed.
Prints each figure with its target. What a request costs is many times what its texts cost: so there
is half a gigabyte with long outputs of tools, and another one with short ones (``short``).

    python -m benchmarks.importing [--megabytes 500] [--folder DIR] [--only sqlite,zst,…]

With ``--folder`` the rollouts stay there and the next run uses them again.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import zstandard

from benchmarks.ledgering.ledgers import postgres_server
from benchmarks.ledgering.result import Result

MB = 1_000_000
SESSION_MB = 2
"""Of a session that has been worked in for some hours."""
LONG, SHORT = 20_000, 2_000
"""Bytes that a tool has put out, on an average. Both are written down twice."""
MB_A_SECOND = 100.0
"""Of CPU time."""
PEAK_MIB = 150.0
_BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


class _Session:
    """A rollout, line by line."""

    def __init__(self, number: int, texts: _Texts, output: int) -> None:
        """``output``: of a tool, in bytes."""
        self._output = output
        self._moment = _BEGAN + timedelta(minutes=37 * number)
        ms = int(self._moment.timestamp() * 1_000)
        self.name = f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7000-8000-{number:012x}"
        self._texts = texts
        self._ordinal = 0
        self._total = dict.fromkeys(
            ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens"), 0
        )

    @property
    def place(self) -> str:
        return (
            f"sessions/{self._moment:%Y/%m/%d}/"
            f"rollout-{self._moment:%Y-%m-%dT%H-%M-%S}-{self.name}.jsonl"
        )

    def lines(self, size: int) -> Iterator[bytes]:
        known = {"originator": "codex_cli_rs", "cli_version": "0.171.0", "model_provider": "openai"}
        instructions = {"base_instructions": {"text": self._texts.some(20_000)}}
        meta = {"id": self.name, "session_id": self.name, **known, **instructions}
        first = self._line("session_meta", meta)
        yield first
        written, turn, context = len(first), 0, 12_000
        while written < size:
            for line in self._turn(f"{self.name[:-4]}{turn:04x}", context):
                written += len(line)
                yield line
            turn, context = turn + 1, min(context + 9_000, 200_000)

    def _turn(self, turn: str, context: int) -> Iterator[bytes]:
        yield self._event("task_started", turn_id=turn, model_context_window=258_400)
        yield self._line("turn_context", {"turn_id": turn, "model": "gpt-5.6", "effort": "high"})
        yield self._item("message", role="user", content=self._texts.parts(1_500))
        for step in range(random.randint(4, 12)):
            yield self._item("reasoning", summary=[], encrypted_content=self._texts.secret(2_500))
            call = f"call_{step}"
            arguments = json.dumps({"cmd": self._texts.some(300)})
            yield self._item("function_call", name="shell", arguments=arguments, call_id=call)
            yield from self._used(turn, step, context + 1_000 * step)
            output = self._texts.some(int(random.expovariate(1 / self._output)))
            yield self._item("function_call_output", call_id=call, output=output)
            yield self._event("item_completed", item={"type": "exec", "output": output})
        yield self._item("message", role="assistant", content=self._texts.parts(2_000))
        yield from self._used(turn, 99, context + 9_000)
        yield self._event("task_complete", turn_id=turn, time_to_first_token_ms=900)

    def _used(self, turn: str, step: int, context: int) -> Iterator[bytes]:
        used = {
            "input_tokens": context,
            "cached_input_tokens": (context - 800) // 128 * 128,
            "output_tokens": 150,
            "total_tokens": context + 150,
        }
        self._total = {name: self._total[name] + value for name, value in used.items()}
        yield self._line(
            "token_usage_record",
            {
                "thread_id": self.name,
                "session_id": self.name,
                "turn_id": turn,
                "response_id": f"resp_{turn}_{step}",
                "usage": used,
                "thread_token_usage": self._total,
            },
        )
        info = {"total_token_usage": self._total, "last_token_usage": used}
        yield self._event("token_count", info=info, rate_limits={"primary": {"used_percent": 3}})

    def _item(self, kind: str, **more: Any) -> bytes:
        return self._line("response_item", {"type": kind, **more})

    def _event(self, kind: str, **more: Any) -> bytes:
        return self._line("event_msg", {"type": kind, **more})

    def _line(self, kind: str, payload: dict[str, Any]) -> bytes:
        self._moment += timedelta(milliseconds=random.randint(5, 900))
        text = self._moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {"timestamp": text, "ordinal": self._ordinal, "type": kind, "payload": payload}
        self._ordinal += 1
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


class _Texts:
    """Pieces of text that compress as texts do."""

    def __init__(self) -> None:
        letters = "etaoinshrdlucmfwypvbgk"
        words = ["".join(random.choices(letters, k=random.randint(2, 9))) for _ in range(4_000)]
        self._text = "\n".join(
            " ".join(random.choices(words, k=random.randint(3, 14))) for _ in range(20_000)
        )
        self._secret = base64.b64encode(random.randbytes(MB)).decode()

    def some(self, size: int) -> str:
        at = random.randrange(len(self._text) - 60_000)
        return self._text[at : at + size]

    def secret(self, size: int) -> str:
        at = random.randrange(MB)
        return self._secret[at : at + size]

    def parts(self, size: int) -> list[dict[str, str]]:
        return [{"type": "input_text", "text": self.some(size)}]


def make(folder: Path, megabytes: int) -> None:
    """The rollouts, in a folder for each kind."""
    random.seed(7)
    texts = _Texts()
    for number in range(max(1, megabytes // SESSION_MB)):
        for kind, output in (("plain", LONG), ("short", SHORT)):
            session = _Session(number, texts, output)
            data = b"".join(session.lines(SESSION_MB * MB))
            _put(folder / kind / session.place, data)
            if kind == "plain":
                _put(folder / "zst" / f"{session.place}.zst", zstandard.compress(data))


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@dataclass(frozen=True, slots=True)
class Run:
    seconds: float
    cpu: float
    mib: float


def warmline(*arguments: str) -> Run:
    """A command in a process of its own."""
    command = [sys.executable, "-c", "from app.cli import main; main()", *arguments]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read().decode()
    seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(f"{arguments[0]} has failed:\n{said}")
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1_024)


def results(name: str, done: Run, size: int) -> Iterator[Result]:
    yield Result(f"{name}, time", done.seconds, "s")
    yield Result(f"{name}, CPU", done.cpu, "s")
    yield Result(f"{name}, JSONL to CPU", size / MB / done.cpu, "MB/s", MB_A_SECOND, at_least=True)
    yield Result(f"{name}, peak memory", done.mib, "MiB", PEAK_MIB)


def taken(name: str, database: str, logs: Path, size: int) -> Iterator[Result]:
    ledger = ("--database", database)
    done = warmline("import", *ledger, str(logs))
    yield from results(f"{name}, import", done, size)
    again = warmline("import", *ledger, str(logs))
    yield Result(f"{name}, the same again, time", again.seconds, "s")
    yield Result(f"{name}, the same again, CPU", again.cpu, "s")


def on_sqlite(folder: Path, size: int, kind: str = "plain") -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="warmline-import-") as place:
        name = f"sqlite, {kind}"
        yield from taken(name, f"{place}/ledger.sqlite3", folder / kind, size)


def on_postgresql(folder: Path, size: int) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="warmline-import-") as place:
        Path(place).chmod(0o755)
        server = postgres_server(Path(place))
        key = Path(place) / "key"
        key.write_text("00" * 32)
        key.chmod(0o600)
        try:
            url = server.url(server.create())
            os.environ["WARMLINE_KEY_FILE"] = str(key)
            warmline("db", "upgrade", "--database", url)
            yield from taken("postgresql, plain", url, folder / "plain", size)
        finally:
            server.stop(signal.SIGINT)


def reported(folder: Path, size: int) -> Iterator[Result]:
    for kind in ("plain", "zst"):
        yield from results(f"report, {kind}", warmline("report", str(folder / kind)), size)


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.jsonl"))


PARTS: dict[str, Callable[[Path, int], Iterator[Result]]] = {
    "sqlite": on_sqlite,
    "short": lambda folder, _size: on_sqlite(folder, _size_of(folder / "short"), "short"),
    "zst": lambda folder, size: on_sqlite(folder, size, "zst"),
    "postgresql": on_postgresql,
    "report": reported,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--folder", help="where the rollouts are kept; by default they are not")
    parser.add_argument("--only", default=",".join(PARTS), help=", ".join(PARTS))
    given = parser.parse_args()
    parts = given.only.split(",")
    for name in set(parts) - set(PARTS):
        parser.error(f"there is no {name!r}: --only {','.join(PARTS)}")
    folder = Path(given.folder or tempfile.mkdtemp(prefix="warmline-rollouts-"))
    missed = []
    try:
        if not (folder / "plain").exists():
            make(folder, given.megabytes)
        size = _size_of(folder / "plain")
        print(f"{size / MB:,.0f} MB of rollouts")
        for part in parts:
            for result in PARTS[part](folder, size):
                print(result.line(), flush=True)
                if not result.met:
                    missed.append(result)
    finally:
        if not given.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(["missed:", *(one.line() for one in missed)]) if missed else "all reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
