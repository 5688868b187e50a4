"""Rows of every kind, for properties."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from app.ledger.rows import TurnRow
from engine.model import Kind, Mode, Reason, Status
from tests.support.rows import make_row

_numbers = itertools.count(1)


def new_source() -> str:
    """A source that no other example has used: it selects the rows of one example."""
    return f"import:example-{next(_numbers)}"


@st.composite
def rows(draw: st.DrawFn, *, start: int, end: int, source: str, most: int = 30) -> list[TurnRow]:
    """Rows that started in ``[start, end)``; modes, reasons and usage may be unknown."""
    return [
        make_row(
            turn_id=f"{source}/{number}",
            source=source,
            started_at=draw(st.integers(start, end - 1)),
            session=draw(st.sampled_from(["a", "b", "c"])),
            model=draw(st.sampled_from(["gpt-5.6-sol", "gpt-5.6", None])),
            kind=draw(st.sampled_from([*map(str, Kind), "generation", "generation"])),
            status=draw(st.sampled_from([*map(str, Status), "completed", "completed"])),
            mode=draw(st.sampled_from([*map(str, Mode), None])),
            reason=draw(st.sampled_from([*map(str, Reason), None, "prefix_mismatch"])),
            eligible=draw(st.booleans()),
            ttft_ms=draw(st.none() | st.integers(1, 90_000).map(lambda n: n / 8)),
            **draw(_usage()),
        )
        for number in range(draw(st.integers(0, most)))
    ]


@st.composite
def _usage(draw: st.DrawFn) -> dict[str, int | str | None]:
    if draw(st.booleans()):
        names = ("input_tokens", "cached_tokens", "output_tokens")
        return dict.fromkeys(names) | {"usage_state": "missing"}
    given = draw(st.integers(0, 10**6))
    cached = draw(st.none() | st.integers(0, given))
    written = None if cached is None else draw(st.none() | st.integers(0, given - cached))
    return {
        "input_tokens": given,
        "cached_tokens": cached,
        "cache_write_tokens": written,
        "output_tokens": draw(st.none() | st.integers(0, 10_000)),
    }
