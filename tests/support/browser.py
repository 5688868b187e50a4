"""A ledger worth looking at: a day of a few agents, the same for the same seed and end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.ledger.rows import TurnRow
from tests.support.rows import make_row

MINUTE = 60_000
HOUR = 60 * MINUTE


@dataclass(frozen=True)
class Agent:
    session: str
    client: str
    version: str
    model: str
    upstream: str = "default"
    pause: float = 1.5
    """Minutes between turns, on average."""
    wire: str = "ws"
    breaks: float = 0.01
    """Chance of a turn that breaks the prefix."""
    spike: tuple[float, float] | None = None
    """Hours before the end between which most turns break."""
    summarizes: int = 0
    """Turns of an epoch; 0 is never."""
    transport: str = "sse"


AGENTS = (
    Agent(
        "refactor-billing", "codex_cli_rs", "0.171.0", "gpt-5.6-codex", pause=2.0, transport="ws"
    ),
    Agent("flaky-tests", "codex_cli_rs", "0.171.0", "gpt-5.6-codex", pause=3.0, summarizes=24),
    Agent("docs-writer", "openai-python", "3.57.0", "gpt-5.6", pause=4.0, breaks=0.02),
    Agent(
        "incident-triage",
        "openai-agents",
        "0.9.2",
        "gpt-5.6",
        pause=2.5,
        breaks=0.02,
        spike=(7, 4.5),
    ),
    Agent("nightly-report", "pi", "0.12.1", "gpt-5.6-mini", "azure-eu", pause=5.0, wire="http"),
    Agent("anon-7f3a91c2", "opencode", "1.4.0", "gpt-5.6-mini", pause=9.0, breaks=0.05),
)

BREAKS = (
    ("prefix_mismatch", {"diverged_class": "edited", "diverged_kind": "function_call_output"}),
    ("prefix_mismatch", {"diverged_class": "edited", "diverged_kind": "function_call_output"}),
    ("non_input_fields_changed", {"changed_fields": "tools"}),
    ("connection_lost", {"fallback_reason": "closed"}),
)


def history(end: int, *, hours: float = 24.0, seed: int = 7) -> list[TurnRow]:
    """Rows of the ``hours`` before ``end`` (epoch ms), oldest first, with ids of their own."""
    dice = random.Random(seed)
    rows = [row for agent in AGENTS for row in _turns(agent, end, hours, dice)]
    rows.sort(key=lambda row: (row["started_at"], row["session"]))
    return [
        make_row(
            turn_id=f"turn_{seed:02d}{number:06d}",
            response_id=f"resp_{dice.getrandbits(96):024x}" if row.pop("answered") else None,
            **row,
        )
        for number, row in enumerate(rows)
    ]


def _turns(agent: Agent, end: int, hours: float, dice: random.Random) -> Iterator[dict[str, Any]]:
    at = end - hours * HOUR + dice.uniform(0, 30) * MINUTE
    items, tokens, epoch, epoch_turn, running, number = 0, 0, 0, 0, 0, 0
    full_at = 0.0
    while True:
        # agents work in bursts, and at night less
        at += dice.expovariate(1 / agent.pause) * MINUTE
        if dice.random() < 0.02:
            at += dice.uniform(20, 80) * MINUTE
        if at >= end - 20_000:
            return
        new = dice.choice((1, 2, 2, 3, 4))
        fresh = running == 0
        if fresh:
            number, full_at = number + 1, dice.choice((7_000, 60_000, 120_000, 240_000))
        reset = bool(agent.summarizes) and epoch_turn >= agent.summarizes
        if fresh or reset:
            items, tokens = (4, 6_000) if fresh else (8, 14_000)
            epoch, epoch_turn = epoch + reset, 0
        items += new
        tokens += int(dice.uniform(350, 2_600))
        running += 1
        epoch_turn += 1
        row = _turn(agent, int(at), end, dice, items, tokens, new, epoch, epoch_turn, fresh, reset)
        yield row | {"session": agent.session if number == 1 else f"{agent.session}-{number}"}
        items += dice.choice((1, 2))
        if tokens > full_at:
            running = 0


def _turn(
    agent: Agent, at: int, end: int, dice: random.Random,
    items: int, tokens: int, new: int, epoch: int, epoch_turn: int, fresh: bool, reset: bool,
) -> dict[str, Any]:  # fmt: skip
    row: dict[str, Any] = {
        "started_at": at,
        "client": agent.client,
        "client_version": agent.version,
        "client_transport": agent.transport,
        "model": agent.model,
        "upstream": agent.upstream,
        "reasoning_effort": dice.choice(("low", "medium", "medium", "high")),
        "gateway_version": "0.1.0",
        "chain": f"ch-{agent.session[:4]}",
        "epoch": epoch,
        "epoch_turn": epoch_turn,
        "connection": f"cn-{dice.getrandbits(20):05x}",
        "prompt_cache_key": agent.session,
        "items_total": items,
        "baseline_items": items - new,
        "bytes_total": tokens * 4,
        "attempts": 1,
        "http_status": 200,
        "answered": True,
        "mode": "ws_incremental",
        "reason": "ok",
        "eligible": True,
        "output_tokens": int(dice.lognormvariate(5.4, 0.8)),
    }
    ago = (end - at) / HOUR
    spiking = agent.spike is not None and agent.spike[1] <= ago <= agent.spike[0]
    if agent.wire == "http":
        row |= {
            "mode": "http_full", "reason": "ws_rejected", "fallback_reason": "upgrade_404",
            "eligible": False, "connection": None,
        }  # fmt: skip
    elif fresh:
        row |= {
            "mode": "ws_full",
            "reason": "no_baseline",
            "eligible": False,
            "baseline_items": None,
        }
    elif reset:
        row |= {
            "mode": "ws_full", "reason": "epoch_reset", "epoch_reset_reason": "summarize",
            "eligible": False,
        }  # fmt: skip
    elif dice.random() < (0.55 if spiking else agent.breaks):
        reason, evidence = BREAKS[0] if spiking else dice.choice(BREAKS)
        row |= {"mode": "ws_full", "reason": reason} | evidence
        if reason == "prefix_mismatch":
            row |= {
                "diverged_at": max(1, items - new - 6), "diverged_path": "/output/_meta/elapsed",
                "fingerprint": "fp-9c41e07b",
                "evidence": '{"index": 3, "kind_before": "function_call_output",'
                ' "kind_now": "function_call_output", "path": "/output/_meta/elapsed",'
                ' "offset": 112, "class": "edited"}',
            }  # fmt: skip
    full = row["mode"] != "ws_incremental"
    row["items_sent"] = items if full else new
    row["bytes_sent"] = tokens * 4 if full else new * 900
    row |= _usage(row, tokens, dice) | _timing(row, tokens, dice)
    return row | _ending(row, dice)


def _usage(row: dict[str, Any], tokens: int, dice: random.Random) -> dict[str, Any]:
    if row["upstream"] == "azure-eu" and dice.random() < 0.25:
        missing = dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens"))
        return missing | {"usage_state": "missing"}
    share = dice.uniform(0.90, 0.985)
    if row["reason"] in ("no_baseline", "epoch_reset"):
        share = dice.choice((0.0, 0.3))
    elif row["reason"] == "prefix_mismatch":
        share = dice.uniform(0.15, 0.5)
    elif row["mode"] == "http_full":
        share = dice.choice((0.0, 0.88, 0.91, 0.93))
    elif dice.random() < 0.03:
        share = 0.0
    return {"input_tokens": tokens, "cached_tokens": int(tokens * share) // 128 * 128}


def _timing(row: dict[str, Any], tokens: int, dice: random.Random) -> dict[str, Any]:
    base = {"ws_incremental": 380.0, "ws_full": 900.0, "http_full": 1_150.0}[row["mode"]]
    size = 0.0 if row["mode"] == "ws_incremental" else tokens / 130
    ttft = round(base * dice.lognormvariate(0, 0.35) + size, 1)
    duration = round(ttft + (row["output_tokens"] or 200) * dice.uniform(6, 14), 1)
    return {
        "ttft_ms": ttft,
        "first_event_ms": round(ttft * 0.4, 1),
        "queue_ms": round(dice.uniform(0.2, 2.0), 1),
        "connect_ms": 0.0 if row["mode"] == "ws_incremental" else round(dice.uniform(60, 180), 1),
        "duration_ms": duration,
        "ended_at": row["started_at"] + int(duration),
    }


def _ending(row: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    roll = dice.random()
    if roll < 0.975:
        return {}
    gone = {
        "answered": False, "input_tokens": None, "cached_tokens": None, "output_tokens": None,
        "usage_state": "missing",
    }  # fmt: skip
    if roll < 0.982:
        return {"status": "incomplete"}
    if roll < 0.988:
        return gone | {"status": "client_closed"}
    never = {"ttft_ms": None, "first_event_ms": None}
    if roll < 0.994:
        return gone | never | {
            "status": "rate_limited", "http_status": 429, "error_code": "rate_limit_exceeded",
        }  # fmt: skip
    return gone | never | {"status": "failed", "error_code": "server_error"}
