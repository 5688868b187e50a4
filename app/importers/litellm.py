"""Spend logs of LiteLLM: what ``/spend/logs?summarize=false`` answers, or a dump of its table, as
JSON or as CSV.

A row of the table is a call. ``prompt_tokens`` counts what was cached; the rest of the usage is in
``metadata``. ``cache_hit`` is about LiteLLM's own cache of whole answers, which asks no provider.
``messages``, ``response`` and ``proxy_server_request`` may hold all that was said, and are passed
over without being decoded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw

from app.importers import json_values
from app.importers.csv_cells import header, words
from app.importers.foreign import chain_of, host_of, milliseconds, row_of
from app.importers.importer import Importer, Item, Remark, Skipped
from app.importers.json_lines import count, decoded, inner, text
from app.importers.lines import BOM, Line, from_first
from app.importers.own_csv import named
from app.importers.own_row import NO_TIME
from app.ledger.rows import TurnRow
from engine.model import Kind, Status, Usage, UsageState

NAME = "litellm"
_IDENTIFYING = frozenset({"request_id", "startTime", "prompt_tokens"})
_BEGINNING = 4_096
"""Bytes of a record, its content aside, that have these names."""
OWN_CACHE = "was answered from LiteLLM's own cache: no provider was asked"
NO_GENERATION = "is of a call that generates nothing"
OWN_SESSIONS = (
    "Each request has a session of its own, as LiteLLM makes them up where clients name none: what "
    "became of the cache cannot be told."
)
_COMPACTIONS = frozenset({"compact_responses", "acompact_responses"})
_GENERATIONS = _COMPACTIONS | {
    "completion", "acompletion", "text_completion", "atext_completion",
    "responses", "aresponses", "_aresponses_websocket",
    "anthropic_messages", "aanthropic_messages",
    "generate_content", "agenerate_content",
    "generate_content_stream", "agenerate_content_stream",
    "pass_through_endpoint", "llm_passthrough_route", "allm_passthrough_route",
}  # fmt: skip
"""Values of ``call_type``. Others are of embeddings, pictures, batches, lists of files."""
_MANAGED = re.compile(r"litellm:custom_llm_provider:.*;response_id:(.+)", re.DOTALL)
_WATCHED = 200
"""Rows after which it is known that sessions do not come again."""
_MISSING = Raw(b"")


class _Spend(msgspec.Struct):
    """A row of the table, as far as it is read."""

    request_id: Any = None
    litellm_call_id: Any = None
    call_type: Any = None
    started: Any = msgspec.field(name="startTime", default=None)
    answered: Any = msgspec.field(name="completionStartTime", default=None)
    ended: Any = msgspec.field(name="endTime", default=None)
    model: Any = None
    model_group: Any = None
    api_base: Any = None
    custom_llm_provider: Any = None
    session_id: Any = None
    prompt_tokens: Any = None
    completion_tokens: Any = None
    cache_hit: Any = None
    status: Any = None
    metadata: Raw = _MISSING


class _Metadata(msgspec.Struct):
    status: Any = None
    usage_object: Any = None
    additional_usage_values: Any = None
    error_information: Raw = _MISSING


class _Error(msgspec.Struct):
    error_code: Any = None
    error_class: Any = None


_spend = msgspec.json.Decoder(_Spend).decode
_metadata = msgspec.json.Decoder(_Metadata)
_error = msgspec.json.Decoder(_Error)
_COLUMNS = frozenset(field.encode_name for field in msgspec.structs.fields(_Spend))
_FIGURES = frozenset({"prompt_tokens", "completion_tokens"})


def recognizes(head: bytes) -> bool:
    first = head.removeprefix(BOM).lstrip()
    if first[:1] not in (b"{", b"["):
        return words(first.split(b"\n", 1)[0]) >= _IDENTIFYING
    return any(
        all(b'"%s"' % name.encode() in found[:_BEGINNING] for name in _IDENTIFYING)
        for found in json_values.first_objects(head)
    )


def read(lines: Iterable[Line]) -> Iterator[Item]:
    source = from_first(lines)
    first = next(source, Line(1, b""))
    is_json = first.too_long or first.data.removeprefix(BOM).lstrip()[:1] == b"{"
    found = decoded(chain([first], source), _spend) if is_json else _of_csv(first, source)
    sessions: set[str] = set()
    rows = 0
    for one in found:
        item = one if isinstance(one, Skipped) else _item(*one)
        yield item
        if isinstance(item, TurnRow):
            rows += 1
            if rows <= _WATCHED:
                sessions.add(item.session or str(rows))
    if rows > 1 and len(sessions) == min(rows, _WATCHED):
        yield Remark(OWN_SESSIONS)


def _of_csv(first: Line, source: Iterator[Line]) -> Iterator[tuple[int, _Spend] | Skipped]:
    names = header(first, _IDENTIFYING)
    for record in named(names, source):
        if isinstance(record, Skipped):
            yield record
            continue
        number, cells = record
        told: dict[str, Any] = {name: cells[name] for name in names if name in _COLUMNS}
        told |= {name: int(told[name]) for name in _FIGURES if _is_figure(told.get(name))}
        told["metadata"] = Raw(told.get("metadata", "").encode())
        yield number, msgspec.convert(told, _Spend)


def _is_figure(cell: str | None) -> bool:
    return cell is not None and cell.isascii() and cell.isdigit() and len(cell) < 19


def _item(number: int, spend: _Spend) -> TurnRow | Skipped:
    call = text(spend.call_type)
    started_at, ended_at = _time(spend.started), _time(spend.ended)
    if started_at is None:
        return Skipped(number, NO_TIME, "startTime")
    if str(spend.cache_hit).lower() == "true":
        return Skipped(number, OWN_CACHE)
    if call is not None and call not in _GENERATIONS:
        return Skipped(number, NO_GENERATION)
    ended_at = started_at if ended_at is None else max(started_at, ended_at)
    answered_at = _time(spend.answered)
    # What was not streamed has the time of its end here.
    streamed = answered_at is not None and started_at <= answered_at < ended_at
    metadata = _inner(spend.metadata, _metadata) or _Metadata()
    usage = inner(metadata.additional_usage_values) | {
        name: value for name, value in inner(metadata.usage_object).items() if value is not None
    }
    failed = "failure" in (spend.status, metadata.status)
    session = text(spend.session_id)
    return row_of(
        NAME,
        _identity(spend),
        started_at=started_at,
        ended_at=ended_at,
        usage=_usage(spend, usage),
        ttft_ms=answered_at - started_at if streamed and answered_at is not None else None,
        duration_ms=ended_at - started_at,
        kind=str(Kind.COMPACTION) if call in _COMPACTIONS else None,
        session=session,
        chain=None if session is None else chain_of(NAME, session),
        upstream=host_of(spend.api_base) or text(spend.custom_llm_provider),
        model=text(spend.model) or text(spend.model_group),
        service_tier=text(usage.get("service_tier")),
        response_id=None if failed else _response_id(spend),
        **(_failure(_inner(metadata.error_information, _error) or _Error()) if failed else {}),
    )


def _identity(spend: _Spend) -> tuple[str | int | None, ...]:
    """The table's key. Old versions wrote the word None where they had none."""
    known = text(spend.request_id)
    if known is not None and known != "None":
        return ("request", known)
    figures = (count(spend.prompt_tokens), count(spend.completion_tokens))
    return ("values", _time(spend.started), _time(spend.ended), text(spend.model), *figures)


def _response_id(spend: _Spend) -> str | None:
    """The provider's id of the response: LiteLLM wraps those of the Responses API, and has its own
    where the provider gave none."""
    told = text(spend.request_id)
    if told in (None, "None", text(spend.litellm_call_id)):
        return None
    assert told is not None
    try:
        plain = base64.b64decode(told.removeprefix("resp_"), validate=True).decode()
    except ValueError:
        return told
    wrapped = _MANAGED.fullmatch(plain)
    return wrapped[1] if wrapped else told


def _usage(spend: _Spend, told: Mapping[str, Any]) -> Usage:
    """Zero without a word on its parts is what LiteLLM writes where it knows nothing."""
    given, out = count(spend.prompt_tokens), count(spend.completion_tokens)
    if not told and not given and not out:
        return Usage()
    details = inner(told.get("prompt_tokens_details")) or inner(told.get("input_tokens_details"))
    cached = _greatest(told.get("cache_read_input_tokens"), details.get("cached_tokens"))
    written = _greatest(
        told.get("cache_creation_input_tokens"),
        details.get("cache_write_tokens"),
        details.get("cache_creation_tokens"),
    )
    lengths = inner(details.get("cache_creation_token_details"))
    outs = inner(told.get("completion_tokens_details")) or inner(told.get("output_tokens_details"))
    parts = (cached or 0) + (written or 0)
    if given is not None and parts > given and "cache_read_input_tokens" in told:
        given += parts  # versions that took the figure of Anthropic as it is, without the cache
    return Usage(
        input_tokens=given,
        cached_tokens=cached,
        cache_write_tokens=written,
        cache_write_long_tokens=count(lengths.get("ephemeral_1h_input_tokens")),
        output_tokens=out,
        reasoning_tokens=count(outs.get("reasoning_tokens")),
        state=UsageState.REPORTED,
    )


def _greatest(*values: Any) -> int | None:
    return max((known for value in values if (known := count(value)) is not None), default=None)


def _failure(error: _Error) -> dict[str, Any]:
    """The words that name an error; what it says stays out."""
    code = str(error.error_code)
    status = int(code) if _is_figure(code) and 100 <= int(code) < 600 else None
    return {
        "status": str(Status.RATE_LIMITED if status == 429 else Status.ERROR),
        "http_status": status,
        "error_code": text(error.error_class) or (text(error.error_code) if not status else None),
    }


def _inner(raw: Raw, decoder: msgspec.json.Decoder[Any]) -> Any:
    """An object, or one that is written as a text; None where there is none."""
    data = bytes(raw)
    try:
        if data.startswith(b'"'):
            data = msgspec.json.decode(data, type=str).encode()
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _time(value: Any) -> int | None:
    """The table's times are UTC, and do not always say so."""
    told = text(value)
    if told is None:
        return None
    found = milliseconds(told)
    return milliseconds(told + "Z") if found is None else found


LITELLM = Importer(NAME, "spend logs of LiteLLM", recognizes, read, split=json_values.split)
