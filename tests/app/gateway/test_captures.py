"""What real clients were seen to send, through the whole service: mode and reason of each turn.

Each conversation of ``tests/captures`` is played before a provider that continues nothing but a
connection's latest response and keeps what it holds. What is expected stands, with the reason why
no gateway could have continued a turn that is full, in ``tests/support/captured_turns.py``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.captured_turns import TURNS, rows_of
from tests.support.captures import load
from tests.support.replaying import Replay, Scripted, told
from tests.support.stack import Stack, stack

Json = dict[str, Any]


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


@pytest.mark.parametrize("name", TURNS)
def test_a_client_is_continued_wherever_its_history_allows(
    name: str, turns_of: Callable[[Json], list[list[str]]]
) -> None:
    assert rows_of(TURNS[name]) == turns_of(load(name))


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
    assert rows_of(expected) == turns_of(healthy(load(name)))


@pytest.mark.parametrize(
    ("name", "turn", "sent"),
    [("codex_ws_closed_between_turns", 3, "1/11"), ("codex_ws_close_mid", 2, "1/8")],
)
def test_a_client_that_comes_back_on_a_new_socket_finds_its_chain(
    name: str, turn: int, sent: str, turns_of: Callable[[Json], list[list[str]]]
) -> None:
    found = turns_of(healthy(load(name)))
    assert ["generation", "ws_incremental", "ok", sent, "u1"] == found[turn]


def test_a_first_question_given_as_a_string_is_a_message_of_the_history(
    turns_of: Callable[[Json], list[list[str]]],
) -> None:
    """The second turn of the SDK replays the first, whose cache key here names no session."""
    shape = load("openai_sdk")
    del shape["steps"][0]["body"]["prompt_cache_key"]
    expected = """
        generation ws_full          no_baseline      1/1 anon1
        generation ws_incremental   ok               1/4 anon1
    """
    assert rows_of(expected) == turns_of(shape)[:2]


def test_a_chain_that_another_socket_holds_is_left_to_it(
    turns_of: Callable[[Json], list[list[str]]],
) -> None:
    """The process before is still there when the next one resumes: that goes on from its warm-up,
    and the one after it from where that has come to."""
    shape = load("codex_ws_exec_resume")
    closes = [step for step in shape["steps"] if step["do"] == "close"]
    shape["steps"].remove(closes[0])
    expected = """
        warmup     ws_full          no_baseline      1/1 u1
        generation ws_incremental   ok               3/4 u1
        generation ws_incremental   ok               1/8 u1
        warmup     ws_full          no_baseline      1/1 u1
        generation ws_incremental   ok               10/11 u1
        warmup     ws_full          no_baseline      1/1 u1
        generation ws_incremental   ok               1/13 u1
    """
    assert rows_of(expected) == turns_of(shape)


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
    assert rows_of(expected) == turns_of(unnoticed(load(name)))


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
    assert rows_of(expected) == turns_of(shape)


def test_one_character_of_what_was_answered_makes_another_history(
    turns_of: Callable[[Json], list[list[str]]],
) -> None:
    """The twin of every turn that is continued above: no client is believed unseen."""
    shape = copy.deepcopy(load("opencode_http"))
    message = shape["steps"][1]["body"]["input"][3]
    message["content"][0]["text"] += "."
    assert ["prefix_mismatch@3"] == [turn[2] for turn in turns_of(shape)][1:2]
