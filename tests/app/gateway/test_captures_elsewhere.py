"""The same clients before other upstreams and under other policies.

What becomes of a turn there follows from what becomes of it before a WebSocket upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.ledger.rows import TurnRow
from tests.support.captured_turns import TURNS, rows_of
from tests.support.captures import load
from tests.support.replaying import Replay, Scripted, told
from tests.support.stack import Stack, stack

Json = dict[str, Any]
Rows = list[list[str]]
Play = Callable[[str, Json], list[TurnRow]]


HEALTHY = {
    name: load(name)
    for name in (
        "agents_sdk_ws_session",
        "codex_http_exec_resume",
        "codex_ws_compaction_remote",
        "codex_ws_exec_resume",
        "codex_ws_subagent",
        "openai_sdk",
        "opencode_http",
        "pi_ws",
    )
}
"""Of each client one conversation in which the upstream did nothing wrong."""


@contextmanager
def clients(folder: Path, kind: str = "openai", toml: str = "") -> Iterator[Play]:
    """Plays a conversation; fails where the provider holds another than the client means."""
    model = Scripted()
    with stack(folder, kind, flags={"toml": toml}, responder=model) as it:
        yield lambda name, shape: played(it, model, name, shape)


def played(it: Stack, model: Scripted, name: str, shape: Json) -> list[TurnRow]:
    it.tap.exchanges.clear()
    it.up.core.issued_ids.clear()
    before = len(it.rows())
    Replay(it, model, credential=name).play(shape)
    rows = it.rows()[before:]
    assert it.checked() == len(rows) == len(rows_of(TURNS[name]))
    return rows


def policy(continuation: str, *more: str) -> str:
    return "\n".join(["[upstreams.default]", f'continuation = "{continuation}"', *more])


def modes(rows: list[TurnRow]) -> list[tuple[str, str]]:
    return [(str(row.mode), str(row.reason)) for row in rows]


def expected(name: str) -> list[tuple[str, str, str, str]]:
    """Of each turn: kind, mode, the bare reason, session."""
    rows = rows_of(TURNS[name])
    return [(kind, mode, why.partition("@")[0], name) for kind, mode, why, _, name in rows]


def test_a_backend_that_lists_no_output_and_sends_events_of_its_own_changes_nothing(
    tmp_path: Path,
) -> None:
    """It stores nothing: the clients that are content with that are those that say so."""
    asked = {
        name: shape
        for name, shape in HEALTHY.items()
        if all(step["body"].get("store") is False for step in shape["steps"] if "body" in step)
    }
    assert len(asked) >= 6
    with clients(tmp_path, "codex") as play:
        found = {name: told(play(name, shape)) for name, shape in asked.items()}
    assert {name: rows_of(TURNS[name]) for name in asked} == found


def test_an_upstream_without_websockets_is_sent_whole_histories(tmp_path: Path) -> None:
    """Warm-ups are answered here, and what is hung on one is sent with it."""

    def there(kind: str, why: str) -> tuple[str, str]:
        if why == "client_anchored":
            return "http_incremental", why
        return "None" if kind == "warmup" else "http_full", "ws_rejected"

    with clients(tmp_path) as play:
        found = {
            name: modes(play(name, {**shape, "refused": 426})) for name, shape in HEALTHY.items()
        }
    assert {
        name: [there(kind, why) for kind, _, why, _ in expected(name)] for name in HEALTHY
    } == found


def test_an_observed_client_is_told_what_could_have_been(tmp_path: Path) -> None:
    with clients(tmp_path, toml=policy("observe")) as play:
        found = {
            name: [(str(r.shadow_mode), str(r.shadow_reason)) for r in play(name, shape)]
            for name, shape in HEALTHY.items()
        }
    assert {name: [(mode, why) for _, mode, why, _ in expected(name)] for name in HEALTHY} == found


def test_kept_responses_continue_what_a_connection_would_have_continued(tmp_path: Path) -> None:
    """A warm-up is not kept, so that the first answer of a session is what the others hang on."""

    def there(name: str) -> Iterator[tuple[str, str]]:
        begun = set()
        for kind, mode, why, session in expected(name):
            if kind == "warmup":
                yield "None", "continuation_off"
            elif session not in begun:
                begun.add(session)
                yield "http_full", "no_baseline"
            else:
                yield mode.replace("ws", "http"), why

    with clients(tmp_path, toml=policy("store", "force_store = true")) as play:
        found = {name: modes(play(name, shape)) for name, shape in HEALTHY.items()}
    assert {name: list(there(name)) for name in HEALTHY} == found
