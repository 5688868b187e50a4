"""What the engine knows of a turn, turned into a row of the ledger.

Tokens (docs/ledger.md, "Tokens"): cached and written tokens are parts of the input. The row holds
parts that add up; where the provider's figures contradict each other they are cut to fit, cached
first and then written, the row is marked ``inconsistent``, and the figures as reported stay in
the evidence. Unknown stays ``None`` and never becomes 0.

Text from outside is cut to 128 characters and cleaned of what a database refuses (NUL, lone
surrogates), so that no client can make its turn unwritable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from app.ledger.journal.records import Begun
from app.ledger.rows import TurnRow, to_ms
from engine.model import DivergenceClass, Evidence, TurnFacts, Usage, UsageState

TEXT_LIMIT = 128
PATH_LIMIT = 512
EVIDENCE_LIMIT = 16_384
INTEGER_LIMIT = 2**31 - 1
TOKENS_LIMIT = INTEGER_LIMIT // 2
"""Of input and of output, whose sum is in a column, too."""
BIG_LIMIT = 2**63 - 1
NAMES_LIMIT = 50
_LEFT_OUT_SIZE = len(',"field_details_left_out":1000000')


def to_row(
    facts: TurnFacts,
    *,
    gateway_version: str | None,
    pseudonymize: Callable[[str], str] | None = None,
) -> TurnRow:
    """One turn as a row.

    ``pseudonymize`` hashes the names that a client chose (session, root session, turn group,
    cache key) where the setting of that name is on. ``recorded_at`` is set again by the writer,
    when the row is written.
    """
    started_at, ended_at = to_ms(facts.started_at), to_ms(facts.ended_at)
    tokens = split(facts.usage)
    evidence = facts.evidence
    named = _namer(pseudonymize)

    return TurnRow(
        turn_id=facts.turn_id,
        started_at=started_at,
        ended_at=ended_at,
        recorded_at=ended_at,
        source=_text(facts.source),
        kind=_text(facts.kind),
        status=_text(facts.status),
        session=named(facts.session),
        session_key=facts.session_key,
        root_session=named(facts.root_session),
        turn_group=named(facts.turn_group),
        tenant=facts.tenant,
        chain=clean(facts.chain),
        epoch=_count(facts.epoch),
        epoch_turn=_count(facts.epoch_turn),
        client=clean(facts.client),
        client_version=clean(facts.client_version),
        client_transport=clean(facts.client_transport),
        gateway_version=clean(gateway_version),
        upstream=_text(facts.upstream),
        model=clean(facts.model),
        reasoning_effort=clean(facts.reasoning_effort),
        service_tier=clean(facts.service_tier),
        mode=clean(facts.mode),
        reason=clean(facts.reason),
        epoch_reset_reason=clean(facts.epoch_reset_reason),
        eligible=facts.eligible,
        changed_fields=_join(facts.changed_fields),
        fallback_reason=clean(facts.fallback_reason),
        attempts=_count(facts.attempts),
        connection=clean(facts.connection),
        previous_response_id=clean(facts.previous_response_id),
        response_id=clean(facts.response_id),
        prompt_cache_key=named(facts.prompt_cache_key),
        store=facts.store,
        items_total=_count(facts.items_total),
        items_sent=_count(facts.items_sent),
        baseline_items=_count(facts.baseline_items),
        bytes_total=_count(facts.bytes_total, BIG_LIMIT),
        bytes_sent=_count(facts.bytes_sent, BIG_LIMIT),
        frozen_items=_count(facts.frozen_items),
        diverged_at=None if evidence is None else _count(evidence.index),
        diverged_kind=None if evidence is None else diverged_kind(evidence),
        diverged_path=None if evidence is None else clean(evidence.path, PATH_LIMIT),
        diverged_class=None if evidence is None else clean(evidence.klass),
        fingerprint=None if evidence is None else clean(evidence.fingerprint),
        evidence=evidence_json(evidence, tokens.reported),
        tools_digest=clean(facts.tools_digest),
        instructions_digest=clean(facts.instructions_digest),
        prefix_digest=clean(facts.prefix_digest),
        baseline_digest=clean(facts.baseline_digest),
        input_tokens=tokens.input,
        cached_tokens=tokens.cached,
        cache_write_tokens=tokens.cache_write,
        cache_write_long_tokens=tokens.cache_write_long,
        non_cached_tokens=tokens.non_cached,
        output_tokens=tokens.output,
        reasoning_tokens=tokens.reasoning,
        total_tokens=tokens.total,
        usage_state=tokens.state,
        ttft_ms=_milliseconds(facts.ttft_ms),
        first_event_ms=_milliseconds(facts.first_event_ms),
        queue_ms=_milliseconds(facts.queue_ms),
        connect_ms=_milliseconds(facts.connect_ms),
        duration_ms=_milliseconds(facts.duration_ms),
        http_status=_count(facts.http_status),
        error_code=clean(facts.error_code),
        cache_verdict=None,
        cache_grade=None,
        missed_tokens=None,
        provider_miss_reason=clean(facts.provider_miss_reason),
        shadow_mode=clean(facts.shadow_mode),
        shadow_reason=clean(facts.shadow_reason),
        cost_usd=None,
        price_note=None,
        import_id=None,
    )


def to_begun(
    facts: TurnFacts,
    *,
    gateway_version: str | None,
    pseudonymize: Callable[[str], str] | None = None,
) -> Begun:
    """What is known of a turn at its start, with names as in its row."""
    named = _namer(pseudonymize)
    return Begun(
        turn_id=facts.turn_id,
        started_at=to_ms(facts.started_at),
        source=_text(facts.source),
        kind=_text(facts.kind),
        session=named(facts.session),
        session_key=facts.session_key,
        root_session=named(facts.root_session),
        turn_group=named(facts.turn_group),
        tenant=facts.tenant,
        client=clean(facts.client),
        client_version=clean(facts.client_version),
        client_transport=clean(facts.client_transport),
        gateway_version=clean(gateway_version),
        upstream=_text(facts.upstream),
        model=clean(facts.model),
    )


def _namer(
    pseudonymize: Callable[[str], str] | None,
) -> Callable[[str | None], str | None]:
    """What becomes of a name that a client chose."""
    if pseudonymize is None:
        return clean
    return lambda name: None if name is None else pseudonymize(name)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Usage whose parts add up: ``cached + cache_write <= input``, ``total = input + output``."""

    input: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    cache_write_long: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    state: str = UsageState.MISSING.value
    reported: dict[str, int] | None = None
    """The provider's own figures, where they had to be cut to fit."""

    @property
    def non_cached(self) -> int | None:
        if self.input is None or self.cached is None:
            return None
        return self.input - self.cached


_FIGURES = (
    "input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_long_tokens",
    "output_tokens", "reasoning_tokens", "total_tokens",
)  # fmt: skip
_figures = attrgetter(*_FIGURES)


def split(usage: Usage) -> Tokens:
    """Make usage consistent; says so in ``state`` where it was not."""
    given = _figures(usage)
    if not any(value is not None for value in given):
        return Tokens()
    tokens_in, cached, written, written_long, out, reasoning, total = (
        _count(value, TOKENS_LIMIT) for value in given
    )
    cached = _at_most(cached, tokens_in)
    rest = None if tokens_in is None else tokens_in - (cached or 0)
    written = _at_most(written, rest)
    written_long, reasoning = _at_most(written_long, written), _at_most(reasoning, out)
    if tokens_in is not None and out is not None:
        total = tokens_in + out
    kept_total = None if usage.total_tokens is None else total
    cut = given != (tokens_in, cached, written, written_long, out, reasoning, kept_total)
    if cut or usage.state is UsageState.INCONSISTENT:
        state = UsageState.INCONSISTENT
    elif usage.state is UsageState.ESTIMATED:
        state = UsageState.ESTIMATED
    elif tokens_in is None and out is None:
        state = UsageState.MISSING
    else:
        state = UsageState.REPORTED
    return Tokens(
        input=tokens_in,
        cached=cached,
        cache_write=written,
        cache_write_long=written_long,
        output=out,
        reasoning=reasoning,
        total=total,
        state=str(state),
        reported={n: v for n, v in zip(_FIGURES, given, strict=True) if v is not None}
        if cut
        else None,
    )


def clean(value: str | None, limit: int = TEXT_LIMIT) -> str | None:
    """Text that every database takes, at most ``limit`` characters of it."""
    if value is None:
        return None
    text = str(value)[:limit]
    return text if text.isascii() and "\x00" not in text else _text(text, limit)


def _text(value: str, limit: int = TEXT_LIMIT) -> str:
    text = str(value)[:limit]  # an enum's value, not its member
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _join(names: tuple[str, ...]) -> str | None:
    """Names joined by commas; a comma inside a name is written ``%2C``."""
    return ",".join(_text(name).replace(",", "%2C") for name in names[:NAMES_LIMIT]) or None


def _count(value: int | None, limit: int = INTEGER_LIMIT) -> int | None:
    return value if value is not None and 0 <= value <= limit else None


def _at_most(part: int | None, whole: int | None) -> int | None:
    return part if part is None or whole is None else min(part, whole)


def _milliseconds(value: float | None) -> float | None:
    if value is None or not math.isfinite(value) or value < 0:
        return None
    return round(value, 3)


def diverged_kind(evidence: Evidence) -> str | None:
    """What stood there before; for an item that was added, what stands there now."""
    if evidence.klass is DivergenceClass.INSERTED:
        return clean(evidence.kind_now)
    return clean(evidence.kind_before or evidence.kind_now)


def evidence_json(evidence: Evidence | None, reported: dict[str, int] | None) -> str | None:
    """Evidence as compact JSON with unknown parts left out, or None when there is none."""
    shown: dict[str, Any] = {}
    if evidence is not None:
        shown = {
            "index": evidence.index,
            "kind_before": evidence.kind_before,
            "kind_now": evidence.kind_now,
            "length_before": evidence.length_before,
            "length_now": evidence.length_now,
            "path": clean(evidence.path, PATH_LIMIT),
            "offset": evidence.offset,
            "line": evidence.line,
            "class": evidence.klass,
            "nature": evidence.nature,
            "items_gone": evidence.items_gone,
            "items_new": evidence.items_new,
            "further": evidence.further or None,
            "freezable": list(evidence.freezable) or None,
            "value_length_before": evidence.value_length_before,
            "value_length_now": evidence.value_length_now,
            "digest_before": evidence.digest_before,
            "digest_now": evidence.digest_now,
            "changed_fields": list(evidence.changed_fields[:NAMES_LIMIT]) or None,
            "field_details": [dict(detail) for detail in evidence.field_details] or None,
            "fingerprint": evidence.fingerprint,
        }
    if reported is not None:
        shown["usage_reported"] = reported
    shown = {name: value for name, value in shown.items() if value is not None}
    if not shown:
        return None
    text = _dump(shown)
    if len(text) > EVIDENCE_LIMIT and "field_details" in shown:
        details, room = shown["field_details"], EVIDENCE_LIMIT - len(text)
        dropped = 0
        while details and room < _LEFT_OUT_SIZE:
            dropped += 1
            room += len(_dump(details.pop())) + 1
        shown["field_details_left_out"] = dropped
        text = _dump({name: value for name, value in shown.items() if value != []})
    return text


def _dump(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode("utf-8")
