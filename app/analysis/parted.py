"""What a row tells of where its turn parted from what was held, as typed values.

Rows also come from imports and from older versions: whatever is not there, or is not of its type,
is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.ledger.rows import TurnRow


@dataclass(frozen=True, slots=True)
class Parted:
    """The evidence of a row (docs/ledger.md, "Evidence")."""

    index: int | None
    kind: str | None
    """Of the item in question: before, or now where it was put in."""
    kind_before: str | None
    kind_now: str | None
    length_before: int | None
    length_now: int | None
    klass: str | None
    path: str | None
    offset: int | None
    line: int | None
    nature: str | None
    value_before: int | None
    """Length of the value."""
    value_now: int | None
    gone: int | None
    new: int | None
    further: bool
    freezable: tuple[str, ...]
    """Keys that would have made the histories the same, had they been frozen."""
    details: tuple[Mapping[str, Any], ...]

    @property
    def is_output(self) -> bool:
        """Whether the item is the output of a tool."""
        return (self.kind or "").endswith("_output")

    @property
    def is_call(self) -> bool:
        return (self.kind or "").endswith("_call")

    @property
    def is_instruction(self) -> bool:
        return self.kind in ("message:system", "message:developer")


def parted(row: TurnRow) -> Parted:
    told = row.evidence_object or {}

    def number(name: str) -> int | None:
        value = told.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def word(name: str) -> str | None:
        value = told.get(name)
        return value if isinstance(value, str) else None

    details, keys = told.get("field_details"), told.get("freezable")
    before, now = word("kind_before"), word("kind_now")
    return Parted(
        index=row.diverged_at if row.diverged_at is not None else number("index"),
        kind=row.diverged_kind or before or now,
        kind_before=before or row.diverged_kind,
        kind_now=now,
        length_before=number("length_before"),
        length_now=number("length_now"),
        klass=row.diverged_class or word("class"),
        path=row.diverged_path or word("path"),
        offset=number("offset"),
        line=number("line"),
        nature=word("nature"),
        value_before=number("value_length_before"),
        value_now=number("value_length_now"),
        gone=number("items_gone"),
        new=number("items_new"),
        further=told.get("further") is True,
        freezable=tuple(
            each for each in (keys if isinstance(keys, list) else ()) if isinstance(each, str)
        ),
        details=tuple(
            each
            for each in (details if isinstance(details, list) else ())
            if isinstance(each, dict)
        ),
    )
