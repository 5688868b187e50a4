"""What each verdict on the prompt cache says, in plain words, and what usually helps.

A sentence names a cause, and the grade how sure that is; the two are shown together, so that what
is only possible is never said as a fact.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.analysis.verdicts import LOSSES, Grade, Verdict


@dataclass(frozen=True, slots=True)
class Words:
    title: str
    sentence: str
    remedy: str | None = None
    """None where there is nothing to remedy."""


_EARLY = (
    "Look for what stands right after the part that is read and is made anew on every request: a "
    "time, a counter, an id, a list of tools."
)
_ONE_CACHE = (
    "Use one stable `prompt_cache_key` per session, so that its requests meet one cache; from "
    "usage alone, an eviction and a single edit look the same."
)
_LOOK = "Let the agent run through Warmline for a while: it sees what its requests change."

WORDS: dict[str, Words] = {
    Verdict.PREFIX_CHANGED: Words(
        "Prefix changed",
        "What was sent before came back changed.",
        "Send what was sent before as it was, and append what is new.",
    ),
    Verdict.IDENTITY_CHANGE: Words(
        "Identity changed",
        "Model, effort, tier or cache key changed.",
        "Keep model, effort, tier and cache key through a session: after each change the whole "
        "history is read anew.",
    ),
    Verdict.IDLE: Words(
        "Long pause",
        "The cache ran out in the pause before.",
        "Go on before the cache runs out, or ask for a longer retention where the provider offers "
        "one.",
    ),
    Verdict.PINNED_FLOOR: Words(
        "Only the beginning is read", "Something early changes on every request.", _EARLY
    ),
    Verdict.ONE_OFF_FULL: Words(
        "Cold once", "Lost once, by routing, eviction or an edit.", _ONE_CACHE
    ),
    Verdict.ONE_OFF_PARTIAL: Words(
        "Short once", "A part lost, by routing, eviction or an edit.", _ONE_CACHE
    ),
    Verdict.PERSISTENT: Words(
        "Cold for longer",
        "Lost for longer, by an edit or the provider.",
        "Look at what the agent sends at these turns: usually a history that is rewritten, or "
        "requests of another kind in the same session.",
    ),
    Verdict.UNKNOWN: Words("Nothing tells why", "Nothing tells why less was read.", _LOOK),
    Verdict.HIT: Words("Read again", "What could be read again was."),
    Verdict.SHORTFALL: Words(
        "Not there yet", "All that had been written was read; the newest part was not there yet."
    ),
    Verdict.COLD_START: Words("First turn", "The first of its conversation."),
    Verdict.COLD_CONTINUATION: Words(
        "Right after a first turn", "The cache of the first turn was not there yet."
    ),
    Verdict.SHARED_PREFIX: Words(
        "First turn, shared beginning", "The first of its conversation read what others share."
    ),
    Verdict.HISTORY_REWRITE: Words(
        "History condensed", "The history was compacted, summarized or taken back."
    ),
    Verdict.UNUSABLE: Words("Cannot be judged", "No answer, no usage, or too short to be cached."),
}
"""Of every verdict."""

_OF_A_GRADE: dict[tuple[str, str], Words] = {
    (Verdict.ONE_OFF_FULL, Grade.PROVEN): Words(
        "Cold once",
        "The provider lost it once; it came unchanged.",
        "Nothing on your side. Where it is frequent, report it to the provider with the ids of the "
        "responses.",
    ),
    (Verdict.ONE_OFF_PARTIAL, Grade.PROVEN): Words(
        "Short once",
        "The provider lost a part; it came unchanged.",
        "Nothing on your side. Where it is frequent, report it to the provider with the ids of the "
        "responses.",
    ),
    (Verdict.UNKNOWN, Grade.REPORTED): Words(
        "Another reason",
        "The provider names a reason of its own.",
        "See `provider_miss_reason` of these turns.",
    ),
}


def words(verdict: str, grade: str | None) -> Words:
    """What a verdict of a grade says."""
    return _OF_A_GRADE.get((verdict, grade or Grade.UNKNOWN)) or WORDS[verdict]


HELD: frozenset[str] = LOSSES | {Verdict.HIT, Verdict.SHORTFALL}
"""Verdicts on turns that had something to read again: those before them in their conversation."""
GRADES: dict[str, str] = {
    Grade.REPORTED: "the provider says so",
    Grade.PROVEN: "the requests show it",
    Grade.LIKELY: "the figures fit nothing else well",
    Grade.POSSIBLE: "the figures fit this and other causes",
    Grade.UNKNOWN: "nothing tells",
}
"""How sure a verdict is, in words; the surest first."""
