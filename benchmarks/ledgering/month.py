"""A made-up month of a ledger: agents' sessions of about sixty turns, one turn a minute each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.ledger.rollups.contribution import DAY
from app.ledger.rows import COLUMNS, TurnRow

END = 1_796_083_200_000
"""The moment of looking: 2026-12-01 00:00 UTC."""
DAYS = 30
WHOSE = [
    ("t1", "codex", "default", "gpt-5.6-sol"),
    ("t1", "codex", "default", "gpt-5.6-sol"),
    ("t1", "codex", "default", "gpt-5.6-mini"),
    ("t1", "opencode", "azure", "gpt-5.6-sol"),
    ("t2", "codex", "default", "gpt-5.6-sol"),
    ("t2", "pi", "default", "o5"),
    ("t3", "codex", "azure", "gpt-5.6-sol"),
    ("t3", "opencode", "azure", "o5"),
]
CAUSES = 40
"""Fingerprints of breaks, some far more frequent than others."""
_NOTHING: dict[str, Any] = dict.fromkeys(COLUMNS)


@dataclass(slots=True)
class Session:
    name: str
    left: int
    model: str
    upstream: str
    client: str
    tenant: str
    root: str
    tokens: int = 20_000


def month(count: int, seed: int = 0) -> Iterator[TurnRow]:
    """``count`` turns in the order of their times, the last a moment before ``END``."""
    rng = random.Random(seed)
    step = DAYS * DAY / count
    open_: list[Session] = []
    # As many sessions at once as make one turn a minute each.
    wanted = max(2, round(60_000 / step))
    for number in range(count):
        while len(open_) < wanted:
            open_.append(_session(rng, number))
        place = rng.randrange(len(open_))
        yield _turn(rng, open_[place], number, int(END - DAYS * DAY + number * step))
        if not open_[place].left:
            open_[place] = _session(rng, number + 1)


def _session(rng: random.Random, number: int) -> Session:
    tenant, client, upstream, model = rng.choice(WHOSE)
    name = f"{rng.getrandbits(64):016x}-{number}"
    return Session(
        name=name,
        left=max(1, int(rng.expovariate(1 / 60))),
        model=model,
        upstream=upstream,
        client=client,
        tenant=tenant,
        # A few are sub-agents of one.
        root=name if rng.random() < 0.9 else f"root-{number // 10_000}",
    )


def _turn(rng: random.Random, session: Session, number: int, at: int) -> TurnRow:
    session.left -= 1
    session.tokens += rng.randrange(200, 4_000)
    dice = rng.random()
    mode, reason, eligible = "ws_incremental", "ok", True
    if session.tokens < 24_000:
        mode, reason, eligible = "ws_full", "no_baseline", False
    elif dice < 0.03:
        mode, reason = "ws_full", "prefix_mismatch"
    elif dice < 0.05:
        mode, reason = "http_full", "connection_lost"
    elif dice < 0.06:
        mode, reason = "ws_full", "non_input_fields_changed"
    parted = reason in ("prefix_mismatch", "non_input_fields_changed")
    status = "completed" if rng.random() < 0.98 else rng.choice(("failed", "client_closed"))
    wait = rng.lognormvariate(6.3 if mode == "ws_incremental" else 7.2, 0.6)
    cached = int(session.tokens * (0.95 if rng.random() < 0.9 else rng.choice((0, 0.4))))
    output = rng.randrange(50, 2_000)
    duration = int(wait + output * 12)
    return TurnRow(
        **(
            _NOTHING
            | {
                "turn_id": f"{rng.getrandbits(80):020x}-{number}",
                "started_at": at,
                "ended_at": at + duration,
                "recorded_at": at + duration + 60,
                "source": "gateway",
                "kind": "generation" if rng.random() < 0.99 else "warmup",
                "status": status,
                "session": session.name,
                "session_key": session.name,
                "root_session": session.root,
                "tenant": session.tenant,
                "chain": session.name[:8],
                "client": session.client,
                "client_transport": "sse",
                "upstream": session.upstream,
                "model": session.model,
                "mode": mode,
                "reason": reason,
                "eligible": eligible,
                "attempts": 1,
                "response_id": f"resp_{number:032x}",
                "items_total": session.tokens // 300,
                "items_sent": 3,
                "fingerprint": f"cause-{int(CAUSES * rng.random() ** 3)}" if parted else None,
                "input_tokens": session.tokens,
                "cached_tokens": cached,
                "non_cached_tokens": session.tokens - cached,
                "output_tokens": output,
                "total_tokens": session.tokens + output,
                "usage_state": "reported",
                "ttft_ms": round(wait, 3),
                "duration_ms": float(duration),
                "error_code": "server_error" if status == "failed" else None,
                "cache_verdict": "one_off_full" if cached == 0 else "hit",
            }
        )
    )
