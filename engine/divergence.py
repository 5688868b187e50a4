"""Where two transcripts part, told without any content (DESIGN 4.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Raw

from engine import fingerprint, freezable, freezing, items
from engine.alignment import Alignment, align
from engine.baseline import Behind
from engine.chain import HeldItem
from engine.field_divergence import FIELDS, KEYS, describe_fields, field_name, tools
from engine.freezing import Keys
from engine.held import Digested
from engine.model import DivergenceClass, Evidence, is_metadata
from engine.nature import first_difference
from engine.places import Place, Teller, value_at
from engine.reading import Reader

# Names that the protocol gives; any other key is the user's and appears as a digest.
_PROTOCOL_KEYS = frozenset(
    {"action", "actions", "annotations", "arguments", "call_id", "code", "content", "detail"}
    | {"encrypted_content", "error", "file_data", "file_id", "file_url", "filename", "id"}
    | {"image_url", "input", "input_audio", "logprobs", "metadata", "name", "namespace"}
    | {"operation", "output", "outputs", "phase", "prompt_cache_breakpoint", "queries", "query"}
    | {"refusal", "result", "results", "role", "server_label", "sources", "status", "summary"}
    | {"text", "tools", "type"}
)
_DEFINITIONS = frozenset({"additional_tools", "mcp_list_tools"})
_LEADING = _DEFINITIONS | {"message:system", "message:developer"}
_NEAR = 4
"""How far an edited item is looked for behind others that were dropped or put in."""
_NO_FIELDS: Mapping[str, Raw] = {}


def describe(
    baseline: Sequence[HeldItem],
    request: Sequence[Raw],
    index: int,
    *,
    key: bytes,
    visible_keys: Sequence[str] = (),
    freeze: Keys = (),
    changed: Sequence[str] = (),
    fields: tuple[Mapping[str, Raw], Mapping[str, Raw]] = (_NO_FIELDS, _NO_FIELDS),
    read: Reader = items.parse,
) -> Evidence:
    """Evidence for a request that repeats ``index`` items of the baseline and then parts from it.

    With ``index`` at the baseline's end nothing parted; the evidence then tells of the fields only.
    ``fields`` are those of the baseline and of the request, ``changed`` the names that differ.
    ``freeze`` is that of the policy: outputs are told without what it ignores.
    """
    of_fields = Teller(key, FIELDS | KEYS | set(visible_keys))
    evidence = Evidence(
        length_before=len(baseline),
        length_now=len(request),
        changed_fields=tuple(field_name(name, of_fields) for name in changed),
        field_details=describe_fields(*fields, changed, of_fields),
    )
    if index < len(baseline):
        teller = Teller(key, _PROTOCOL_KEYS | set(visible_keys))
        try:
            evidence = _of_items(
                evidence, baseline, request, index, teller, seen=_Seen(freeze, read)
            )
            edited = evidence.klass is DivergenceClass.EDITED and baseline[index].is_whole
            if edited and evidence.kind_before in _DEFINITIONS:
                definitions = _definitions(baseline[index], request[index], index, of_fields)
                evidence = replace(evidence, field_details=(*evidence.field_details, *definitions))
        except RecursionError:  # nested too deeply to be compared: this much is certain
            evidence = replace(evidence, index=index, klass=DivergenceClass.REPLACED)
    return replace(evidence, fingerprint=fingerprint.of(key, evidence))


def _of_items(
    evidence: Evidence,
    baseline: Sequence[HeldItem],
    request: Sequence[Raw],
    index: int,
    teller: Teller,
    *,
    seen: _Seen,
) -> Evidence:
    before = baseline[index]
    now = request[index] if index < len(request) else None
    sent = seen(now)
    found = _judge(Behind(baseline, index), request[index:], seen)
    klass = found.klass
    if klass is DivergenceClass.REMOVED and _is_head(baseline, index, found.gone):
        klass = DivergenceClass.TRUNCATED_HEAD
    evidence = replace(
        evidence,
        index=index,
        kind_before=items.kind(seen(before.held)) if before.is_whole else before.kind,
        kind_now=None if now is None else items.kind(sent),
        klass=klass,
        items_gone=found.gone,
        items_new=found.new,
        further=found.further,
    )
    if isinstance(before, Digested):
        return _with_digests(evidence, before, now)
    held = seen(before.held)
    comparable = klass is DivergenceClass.EDITED or (
        klass is DivergenceClass.REPLACED and evidence.kind_before == evidence.kind_now
    )
    if now is not None and comparable:
        where = before.difference(now, seen.freeze, seen.read) or ()
        told = _with_place(evidence, teller.place(held, sent, where))
        if not any(map(is_metadata, (told.path or "").split("/")[2:])):
            return told
        keys = freezable.keys(baseline[index:], request[index:], teller, seen.freeze)
        return replace(told, freezable=keys)
    return replace(
        evidence,
        digest_before=_whole(teller, held, before.held),
        digest_now=None if now is None else _whole(teller, sent, now),
    )


def _with_digests(evidence: Evidence, before: Digested, now: Raw | None) -> Evidence:
    """Of an item whose bytes are not kept: lengths in bytes, and digests of the bytes."""
    return replace(
        evidence,
        value_length_before=before.length,
        value_length_now=None if now is None else len(now),
        digest_before=before.digest[:8].hex(),
        digest_now=None if now is None else before.digest_of(now)[:8].hex(),
    )


def _with_place(evidence: Evidence, place: Place) -> Evidence:
    return replace(
        evidence,
        path=place.path or None,
        offset=place.offset,
        line=place.line,
        nature=place.nature,
        value_length_before=place.length_before,
        value_length_now=place.length_now,
        digest_before=place.digest_before,
        digest_now=place.digest_now,
    )


def _whole(teller: Teller, value: Any, raw: Raw) -> str | None:
    """Of an item that cannot be read, its bytes stand for it."""
    return teller.digest(bytes(raw).decode("utf-8", "replace") if value is None else value)


def decoded(raw: Raw | None, read: Reader = items.parse) -> Any:
    """The value; None for what is not there or cannot be read without guessing."""
    if raw is None:
        return None
    try:
        return read(raw)
    except (ValueError, RecursionError):
        return None


class _Seen:
    """Items without what a policy ignores in them, each read once."""

    def __init__(self, freeze: Keys, read: Reader) -> None:
        self.freeze, self.read = freeze, read
        self._read: dict[int, tuple[Raw, Any]] = {}

    def __call__(self, raw: Raw | None) -> Any:
        if raw is None:
            return None
        known = self._read.get(id(raw))
        if known is None:
            known = self._read[id(raw)] = raw, freezing.seen(decoded(raw, self.read), self.freeze)
        return known[1]


@dataclass(frozen=True, slots=True)
class _Finding:
    klass: DivergenceClass
    gone: int | None
    new: int | None
    further: bool = False


def _judge(before: Sequence[HeldItem], now: Sequence[Raw], seen: _Seen) -> _Finding:
    """What happened at the first item that differs; both sequences begin with it."""
    if not now:
        return _Finding(DivergenceClass.TRUNCATED_TAIL, len(before), 0)
    met = align(before, now, seen.freeze)
    if met.reordered:
        return _Finding(DivergenceClass.REORDERED, met.gone, met.new, met.further)
    if not met.met:
        return _never_again(before, now, seen)
    if met.new == 0:
        return _Finding(DivergenceClass.REMOVED, met.gone, 0, met.further)
    if met.gone == 0:
        return _Finding(DivergenceClass.INSERTED, 0, met.new, met.further)
    return _changed(before, now, met, seen)


def _changed(
    before: Sequence[HeldItem], now: Sequence[Raw], met: Alignment, seen: _Seen
) -> _Finding:
    """Items stand in the place of others: are they the same ones with other values?"""
    sameness = _sameness(before[0], now[0], seen)
    if sameness.certain or (sameness.possible and met.gone == met.new):
        several = met.gone > 1 or met.new > 1
        return _Finding(DivergenceClass.EDITED, 1, 1, met.further or several)
    return _Finding(DivergenceClass.REPLACED, met.gone, met.new, met.further)


def _never_again(before: Sequence[HeldItem], now: Sequence[Raw], seen: _Seen) -> _Finding:
    """The two never meet again."""
    sameness = _sameness(before[0], now[0], seen)
    if sameness.certain or (sameness.possible and len(before) == 1):
        return _Finding(DivergenceClass.EDITED, 1, 1, further=len(before) > 1)
    for distance in range(1, _NEAR):
        if distance < len(before) and _sameness(before[distance], now[0], seen).certain:
            return _Finding(DivergenceClass.REMOVED, distance, 0, further=True)
        if distance < len(now) and _sameness(before[0], now[distance], seen).certain:
            return _Finding(DivergenceClass.INSERTED, 0, distance, further=True)
    answers = all(held.model_made for held in before)
    if answers and not items.made_by_model(decoded(now[0])):
        # The client goes on without (the end of) the answer that it was given.
        return _Finding(DivergenceClass.REMOVED, len(before), 0)
    return _Finding(DivergenceClass.REPLACED, len(before), None)


@dataclass(frozen=True, slots=True)
class _Sameness:
    """Whether two items are one and the same with another value."""

    certain: bool = False
    possible: bool = False


def _sameness(before: HeldItem, now: Raw, seen: _Seen) -> _Sameness:
    if not before.is_whole:
        return _Sameness(possible=before.kind == items.kind(decoded(now)))
    held, sent = seen(before.held), seen(now)
    if not isinstance(held, dict) or not isinstance(sent, dict):
        return _Sameness()
    if items.kind(held) != items.kind(sent):
        return _Sameness()
    for name in ("call_id", "id"):
        one, other = held.get(name), sent.get(name)
        if one and other:
            if one == other:
                return _Sameness(certain=True, possible=True)
            return _but_for_names(held, sent, model_made=before.model_made)
    alike = _alike(held, sent, before.difference(now, seen.freeze, seen.read) or ())
    return _Sameness(certain=alike, possible=True)


def _but_for_names(held: dict[str, Any], sent: dict[str, Any], *, model_made: bool) -> _Sameness:
    """Other names on equal contents: the names were made anew."""
    one, other = (
        {key: value for key, value in side.items() if key not in ("id", "call_id")}
        for side in (held, sent)
    )
    same = items.difference(one, other, model_made=model_made) is None
    return _Sameness(certain=same, possible=same)


def _alike(held: Any, sent: Any, where: items.Path) -> bool:
    """Texts that share at least half of the shorter one."""
    one, other = value_at(held, where), value_at(sent, where)
    if not isinstance(one, str) or not isinstance(other, str) or not one or not other:
        return False
    head = first_difference(one, other)
    tail = first_difference(one[head:][::-1], other[head:][::-1])
    return 2 * (head + tail) >= min(len(one), len(other))


def _is_head(baseline: Sequence[HeldItem], index: int, gone: int | None) -> bool:
    """Dropped from the front on, what clients keep there (system messages, tools) apart."""
    if any(held.kind not in _LEADING for held in baseline[:index]):
        return False
    return baseline[index].kind not in _LEADING or (gone or 0) > 1


def _definitions(
    before: HeldItem, now: Raw, index: int, teller: Teller
) -> tuple[Mapping[str, Any], ...]:
    """Definitions that stand in the history: a change in them is told as one of tools."""
    held, sent = decoded(before.held).get("tools"), decoded(now).get("tools")
    if not isinstance(held, list) or not isinstance(sent, list):
        return ()
    return tuple({"field": "tools", "item": index, **each} for each in tools(held, sent, teller))
