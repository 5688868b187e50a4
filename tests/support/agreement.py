"""A ledger over days of 23, 24 and 25 hours with all that makes sums go wrong, and the sums of rows
as anybody would add them up by hand: what every page, table, chart and file has to agree with."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from app.ledger import imports, merging, taking
from app.ledger.imports import Counts
from app.ledger.rows import TurnRow, to_ms
from tests.support.importing import stored
from tests.support.rows import make_row
from tests.support.site import Site

Json = dict[str, Any]
HALF = timedelta(minutes=30)
NOW = datetime.fromisoformat("2026-11-01T20:00Z").timestamp()
SPANS = (
    ("2026-03-21T22:00Z", "2026-03-24T00:00Z"),  # Africa/Casablanca goes to +01
    ("2026-03-28T18:00Z", "2026-03-30T04:00Z"),  # Europe/Berlin: a day of 23 hours
    ("2026-10-24T12:00Z", "2026-10-26T06:00Z"),  # and one of 25
    ("2026-10-31T20:00Z", "2026-11-01T20:00Z"),  # America/Los_Angeles: the same
)
"""A row begins every half hour of these."""
INCREMENTAL = ("ws_incremental", "http_incremental")
LOSSES = (
    "prefix_changed", "identity_change", "idle", "pinned_floor", "one_off_full", "one_off_partial",
    "persistent", "unknown",
)  # fmt: skip
ERRORS = ("failed", "error", "rate_limited", "refused")


def fill(site: Site) -> list[Json]:
    """Fill an empty ledger; returns its rows as the API shows them."""
    site.clock.set_now(NOW)
    chance = random.Random(26)
    rows = [_row(chance, number, at) for number, at in enumerate(_instants())]
    seen = [row for row in rows if row.source == "gateway"]
    site.write(seen)
    # A log tells of its own turns, and once more of some that the gateway has seen.
    told = [row for row in rows if row.source != "gateway"]
    again = [_as_logged(row) for row in seen if row.response_id is not None][:20]
    imports.begin(site.engine, "i", to_ms(NOW), [])
    taking.take(site.engine, "i", [[*told, *again]], Counts(), logged=True)
    merging.merge_waiting(site.engine)
    held = [row.as_dict() for row in stored(site.engine)]
    assert len(again) == 20
    assert sorted(row.turn_id for row in rows) == sorted(row["turn_id"] for row in held)
    return held


def _instants() -> Iterable[int]:
    for first, end in SPANS:
        at = datetime.fromisoformat(first)
        while at < datetime.fromisoformat(end):
            yield to_ms(at.timestamp())
            at += HALF


def _row(chance: random.Random, number: int, at: int) -> TurnRow:
    pick = chance.choice
    source = pick(["gateway", "gateway", "gateway", "import:codex", "import:litellm"])
    kind = pick(["generation"] * 8 + ["warmup", "compaction"])
    status = pick(["completed"] * 7 + ["incomplete", "client_closed", *ERRORS])
    done = kind == "generation" and status in ("completed", "incomplete")
    mode = pick([*INCREMENTAL, "ws_full", "http_full"] + [None] * (source != "gateway"))
    reason = "ok" if mode in INCREMENTAL else pick(
        ["ok", "prefix_mismatch", "non_input_fields_changed", "connection_lost", "no_baseline",
         "continuation_off", None]
    )  # fmt: skip
    verdict = pick([*LOSSES, "hit", "hit", "shortfall", "cold_start"]) if done else "unusable"
    session = pick("abcdefg")
    given = (
        pick([None, 0, 10, 75_300, chance.randrange(1, 100_000)]) if status != "refused" else None
    )
    cached = None if given is None else pick([None, 0, given, given * 9 // 10])
    missed = chance.randrange(1, 9_000) if verdict in LOSSES else None
    return make_row(
        turn_id=f"turn-{number}",
        started_at=at,
        ended_at=at + chance.randrange(1, 90_000),
        recorded_at=at + chance.randrange(90_000, 5_400_000),
        source=source,
        kind=kind,
        status=status,
        mode=mode if kind == "generation" else None,
        reason=reason if kind == "generation" else None,
        shadow_reason=pick(["ok", "prefix_mismatch"]) if reason == "continuation_off" else None,
        eligible=kind == "generation"
        and mode is not None
        and reason not in ("no_baseline", "continuation_off", None),
        changed_fields=pick(["tools", "model", "input,text"])
        if reason == "non_input_fields_changed"
        else None,
        fingerprint=pick(["9f2c41d07a3be815", None]) if reason == "prefix_mismatch" else None,
        fallback_reason=pick(["closed", None]) if reason == "connection_lost" else None,
        provider_miss_reason=pick(
            [None, "cache_hit", "input_changed", "prompt_cache_key_changed", "unavailable"]
        ),
        cache_verdict=verdict if kind == "generation" else None,
        cache_grade=pick(["proven", "likely", "possible"]) if kind == "generation" else None,
        missed_tokens=missed,
        session=session,
        session_key=f"key-{session}",
        root_session="a" if session in "fg" else None,
        chain=pick(["ch_1", "ch_2", None]),
        tenant="t2" if session == "b" else "t1",
        client=pick(["codex", "openai", None]),
        upstream=pick(["default", "azure"]),
        model=pick(["gpt-5.6-sol", "gpt-5.6", None]),
        response_id=f"resp_{number}" if done and source == "gateway" else None,
        input_tokens=given,
        cached_tokens=cached,
        cache_write_tokens=None if cached is None else pick([None, (given - cached) // 2]),
        output_tokens=None if given is None else pick([None, 50]),
        reasoning_tokens=None if given is None else pick([None, 10]),
        usage_state="missing" if given is None else "reported",
        ttft_ms=float(chance.randrange(100, 3_000)) if done and chance.random() < 0.8 else None,
        cost_usd=pick([None, Decimal(chance.randrange(1, 10**6)).scaleb(-6)]),
    )


def _as_logged(row: TurnRow) -> TurnRow:
    """The same call, as the client's log tells of it."""
    values = row.as_dict() | {"turn_id": f"log-{row.turn_id}", "source": "import:codex"}
    kept = (
        "turn_id", "source", "kind", "status", "session", "session_key", "tenant", "model",
        "response_id", "input_tokens", "cached_tokens", "output_tokens", "usage_state",
    )  # fmt: skip
    return make_row(
        **{name: values[name] for name in kept},
        started_at=row.started_at,
        ended_at=row.ended_at,
        mode=None,
        reason=None,
        eligible=False,
        ttft_ms=None,
    )


def sums(rows: Iterable[Json]) -> Json:
    """Every figure of these rows, added up row by row."""
    rows = list(rows)
    done = [
        r for r in rows if r["kind"] == "generation" and r["status"] in ("completed", "incomplete")
    ]
    usage = [r for r in done if None not in (r["input_tokens"], r["cached_tokens"])]
    known = [r for r in done if r["mode"] is not None]
    eligible = [r for r in known if r["eligible"]]
    broken = [r for r in done if _broken(r)]
    lost = [r for r in done if r["cache_verdict"] in LOSSES]
    given, cached = (sum(r[name] for r in usage) for name in ("input_tokens", "cached_tokens"))
    left = sum(r["status"] == "client_closed" for r in rows)
    errors = sum(r["status"] in ERRORS for r in rows)
    return {
        "rows": len(rows),
        "generation": len(done),
        "kinds": Counter(r["kind"] for r in rows),
        "statuses": Counter(r["status"] for r in rows),
        "sessions": len({r["session_key"] for r in rows}),
        "errors": (errors, left, errors / (len(rows) - left) if len(rows) > left else None),
        "modes": Counter(r["mode"] for r in done),
        "reasons": Counter(r["reason"] for r in done),
        "continuation": (
            len(known), sum(r["mode"] in INCREMENTAL for r in known), len(eligible),
            sum(r["mode"] not in INCREMENTAL for r in eligible),
            sum(r["reason"] == "prefix_mismatch" for r in eligible),
        ),
        "tokens": (len(usage), len(done) - len(usage), given, cached, given - cached),
        "output": sum(r["output_tokens"] or 0 for r in done),
        "cost": sum((Decimal(r["cost_usd"]) for r in rows if r["cost_usd"] is not None), Decimal()),
        "cache": Counter((_wire(r), cache_of(r)) for r in done),
        "ttft": Counter(r["mode"] for r in done if r["ttft_ms"] is not None),
        "breaks": (len(broken), sum(r["missed_tokens"] or 0 for r in broken)),
        "lost": (len(lost), sum(r["missed_tokens"] or 0 for r in lost)),
    }  # fmt: skip


def _broken(row: Json) -> bool:
    if row["eligible"]:
        return row["mode"] is not None and row["mode"] not in INCREMENTAL
    undecided = row["reason"] in (None, "continuation_off", "client_anchored")
    return undecided and row["cache_verdict"] in LOSSES


def group_of(row: Json) -> str | None:
    """The group of breaks that a row belongs to."""
    done = row["kind"] == "generation" and row["status"] in ("completed", "incomplete")
    if not done or not _broken(row):
        return None
    if row["fingerprint"] is not None:
        return str(row["fingerprint"])
    if not row["eligible"]:
        return f"verdict:{row['cache_verdict']}"
    fields = row["changed_fields"]
    behind = row["fallback_reason"] or (
        fields if isinstance(fields, str) else ",".join(fields or ())
    )
    return ":".join(["reason", row["reason"] or "unknown", *([behind] if behind else [])])


def _wire(row: Json) -> str:
    if row["mode"] is None:
        return "unknown"
    return "incremental" if row["mode"] in INCREMENTAL else "full"


def cache_of(row: Json) -> str:
    given, cached = row["input_tokens"], row["cached_tokens"]
    if not given or cached is None:
        return "unknown"
    return "miss" if not cached else "hit" if cached / given >= 0.8 else "partial"


def pages(site: Site, path: str, key: str, view: Json, limit: int) -> Iterable[Json]:
    """All entries of a list, page by page."""
    cursor: Json = {}
    while True:
        told = site.get(path, limit=limit, **view, **cursor)
        yield from told[key]
        if told["next_cursor"] is None:
            return
        cursor = {"cursor": told["next_cursor"]}


def csv_rows(site: Site, view: Json) -> list[Json]:
    answer = site.client.get("/api/requests.csv", params=view)
    assert answer.status_code == 200, answer.text
    return [_typed(row) for row in csv.DictReader(io.StringIO(answer.text, newline=""))]


def jsonl_rows(site: Site, view: Json) -> list[Json]:
    answer = site.client.get("/api/requests.jsonl", params=view)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


_WHOLE = ("input_tokens", "cached_tokens", "output_tokens", "missed_tokens", "cache_write_tokens")


def _typed(row: dict[str, str]) -> Json:
    """A line of the CSV: what is blank is unknown, and not zero."""
    held: Json = {name: value if value != "" else None for name, value in row.items()}
    numbers = {name: int(held[name]) for name in _WHOLE if held[name] is not None}
    return held | numbers | {"eligible": held["eligible"] == "true"}


def column(chart: Json, key: str) -> list[Any]:
    """The cells of a column of a chart's table; none where there is no such column."""
    keys = [each["key"] for each in chart["table"]["columns"]]
    return [row[keys.index(key)] for row in chart["table"]["rows"]] if key in keys else []


def total(values: Sequence[Any]) -> Any:
    return sum(value for value in values if value is not None)


def instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
