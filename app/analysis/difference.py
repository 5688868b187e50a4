"""What differs between a turn and the one that it goes on from, in plain words.

Only what the ledger holds is told: names, numbers and whether digests are equal. Where one side is
not known, nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.analysis.cache_life import retention_of
from app.analysis.lanes import ALIVE, GONE, MAY_BE_GONE, gap
from app.ledger.rows import TurnRow

NAMED: dict[str, str] = {
    "model": "model",
    "reasoning_effort": "reasoning effort",
    "service_tier": "service tier",
    "client": "client",
    "client_version": "client version",
    "upstream": "upstream",
    "prompt_cache_key": "cache key",
    "gateway_version": "version of Warmline",
}
"""Columns whose values are told."""
DIGESTS: dict[str, str] = {
    "tools_digest": "The set of tools changed.",
    "instructions_digest": "The instructions changed.",
    "tenant": "Another credential was used.",
}
"""Columns of which only it is told that they changed."""


@dataclass(frozen=True, slots=True)
class Difference:
    about: str
    """``fields``, ``connection``, ``epoch``, ``gap``, ``items`` or ``tokens``."""
    sentence: str
    notable: bool = False
    """What may have cost the cache or the continuation."""


def differences(before: TurnRow, row: TurnRow) -> list[Difference]:
    """In the order in which one asks: what was asked for, over what, when, and how much."""
    return [*_fields(before, row), *_place(before, row), *_gap(before, row), *_amounts(before, row)]


def _fields(before: TurnRow, row: TurnRow) -> Iterator[Difference]:
    for column, name in NAMED.items():
        was, now = getattr(before, column), getattr(row, column)
        if was is not None and now is not None and was != now:
            yield Difference("fields", f"The {name} changed from {was} to {now}.", notable=True)
    for column, sentence in DIGESTS.items():
        was, now = getattr(before, column), getattr(row, column)
        if was is not None and now is not None and was != now:
            yield Difference("fields", sentence, notable=True)
    if row.changed_fields:
        names = ", ".join(row.changed_fields.split(","))
        yield Difference("fields", f"Fields that Warmline saw change: {names}.", notable=True)


def _place(before: TurnRow, row: TurnRow) -> Iterator[Difference]:
    if before.connection and row.connection and before.connection != row.connection:
        yield Difference("connection", "It went over another connection.", notable=True)
    if before.mode and row.mode and before.mode != row.mode:
        yield Difference("connection", f"The mode went from {before.mode} to {row.mode}.")
    if before.chain and row.chain and before.chain != row.chain:
        yield Difference("connection", "It began another chain.")
    if row.epoch_reset_reason:
        yield Difference("epoch", f"The epoch was reset: {row.epoch_reset_reason}.", notable=True)


def _gap(before: TurnRow, row: TurnRow) -> Iterator[Difference]:
    found, retention = gap(before, row), retention_of(before)
    if found is None:
        return
    if row.started_at < before.ended_at:
        yield Difference("gap", "It began before the other had ended.")
        return
    said = f"It began {_time(found.length)} after the other had ended"
    if found.life == GONE:
        said += f"; by then a cache is gone, {_time(retention.hard)} at the latest"
    elif found.life == MAY_BE_GONE:
        said += f"; a cache is sure to live {_time(retention.soft)} only"
    else:
        said += f", within the {_time(retention.soft)} that a cache lives"
    yield Difference("gap", f"{said}.", notable=found.life != ALIVE)


def _amounts(before: TurnRow, row: TurnRow) -> Iterator[Difference]:
    if before.items_total is not None and row.items_total is not None:
        more = row.items_total - before.items_total
        change = f"{abs(more):,} {'fewer' if more < 0 else 'more'}" if more else "as many"
        sentence = f"Its full input has {_counted(row.items_total, 'item')}, {change}."
        yield Difference("items", sentence, notable=more < 0)
    if before.input_tokens is not None and row.input_tokens is not None:
        yield Difference(
            "tokens", f"Input went from {before.input_tokens:,} to {row.input_tokens:,} tokens."
        )
    was, now = _cached(before), _cached(row)
    if was is not None and now is not None:
        worse = now < was - 0.1
        sentence = f"Cached were {was:.0%} of the input before and {now:.0%} now."
        yield Difference("tokens", sentence.replace("%", " %"), notable=worse)
    if row.missed_tokens:
        sentence = f"{row.missed_tokens:,} tokens could have been read from the cache and were not."
        yield Difference("tokens", sentence, notable=True)


def _cached(row: TurnRow) -> float | None:
    if not row.input_tokens or row.cached_tokens is None:
        return None
    return row.cached_tokens / row.input_tokens


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _time(ms: int) -> str:
    """ "340 ms", "12 s", "3 min 5 s", "2 h", "1 h 10 min"."""
    if ms < 1_000:
        return f"{ms} ms"
    seconds = ms // 1_000
    for whole, part, size in (("h", "min", 3_600), ("min", "s", 60)):
        if seconds >= size:
            rest = seconds % size // (60 if size == 3_600 else 1)
            return f"{seconds // size} {whole}" + (f" {rest} {part}" if rest else "")
    return f"{seconds} s"
