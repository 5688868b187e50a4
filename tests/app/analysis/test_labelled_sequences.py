"""Sequences that others have published with what they took them for, judged by our rules.

``tests/samples/labelled_sequences.csv`` has what was read from the cache in three turns that follow
each other, the input of the second where it is known, and the class. What is not in it is the least
that the figures allow: the turn before read all that it could, and the history grows by little.
"""

import csv
import re
from pathlib import Path

import pytest

from app.analysis.verdicts import LOSSES, Grade, Verdict, judge
from app.ledger.rows import TurnRow
from tests.support.rows import START_MS, make_row

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "labelled_sequences.csv"
SECONDS = {"s": 1, "min": 60}
SEQUENCES = {
    f"{row['source'].split()[0]} {row['case']}": row
    for row in csv.DictReader(SAMPLES.read_text("utf-8").splitlines())
}
CLASSES = {
    "cold_start_continuation": Verdict.COLD_CONTINUATION,
    "loss/one_off_full": Verdict.ONE_OFF_FULL,
    "loss/one_off_full_to_baseline": Verdict.ONE_OFF_FULL,
    "loss/one_off_partial": Verdict.ONE_OFF_PARTIAL,
    "loss/persistent": Verdict.PERSISTENT,
    "loss/pinned_floor": Verdict.PINNED_FLOOR,
    "loss/idle_expired_possible": Verdict.IDLE,
}
DISAGREEMENTS = {
    "dpclark4/frugal-tokens 001": (
        Verdict.ONE_OFF_FULL,
        "The wire that was used does not make a cache cold, and nothing else is known of it.",
    ),
    "dpclark4/frugal-tokens 002": (
        Verdict.SHORTFALL,
        "It misses 1,024 tokens of what is proven to have been there: that is within the slack.",
    ),
    "AcidicSoil/codex-session-view 21:32:58": (
        Verdict.SHORTFALL,
        "It misses 1,024 tokens of what is proven to have been there: that is within the slack.",
    ),
}
"""What we say instead, and why (docs/verdicts.md)."""


def rows_of(sequence: dict[str, str]) -> tuple[list[TurnRow], str]:
    """The turns, and the id of the one that the class is of."""
    before, read = int(sequence["c_prev"]), int(sequence["c_this"])
    word, baseline = label(sequence)
    given = int(sequence["input_this"] or max(before, read, 1_200) + 400)
    if word == "loss/pinned_floor":  # published as short of the input by far
        given = max(given, 60_000)
        figures = [(given, before)]
    elif word == "cold_start_continuation":
        figures = [(given - 200, before)]
    else:
        figures = [(baseline + 1_200, baseline), (before + 200, before)]
    figures.append((given, read))
    place = len(figures) - 1
    if sequence["c_next"]:
        after = int(sequence["c_next"])
        figures.append((max(after, given, before) + 600, after))
    at, rows = START_MS, []
    for number, (tokens, cached) in enumerate(figures):
        at += pause(sequence) if number == place else 3_000
        rows.append(
            make_row(
                turn_id=f"t{number}",
                started_at=at,
                ended_at=at,
                model=sequence["model"].split("|")[0] or None,
                input_tokens=tokens,
                cached_tokens=cached,
                cache_write_tokens=None,
                fingerprint=None,
                **wire(sequence),
            )
        )
    return rows, f"t{place}"


def label(sequence: dict[str, str]) -> tuple[str, int]:
    """The class, and the tokens that it says were read again."""
    found = re.match(r"([a-z_/]+)(?:\((\d+)\))?", sequence["expected_class"])
    assert found is not None
    return found[1], int(found[2] or 0)


def pause(sequence: dict[str, str]) -> int:
    found = re.search(r"(\d+) (s|min)", sequence["gap_note"])
    return 1_000 * (int(found[1]) * SECONDS[found[2]] if found else 3)


def wire(sequence: dict[str, str]) -> dict[str, str | None]:
    """Only an increment proves its prefix."""
    proven = sequence["transport"] == "ws_incremental"
    return {"mode": "ws_incremental", "reason": "ok"} if proven else {"mode": None, "reason": None}


def test_all_that_was_published_is_here():
    assert 29 == len(SEQUENCES)
    assert DISAGREEMENTS.keys() <= SEQUENCES.keys()


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_published_sequence_is_what_it_was_taken_for_or_we_say_why_not(name):
    sequence = SEQUENCES[name]
    rows, turn = rows_of(sequence)
    judged = judge(rows)[turn]
    ours, _why = DISAGREEMENTS.get(name, (None, None))
    theirs = CLASSES.get(label(sequence)[0])
    assert (ours or theirs) == judged.verdict
    assert ours != theirs, "a disagreement that is none"
    assert (judged.verdict in LOSSES) == bool(judged.missed)


def test_a_dip_is_the_providers_only_where_the_prefix_was_proven():
    grades = {
        (sequence["transport"], judged.grade)
        for sequence in SEQUENCES.values()
        for judged in judge(rows_of(sequence)[0]).values()
        if judged.verdict in (Verdict.ONE_OFF_FULL, Verdict.ONE_OFF_PARTIAL)
    }
    assert {
        ("ws_incremental", Grade.PROVEN),
        ("unknown", Grade.POSSIBLE),
        ("http", Grade.POSSIBLE),
        ("ws_failed_then_sse_full", Grade.POSSIBLE),
    } == grades
