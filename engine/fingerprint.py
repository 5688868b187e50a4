"""The fingerprint: equal for breaks of one cause, whatever session, place, length or text.

What goes in: kinds, class, shape of the pointer, names of what changed. What stays out: indices,
counts, values, and which of several volatile things (a time, a number, an identifier) it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine import digests
from engine.model import DivergenceClass, Evidence, Nature

_VOLATILE = frozenset({Nature.TIME, Nature.NUMBER, Nature.IDENTIFIER})
_OF_LENGTH = frozenset({Nature.SHORTENED, Nature.LENGTHENED, Nature.REWRITTEN, Nature.TYPE})


def of(key: bytes, evidence: Evidence) -> str:
    """Of all that the evidence tells but the fingerprint itself."""
    parts = [*_of_items(evidence)]
    for name in sorted(evidence.changed_fields):
        parts += ["field", name]
    for shape in sorted({"\0".join(_of_field(detail)) for detail in evidence.field_details}):
        parts += ["detail", shape]
    return digests.mac(key, "fingerprint", *parts, size=8).hex()


def _of_items(evidence: Evidence) -> Sequence[str]:
    before, now = evidence.kind_before or "", evidence.kind_now or ""
    match evidence.klass:
        case None:
            return ()
        case DivergenceClass.EDITED:
            shape = _shape(evidence.path or "")
            return (evidence.klass, before, now, shape, _coarse(evidence.nature))
        case DivergenceClass.TRUNCATED_HEAD | DivergenceClass.TRUNCATED_TAIL:
            return (evidence.klass,)
        case DivergenceClass.REMOVED:  # what came up into its place is not the cause
            return (evidence.klass, before)
        case DivergenceClass.INSERTED:
            return (evidence.klass, now)
        case DivergenceClass.REORDERED:
            return (evidence.klass, *sorted((before, now)))
        case _:
            return (evidence.klass, before, now)


def _shape(path: str) -> str:
    return "/".join("*" if step.isdigit() else step for step in path.split("/"))


def _coarse(nature: str | None) -> str:
    if nature in _VOLATILE:
        return "volatile"
    return "" if nature is None or nature in _OF_LENGTH else nature


def _of_field(detail: Mapping[str, Any]) -> Iterator[str]:
    for name in ("field", "change", "name"):
        yield str(detail.get(name, ""))
    yield _shape(detail.get("path", ""))
    yield _coarse(detail.get("nature"))
