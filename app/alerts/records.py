"""Memories and readings as plain values, for the database and the API.

Reading is strict: what was not written here is refused, never mended. An alert that was told must
not be forgotten because a field had another name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from app.alerts.signals import Lack, Measure, Reading
from app.alerts.states import Memory, State, Told


@dataclass(frozen=True, slots=True)
class Observation:
    """A reading and the window it is of; times in epoch milliseconds."""

    reading: Reading
    at: int
    """The instant of the evaluation."""
    window_start: int
    window_end: int


def memory_to_dict(memory: Memory) -> dict[str, Any]:
    return {
        "state": memory.state.value,
        "since": memory.since,
        "pending_since": memory.pending_since,
        "clear_since": memory.clear_since,
        "started_at": memory.started_at,
        "ended_at": memory.ended_at,
        "absence": memory.absence,
        "peak": _finite("peak", memory.peak),
        "absent": memory.absent,
        "resume": None if memory.resume is None else memory.resume.value,
        "told": None if memory.told is None else memory.told.value,
        "told_at": memory.told_at,
        "told_times": memory.told_times,
        "hushed": memory.hushed,
    }


def memory_from_dict(values: Mapping[str, Any]) -> Memory:
    """Raises ``ValueError`` for anything that ``memory_to_dict`` did not write."""
    _same_names(values, [field.name for field in fields(Memory)])
    return Memory(
        state=State(values["state"]),
        since=_optional_whole(values, "since"),
        pending_since=_optional_whole(values, "pending_since"),
        clear_since=_optional_whole(values, "clear_since"),
        started_at=_optional_whole(values, "started_at"),
        ended_at=_optional_whole(values, "ended_at"),
        absence=_flag(values, "absence"),
        peak=_optional_number(values, "peak"),
        absent=_whole(values, "absent"),
        resume=None if values["resume"] is None else State(values["resume"]),
        told=None if values["told"] is None else Told(values["told"]),
        told_at=_optional_whole(values, "told_at"),
        told_times=_whole(values, "told_times"),
        hushed=_flag(values, "hushed"),
    )


_COUNTS = ("rows", "part", "whole", "turns", "unknown")


def reading_to_dict(
    reading: Reading, *, at: int, window_start: int, window_end: int
) -> dict[str, Any]:
    """Without the samples of ``ttft_p95``: they are in the ledger, and the value is made."""
    return {
        "at": at,
        "window_start": window_start,
        "window_end": window_end,
        "value": _finite("value", reading.value),
        "bound": _finite("bound", reading.bound),
        "lack": None if reading.lack is None else reading.lack.value,
        **{name: getattr(reading.measure, name) for name in _COUNTS},
    }


def reading_from_dict(values: Mapping[str, Any]) -> Observation:
    """Raises ``ValueError`` for anything that ``reading_to_dict`` did not write."""
    times = ("at", "window_start", "window_end")
    _same_names(values, [*times, "value", "bound", "lack", *_COUNTS])
    rows, part, whole, turns, unknown = (_whole(values, name) for name in _COUNTS)
    reading = Reading(
        Measure(rows, part, whole, turns, unknown),
        _optional_number(values, "value"),
        _optional_number(values, "bound"),
        None if values["lack"] is None else Lack(values["lack"]),
    )
    at, start, end = (_whole(values, name) for name in times)
    return Observation(reading, at, start, end)


def _same_names(values: Mapping[str, Any], names: list[str]) -> None:
    if set(values) != set(names):
        different = sorted(set(values) ^ set(names))
        raise ValueError(f"these fields are missing or unknown: {', '.join(different)}")


def _finite(name: str, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{name} is no finite number")
    return value


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is no whole number")  # noqa: TRY004  (one kind for all faults)
    return value


def _optional_whole(values: Mapping[str, Any], name: str) -> int | None:
    return None if values[name] is None else _whole(values, name)


def _optional_number(values: Mapping[str, Any], name: str) -> float | None:
    value = values[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is no number")  # noqa: TRY004
    return _finite(name, float(value))


def _flag(values: Mapping[str, Any], name: str) -> bool:
    value = values[name]
    if not isinstance(value, bool):
        raise ValueError(f"{name} is neither true nor false")  # noqa: TRY004
    return value
