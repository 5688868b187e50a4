"""What real clients were seen to send, through the whole service: mode and reason of each turn.

Each conversation of ``tests/captures`` is played before a provider that continues nothing but a
connection's latest response and keeps what it holds. ``EXPECTED`` was written by hand: where a
turn is full, it says why no gateway could have continued it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures import SHAPES, Shortener, load
from tests.support.replaying import Replay, Scripted, told
from tests.support.stack import Stack, stack

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]

EXPECTED = {
    "agents_sdk_http": """
        No session is named: what continues is told by the history. The sixth and the ninth
        begin a conversation. Where the client names a stored response, its delta goes as it
        came.

        generation ws_full          no_baseline     1/1 anon1
        generation ws_incremental   ok              1/5 anon1
        generation ws_incremental   ok              1/7 anon1
        generation http_incremental client_anchored 1/1 anon1
        generation http_incremental client_anchored 1/1 anon1
        generation ws_full          no_baseline     1/1 anon2
        generation ws_incremental   ok              1/5 anon2
        generation ws_incremental   ok              1/7 anon2
        generation ws_full          no_baseline     1/1 anon3
        generation http_incremental client_anchored 1/1 anon3
    """,
    "agents_sdk_ws_default": """
        A socket per run, and the upstream connection outlives it. The first turn begins.

        generation ws_full        no_baseline     1/1 anon1
        generation ws_incremental ok              1/5 anon1
        generation ws_incremental ok              1/7 anon1
        generation ws_incremental client_anchored 1/1 anon1
        generation ws_incremental client_anchored 1/1 anon1
    """,
    "agents_sdk_ws_session": """
        One socket for all runs. The first, the sixth and the eighth turn begin a conversation.

        generation ws_full        no_baseline     1/1 anon1
        generation ws_incremental ok              1/5 anon1
        generation ws_incremental ok              1/7 anon1
        generation ws_incremental client_anchored 1/1 anon1
        generation ws_incremental client_anchored 1/1 anon1
        generation ws_full        no_baseline     1/1 anon2
        generation ws_incremental ok              1/5 anon2
        generation ws_full        no_baseline     1/1 anon3
    """,
    "codex_http_code_mode_lite": """
        The first turn begins. The third comes from a new process.

        generation ws_full        no_baseline 7/7  u1
        generation ws_incremental ok          1/10 u1
        generation ws_incremental ok          1/12 u1
    """,
    "codex_http_exec_resume": """
        The first turn begins. The last two come from new processes.

        generation ws_full        no_baseline 4/4  u1
        generation ws_incremental ok          1/8  u1
        generation ws_incremental ok          1/11 u1
        generation ws_incremental ok          1/13 u1
    """,
    "codex_http_exotic_items_replay": """
        The first turn begins. Of the nineteen items answered Codex drops five, and so replays
        another history than the provider's: the second turn parts at the first one dropped, a
        message that is nothing but a refusal.

        generation ws_full        no_baseline       4/4   u1
        generation ws_full        prefix_mismatch@9 24/24 u1
        generation ws_incremental ok                1/26  u1
    """,
    "codex_http_multiturn": """
        The first turn begins.

        generation ws_full        no_baseline 4/4  u1
        generation ws_incremental ok          1/8  u1
        generation ws_incremental ok          1/11 u1
        generation ws_incremental ok          1/13 u1
    """,
    "codex_http_zstd_chatgpt_auth": """
        The upstream has no WebSocket: there is nothing to continue on. Bodies come compressed.

        generation http_full ws_rejected:upgrade_426 4/4 u1
        generation http_full ws_rejected:upgrade_426 8/8 u1
    """,
    "codex_ws_404_fallback": """
        The upstream has no WebSocket: there is nothing to continue on.

        generation http_full ws_rejected:upgrade_404 4/4 u1
        generation http_full ws_rejected:upgrade_404 8/8 u1
    """,
    "codex_ws_426_fallback": """
        The upstream has no WebSocket: there is nothing to continue on.

        generation http_full ws_rejected:upgrade_426 4/4 u1
        generation http_full ws_rejected:upgrade_426 8/8 u1
    """,
    "codex_ws_builtin_provider_resume": """
        A warm-up opens a chain of its own. The last turn hangs its whole history on the second
        one; the chain of the process before is the longer proven prefix.

        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          3/4  u1
        generation ws_incremental ok          1/8  u1
        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          1/10 u1
    """,
    "codex_ws_close_mid": """
        The upstream dropped the connection in the midst of the first answer. Nothing but the
        warm-up was ever answered, and its connection is gone.

        warmup     ws_full        no_baseline 1/1 u1
        generation ws_incremental ok          3/4 u1
        generation ws_full        no_baseline 8/8 u1
    """,
    "codex_ws_closed_between_turns": """
        The upstream closed the connection after the third turn, and with it went what it held.

        warmup     ws_full        no_baseline            1/1   u1
        generation ws_incremental ok                     3/4   u1
        generation ws_incremental ok                     1/8   u1
        generation ws_full        connection_lost:closed 11/11 u1
        generation ws_incremental ok                     1/13  u1
    """,
    "codex_ws_code_mode_lite": """
        A warm-up of no items opens a chain of its own; the resumed process continues the
        former.

        warmup     ws_full        no_baseline 0/0  u1
        generation ws_incremental ok          7/7  u1
        generation ws_incremental ok          1/10 u1
        warmup     ws_full        no_baseline 0/0  u1
        generation ws_incremental ok          1/12 u1
    """,
    "codex_ws_compaction_local": """
        The summary is asked for without tools; after it the history is another. The resumed
        process continues that one.

        warmup     ws_full        no_baseline              1/1 u1
        generation ws_incremental ok                       3/4 u1
        compaction ws_full        non_input_fields_changed 9/9 u1
        generation ws_full        epoch_reset              5/5 u1
        warmup     ws_full        no_baseline              1/1 u1
        generation ws_incremental ok                       1/7 u1
    """,
    "codex_ws_compaction_remote": """
        The compaction is a turn of the chain; after it the history is another.

        warmup     ws_full        no_baseline 1/1 u1
        generation ws_incremental ok          3/4 u1
        compaction ws_incremental ok          2/9 u1
        generation ws_full        epoch_reset 5/5 u1
    """,
    "codex_ws_exec_resume": """
        A warm-up opens a chain of its own, the third one goes on with that of the second: its
        turn had gone to the longer chain of the first process.

        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          3/4  u1
        generation ws_incremental ok          1/8  u1
        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          1/11 u1
        warmup     ws_incremental ok          0/1  u1
        generation ws_incremental ok          1/13 u1
    """,
    "codex_ws_limit_reached": """
        The upstream refused the third turn twice, once on a fresh connection: what the
        connection held went with it.

        warmup     ws_full        no_baseline                   1/1 u1
        generation ws_incremental ok                            3/4 u1
        generation ws_full        connection_lost:limit_reached 8/8 u1
        generation ws_full        connection_lost:limit_reached 8/8 u1
    """,
    "codex_ws_multiturn": """
        A warm-up opens the chain; all else is continued.

        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          3/4  u1
        generation ws_incremental ok          1/8  u1
        generation ws_incremental ok          1/11 u1
        generation ws_incremental ok          1/13 u1
    """,
    "codex_ws_prev_not_found": """
        The upstream said twice that it does not hold what it had answered: nothing is left to
        continue.

        warmup     ws_full        no_baseline                 1/1 u1
        generation ws_incremental ok                          3/4 u1
        generation ws_full        previous_response_not_found 6/6 u1
        generation ws_full        connection_lost:rejected    6/6 u1
        generation ws_incremental ok                          1/8 u1
    """,
    "codex_ws_subagent": """
        Parent and sub-agent open a chain each, and never meet.

        warmup     ws_full        no_baseline 1/1 u1
        generation ws_incremental ok          3/4 u1
        warmup     ws_full        no_baseline 1/1 u8
        generation ws_incremental ok          1/6 u1
        generation ws_incremental ok          3/4 u8
    """,
    "codex_ws_unknown_item_breaks_chain": """
        Codex drops an item of a type that it does not know, and so replays another history.

        warmup     ws_full        no_baseline       1/1 u1
        generation ws_incremental ok                3/4 u1
        generation ws_full        prefix_mismatch@5 7/7 u1
    """,
    "openai_sdk": """
        Seven conversations. The cache key of the first turn names a session, and the second has
        none. The third asks the second's question again, without its answer.

        generation ws_full          no_baseline       1/1 k1
        generation ws_full          no_baseline       4/4 anon1
        generation ws_full          prefix_mismatch@4 4/4 anon1
        generation http_incremental client_anchored   1/1 anon1
        generation ws_full          no_baseline       1/1 anon2
        generation ws_full          no_baseline       1/1 anon3
        generation ws_incremental   client_anchored   1/1 anon3
        generation ws_full          no_baseline       1/1 anon4
    """,
    "opencode_http": """
        The first turn begins. Ids, states and annotations are dropped, arguments written anew.

        generation ws_full        no_baseline 2/2 ses_u1
        generation ws_incremental ok          1/6 ses_u1
        generation ws_incremental ok          1/8 ses_u1
    """,
    "pi_http": """
        The first turn begins. Arguments are written anew.

        generation ws_full        no_baseline 2/2 u1
        generation ws_incremental ok          1/6 u1
        generation ws_incremental ok          1/8 u1
    """,
    "pi_ws": """
        The first turn begins. The third comes on a new socket with its whole history.

        generation ws_full        no_baseline 2/2 u1
        generation ws_incremental ok          1/6 u1
        generation ws_incremental ok          1/8 u1
    """,
}


def table(text: str) -> list[list[str]]:
    """The rows of a table: what stands behind the last blank line."""
    return [line.split() for line in text.strip().rpartition("\n\n")[2].splitlines()]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Scripted]]:
    model = Scripted()
    with stack(tmp_path_factory.mktemp("captures"), responder=model) as it:
        yield it, model


@pytest.fixture
def turns_of(
    service: tuple[Stack, Scripted], request: pytest.FixtureRequest
) -> Callable[[Json], list[list[str]]]:
    """Plays a conversation as a customer of its own; fails where the provider holds another."""
    it, model = service

    def play(shape: Json) -> list[list[str]]:
        it.tap.exchanges.clear()
        it.up.core.issued_ids.clear()
        before = len(it.rows())
        Replay(it, model, credential=request.node.name).play(shape)
        rows = it.rows()[before:]
        assert len(rows) == len(it.tap.exchanges) == sum("answer" in s for s in shape["steps"])
        assert it.checked() == sum(row.status == "completed" for row in rows)
        return told(rows)

    return play


@pytest.mark.parametrize("name", EXPECTED)
def test_a_client_is_continued_wherever_its_history_allows(
    name: str, turns_of: Callable[[Json], list[list[str]]]
) -> None:
    assert table(EXPECTED[name]) == turns_of(load(name))


# --- the same clients where the upstream fails them less ------------------------------------------


def healthy(shape: Json) -> Json:
    """The same requests before an upstream that takes WebSockets and keeps its connections."""
    for step in shape["steps"]:
        for fault in ("closes", "cut"):
            step.get("answer", {}).pop(fault, None)
    return {key: value for key, value in shape.items() if key != "refused"}


@pytest.mark.parametrize(
    "name", ["codex_http_zstd_chatgpt_auth", "codex_ws_404_fallback", "codex_ws_426_fallback"]
)
def test_a_client_that_fell_back_to_http_is_continued_over_the_upstreams_websocket(
    name: str, turns_of: Callable[[Json], list[list[str]]]
) -> None:
    expected = """
        generation ws_full          no_baseline      4/4 u1
        generation ws_incremental   ok               1/8 u1
    """
    assert table(expected) == turns_of(healthy(load(name)))


@pytest.mark.parametrize(
    ("name", "turn", "sent"),
    [("codex_ws_closed_between_turns", 3, "1/11"), ("codex_ws_close_mid", 2, "1/8")],
)
def test_a_client_that_comes_back_on_a_new_socket_finds_its_chain(
    name: str, turn: int, sent: str, turns_of: Callable[[Json], list[list[str]]]
) -> None:
    found = turns_of(healthy(load(name)))
    assert ["generation", "ws_incremental", "ok", sent, "u1"] == found[turn]


def unnoticed(shape: Json) -> Json:
    """The upstream refuses a turn once, and the client has no cause to come again.

    The step after next is the client's second attempt, on a new socket: its answer is the first's.
    """
    steps = shape["steps"]
    [at] = [i for i, step in enumerate(steps) if "error" in step.get("answer", {})]
    closed, opened, again = steps[at + 1 : at + 4]
    assert [closed["do"], opened["do"], again["do"]] == ["close", "open", "send"]
    steps[at]["answer"] |= {"times": 1, **again["answer"]}
    rest = steps[at + 4 :]
    for step in rest:
        step["socket"] = closed["socket"]
    return {**shape, "steps": [*steps[: at + 1], *rest]}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "codex_ws_limit_reached",
            """
            warmup     ws_full          no_baseline      1/1 u1
            generation ws_incremental   ok               3/4 u1
            generation ws_full          connection_lost:limit_reached  8/8 u1
            """,
        ),
        (
            "codex_ws_prev_not_found",
            """
            warmup     ws_full          no_baseline      1/1 u1
            generation ws_incremental   ok               3/4 u1
            generation ws_full          previous_response_not_found  6/6 u1
            generation ws_incremental   ok               1/8 u1
            """,
        ),
    ],
)
def test_what_the_upstream_refuses_once_no_client_hears_of(
    name: str, expected: str, turns_of: Callable[[Json], list[list[str]]]
) -> None:
    assert table(expected) == turns_of(unnoticed(load(name)))


_DROPPED = frozenset({"mcp_call", "code_interpreter_call", "file_search_call", "brand_new_item"})


def kept_by_codex(shape: Json) -> Json:
    """Without the items that Codex drops, and the one behind which it puts an item of its own."""

    def is_kept(item: Json) -> bool:
        if item["type"] == "message" and item["content"][0]["type"] == "refusal":
            return False
        return item["type"] not in _DROPPED and item.get("call_id") != "call_ls"

    for step in shape["steps"]:
        step["body"]["input"] = [item for item in step["body"]["input"] if is_kept(item)]
        step["answer"]["items"] = [item for item in step["answer"]["items"] if is_kept(item)]
    return shape


def test_what_codex_keeps_of_odd_items_is_enough(
    turns_of: Callable[[Json], list[list[str]]],
) -> None:
    """No id, other keys, empty content, null for absent, a resumed spelling beside a live one."""
    expected = """
        generation ws_full          no_baseline      4/4 u1
        generation ws_incremental   ok               5/22 u1
        generation ws_incremental   ok               1/24 u1
    """
    shape = kept_by_codex(copy.deepcopy(load("codex_http_exotic_items_replay")))
    assert table(expected) == turns_of(shape)


def test_one_character_of_what_was_answered_makes_another_history(
    turns_of: Callable[[Json], list[list[str]]],
) -> None:
    """The twin of every turn that is continued above: no client is believed unseen."""
    shape = copy.deepcopy(load("opencode_http"))
    message = shape["steps"][1]["body"]["input"][3]
    message["content"][0]["text"] += "."
    assert ["prefix_mismatch@3"] == [turn[2] for turn in turns_of(shape)][1:2]


# --- the shapes themselves ------------------------------------------------------------------------


def test_every_shape_has_its_table() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in SHAPES.glob("*.json"))


def test_the_shapes_are_small_and_hold_no_text_of_anyone() -> None:
    files = list(SHAPES.iterdir())
    assert sum(path.stat().st_size for path in files) < 200_000
    for path in files:
        text = path.read_text()
        found = [word for word in ("<text", "Bearer", "sk-", "/home", "127.0.0.1") if word in text]
        assert [] == found, path.name


def test_a_text_has_one_token_and_two_texts_have_two() -> None:
    short = Shortener()
    given = [{"text": "a"}, {"text": "b"}, {"text": "a"}, {"text": ""}]
    assert ["text 1", "text 2", "text 1", ""] == [one["text"] for one in short.short(given)]


def test_a_text_that_was_lost_is_taken_for_another_only_at_the_same_place() -> None:
    short = Shortener()
    lost = [{"type": "message", "id": name, "content": "<text 90 chars>"} for name in "aba"]
    one, other, again = (item["content"] for item in short.short(lost))
    assert one == again != other


def test_a_ciphertext_that_was_lost_is_that_of_its_thought() -> None:
    short = Shortener()
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "<text 90 chars>"}
    short.answers([thought])
    bare = {key: value for key, value in thought.items() if key != "id"}
    one, other = (short.short(item)["encrypted_content"] for item in (thought, bare))
    assert one == other == "cipher 1"
    short.answers([{**thought, "id": "rs_2"}])
    assert short.short({**thought, "id": "rs_2"})["encrypted_content"] == "cipher 2"
    with pytest.raises(ValueError, match="unpack"):
        short.short(bare)  # whose of the two?


def test_spaces_in_arguments_are_not_shortened() -> None:
    given = {"arguments": '{"command": "ls"}'}
    assert given == Shortener().short(given)
    assert json.loads(given["arguments"])
