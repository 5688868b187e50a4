"""Where two transcripts part, told without any content, and the fingerprint of the cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from engine import digests, items
from engine.chain import HeldItem
from engine.model import DivergenceClass, Evidence

# Names that the protocol gives; any other key is the user's and appears as a digest.
_PROTOCOL_KEYS = frozenset(
    {"action", "actions", "annotations", "arguments", "call_id", "code", "content", "detail"}
    | {"encrypted_content", "error", "file_data", "file_id", "file_url", "filename", "id"}
    | {"image_url", "input", "input_audio", "logprobs", "metadata", "name", "namespace"}
    | {"operation", "output", "outputs", "phase", "prompt_cache_breakpoint", "queries", "query"}
    | {"refusal", "result", "results", "role", "sources", "status", "summary", "text", "tools"}
    | {"type"}
)
_LOOK_AHEAD = 64
"""How far the rest of one transcript is searched for where it meets the other again."""


def describe(
    baseline: Sequence[HeldItem],
    request: Sequence[Raw],
    index: int,
    *,
    key: bytes,
    visible_keys: Sequence[str] = (),
    changed: Sequence[str] = (),
) -> Evidence:
    """Evidence for a request that repeats ``index`` items of the baseline and then parts from it.

    With ``index`` at the baseline's end nothing parted; the evidence then tells of the fields only.
    """
    before = baseline[index] if index < len(baseline) else None
    now = request[index] if index < len(request) else None
    held, sent = (None if before is None else _decode(before.held)), _decode(now)
    path: str | None = None
    offset: int | None = None
    values: tuple[Any, Any] = (None, None)
    klass = None if before is None else _class(baseline[index:], request[index:])
    if klass is DivergenceClass.REMOVED and index == 0:
        klass = DivergenceClass.TRUNCATED_HEAD
    if before is not None and now is not None and klass is DivergenceClass.EDITED:
        where = before.difference(now) or ()
        values = (_at(held, where), _at(sent, where))
        where, values = _inside_json(where, *values)
        path = _pointer(where, key, visible_keys)
        offset = _offset(*values)
    kind_before = None if before is None else items.kind(held)
    kind_now = None if before is None or now is None else items.kind(sent)
    return Evidence(
        index=None if before is None else index,
        kind_before=kind_before,
        kind_now=kind_now,
        length_before=len(baseline),
        length_now=len(request),
        path=path,
        offset=offset,
        klass=klass,
        value_length_before=_length(values[0]),
        value_length_now=_length(values[1]),
        digest_before=_digest(key, values[0], before.held if before else None),
        digest_now=None if before is None else _digest(key, values[1], now),
        changed_fields=tuple(changed),
        fingerprint=_fingerprint(key, (kind_before, kind_now), path, klass, changed),
    )


def _decode(raw: Raw | None) -> Any:
    if raw is None:
        return None
    try:
        return items.parse(raw)
    except (ValueError, RecursionError):
        return None


def _class(before: Sequence[HeldItem], now: Sequence[Raw]) -> DivergenceClass:
    """What happened at the first item that differs; both sequences begin with it."""
    if not now:
        return DivergenceClass.TRUNCATED_TAIL
    returns = _first(len(before), lambda k: before[k].difference(now[0]) is None)
    appears = _first(len(now), lambda k: before[0].difference(now[k]) is None)
    if returns and appears:
        return DivergenceClass.REORDERED
    if returns:
        return DivergenceClass.REMOVED
    if appears:
        return DivergenceClass.INSERTED
    return DivergenceClass.EDITED if _same_place(before[0], now[0]) else DivergenceClass.REPLACED


def _first(length: int, found: Any) -> int | None:
    return next((k for k in range(1, min(length, _LOOK_AHEAD)) if found(k)), None)


def _same_place(before: HeldItem, now: Raw) -> bool:
    """The same item with another value: same kind, and no name of its own that says otherwise."""
    held, sent = _decode(before.held), _decode(now)
    if (
        not isinstance(held, dict)
        or not isinstance(sent, dict)
        or items.kind(held) != items.kind(sent)
    ):
        return False
    return all(
        held.get(name) is None or sent.get(name) is None or held[name] == sent[name]
        for name in ("id", "call_id")
    )


def _at(value: Any, where: items.Path) -> Any:
    for step in where:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _inside_json(where: items.Path, held: Any, now: Any) -> tuple[items.Path, tuple[Any, Any]]:
    """Tool outputs and arguments are often JSON in a string: tell the place inside it."""
    if isinstance(held, str) and isinstance(now, str):
        try:
            one, other = items.parse(held), items.parse(now)
            inner = items.plain_difference(one, other) or ()
        except (ValueError, RecursionError):
            return where, (held, now)
        if isinstance(one, dict) and isinstance(other, dict):
            return (*where, *inner), (_at(one, inner), _at(other, inner))
    return where, (held, now)


def _pointer(where: items.Path, key: bytes, visible_keys: Sequence[str]) -> str:
    shown = _PROTOCOL_KEYS | set(visible_keys)
    steps = (
        str(step)
        if isinstance(step, int) or step in shown
        else "~" + digests.mac(key, "key", step, size=4).hex()
        for step in where
    )
    return "".join("/" + step for step in steps)


def _offset(before: Any, now: Any) -> int | None:
    if not isinstance(before, str) or not isinstance(now, str):
        return None
    pairs = zip(before, now, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(now)))


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, str | list | dict) else None


def _digest(key: bytes, value: Any, whole: Raw | None) -> str | None:
    if isinstance(value, str):
        return digests.mac(key, value, size=8).hex()
    return None if whole is None else digests.mac(key, whole, size=8).hex()


def _fingerprint(
    key: bytes,
    kinds: tuple[str | None, str | None],
    path: str | None,
    klass: DivergenceClass | None,
    changed: Sequence[str],
) -> str:
    """One cause, one fingerprint: no content and no index is in it (DESIGN 4.4)."""
    shape = "/".join("*" if step.isdigit() else step for step in (path or "").split("/"))
    return digests.mac(
        key, "fingerprint", *(kind or "" for kind in kinds), shape, klass or "", *changed, size=8
    ).hex()
