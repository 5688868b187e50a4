"""What becomes of each turn that real clients were seen to send, written by hand.

Per shape in ``tests/captures``: a title, a blank line, why what is full had to be, a blank line,
and a row a turn: kind, mode, reason, items sent of all, session. Behind a reason stand what forced
it, or the item at which the histories part; behind a session, its root if that is another. ``python -m tests.support.captured_turns`` prints the
table of ``docs/clients.md``.
"""

from __future__ import annotations

TURNS = {
    "agents_sdk_http": """
        Agents SDK, HTTP

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
        Agents SDK, a socket per run

        A socket per run, and the upstream connection outlives it. The first turn begins.

        generation ws_full        no_baseline     1/1 anon1
        generation ws_incremental ok              1/5 anon1
        generation ws_incremental ok              1/7 anon1
        generation ws_incremental client_anchored 1/1 anon1
        generation ws_incremental client_anchored 1/1 anon1
    """,
    "agents_sdk_ws_session": """
        Agents SDK, one socket for all runs

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
        Codex, HTTP, tools as an input item, resumed

        The first turn begins. The third comes from a new process.

        generation ws_full        no_baseline 7/7  u1
        generation ws_incremental ok          1/10 u1
        generation ws_incremental ok          1/12 u1
    """,
    "codex_http_exec_resume": """
        Codex, HTTP, resumed twice

        The first turn begins. The last two come from new processes.

        generation ws_full        no_baseline 4/4  u1
        generation ws_incremental ok          1/8  u1
        generation ws_incremental ok          1/11 u1
        generation ws_incremental ok          1/13 u1
    """,
    "codex_http_exotic_items_replay": """
        Codex, HTTP, items of all kinds, resumed

        The first turn begins. Of the nineteen items answered Codex drops five, and so replays
        another history than the provider's: the second turn parts at the first one dropped, a
        message that is nothing but a refusal.

        generation ws_full        no_baseline       4/4   u1
        generation ws_full        prefix_mismatch@9 24/24 u1
        generation ws_incremental ok                1/26  u1
    """,
    "codex_http_multiturn": """
        Codex, HTTP, one process

        The first turn begins.

        generation ws_full        no_baseline 4/4  u1
        generation ws_incremental ok          1/8  u1
        generation ws_incremental ok          1/11 u1
        generation ws_incremental ok          1/13 u1
    """,
    "codex_http_zstd_chatgpt_auth": """
        Codex, HTTP, compressed bodies

        The upstream has no WebSocket: there is nothing to continue on. Bodies come compressed.

        generation http_full ws_rejected:upgrade_426 4/4 u1
        generation http_full ws_rejected:upgrade_426 8/8 u1
    """,
    "codex_ws_404_fallback": """
        Codex, WebSocket answered 404, then HTTP

        The upstream has no WebSocket: there is nothing to continue on.

        generation http_full ws_rejected:upgrade_404 4/4 u1
        generation http_full ws_rejected:upgrade_404 8/8 u1
    """,
    "codex_ws_426_fallback": """
        Codex, WebSocket answered 426, then HTTP

        The upstream has no WebSocket: there is nothing to continue on.

        generation http_full ws_rejected:upgrade_426 4/4 u1
        generation http_full ws_rejected:upgrade_426 8/8 u1
    """,
    "codex_ws_builtin_provider_resume": """
        Codex's own provider, WebSocket, resumed

        A warm-up opens a chain of its own. The last turn hangs its whole history on the second
        one; the chain of the process before is the longer proven prefix.

        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          3/4  u1
        generation ws_incremental ok          1/8  u1
        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          1/10 u1
    """,
    "codex_ws_close_mid": """
        Codex, WebSocket, closed in the midst of an answer

        The upstream dropped the connection in the midst of the first answer. Nothing but the
        warm-up was ever answered, and its connection is gone.

        warmup     ws_full        no_baseline 1/1 u1
        generation ws_incremental ok          3/4 u1
        generation ws_full        no_baseline 8/8 u1
    """,
    "codex_ws_closed_between_turns": """
        Codex, WebSocket, closed between two turns

        The upstream closed the connection after the third turn, and with it went what it held.

        warmup     ws_full        no_baseline            1/1   u1
        generation ws_incremental ok                     3/4   u1
        generation ws_incremental ok                     1/8   u1
        generation ws_full        connection_lost:closed 11/11 u1
        generation ws_incremental ok                     1/13  u1
    """,
    "codex_ws_code_mode_lite": """
        Codex, WebSocket, tools as an input item, resumed

        A warm-up of no items opens a chain of its own; the resumed process continues the
        former.

        warmup     ws_full        no_baseline 0/0  u1
        generation ws_incremental ok          7/7  u1
        generation ws_incremental ok          1/10 u1
        warmup     ws_full        no_baseline 0/0  u1
        generation ws_incremental ok          1/12 u1
    """,
    "codex_ws_compaction_local": """
        Codex, WebSocket, summary by a request of its own, resumed

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
        Codex's own provider, WebSocket, compaction by the provider

        The compaction is a turn of the chain; after it the history is another.

        warmup     ws_full        no_baseline 1/1 u1
        generation ws_incremental ok          3/4 u1
        compaction ws_incremental ok          2/9 u1
        generation ws_full        epoch_reset 5/5 u1
    """,
    "codex_ws_exec_resume": """
        Codex, WebSocket, resumed twice

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
        Codex, WebSocket, connection limit reached

        The upstream refused the third turn twice, once on a fresh connection: what the
        connection held went with it.

        warmup     ws_full        no_baseline                   1/1 u1
        generation ws_incremental ok                            3/4 u1
        generation ws_full        connection_lost:limit_reached 8/8 u1
        generation ws_full        connection_lost:limit_reached 8/8 u1
    """,
    "codex_ws_multiturn": """
        Codex, WebSocket, one process

        A warm-up opens the chain; all else is continued.

        warmup     ws_full        no_baseline 1/1  u1
        generation ws_incremental ok          3/4  u1
        generation ws_incremental ok          1/8  u1
        generation ws_incremental ok          1/11 u1
        generation ws_incremental ok          1/13 u1
    """,
    "codex_ws_prev_not_found": """
        Codex, WebSocket, previous response not found

        The upstream said twice that it does not hold what it had answered: nothing is left to
        continue.

        warmup     ws_full        no_baseline                 1/1 u1
        generation ws_incremental ok                          3/4 u1
        generation ws_full        previous_response_not_found 6/6 u1
        generation ws_full        connection_lost:rejected    6/6 u1
        generation ws_incremental ok                          1/8 u1
    """,
    "codex_ws_subagent": """
        Codex, WebSocket, with a sub-agent

        Parent and sub-agent open a chain each, and never meet.

        warmup     ws_full        no_baseline 1/1 u1
        generation ws_incremental ok          3/4 u1
        warmup     ws_full        no_baseline 1/1 u8<u1
        generation ws_incremental ok          1/6 u1
        generation ws_incremental ok          3/4 u8<u1
    """,
    "codex_ws_unknown_item_breaks_chain": """
        Codex, WebSocket, an item that it does not know

        Codex drops an item of a type that it does not know, and so replays another history.

        warmup     ws_full        no_baseline       1/1 u1
        generation ws_incremental ok                3/4 u1
        generation ws_full        prefix_mismatch@5 7/7 u1
    """,
    "openai_sdk": """
        OpenAI SDK, HTTP and WebSocket

        Five conversations. The cache key of the first turn names a session, and the second has
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
        opencode, HTTP, resumed

        The first turn begins. Ids, states and annotations are dropped, arguments written anew.

        generation ws_full        no_baseline 2/2 ses_u1
        generation ws_incremental ok          1/6 ses_u1
        generation ws_incremental ok          1/8 ses_u1
    """,
    "pi_http": """
        pi, HTTP, resumed

        The first turn begins. Arguments are written anew.

        generation ws_full        no_baseline 2/2 u1
        generation ws_incremental ok          1/6 u1
        generation ws_incremental ok          1/8 u1
    """,
    "pi_ws": """
        pi, WebSocket, resumed

        The first turn begins. The third comes on a new socket with its whole history.

        generation ws_full        no_baseline 2/2 u1
        generation ws_incremental ok          1/6 u1
        generation ws_incremental ok          1/8 u1
    """,
}


def rows_of(text: str) -> list[list[str]]:
    """What stands behind the last blank line, word by word."""
    return [line.split() for line in text.strip().rpartition("\n\n")[2].splitlines()]


def _told(row: list[str]) -> str:
    kind, mode, why, items, _ = row
    reason, _, more = why.partition("@" if "@" in why else ":")
    sent, _, total = items.partition("/")
    said = f"{sent} of {total}" if "incremental" in mode else f"all {total}"
    said = f"warm-up, {said}" if kind == "warmup" else said
    said = f"compaction, {said}" if kind == "compaction" else said
    if reason == "ok":
        return said
    cause = f"at item {more}" if "@" in why else f"`{more}`"
    return f"{said} (`{reason}`{', ' + cause if more else ''})"


def markdown() -> str:
    """A row a conversation, with all its turns."""
    lines = ["| conversation | items sent, turn by turn | what is full, and why |", "|---|---|---|"]
    for text in TURNS.values():
        title, why, _ = text.strip().split("\n\n")
        turns = " · ".join(_told(row) for row in rows_of(text))
        lines.append(f"| {title} | {turns} | {' '.join(why.split())} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
