"""What a remedy would have saved, told from the evidence of recorded breaks.

A *break* is a turn whose requests were compared and differ, or one that lost its cache to a pause
or to a change of identity. A policy would have kept it warm where it takes away all that the
evidence tells. Evidence tells of a history the first place where the two part, and whether they
part again; of fields all that changed. So what a policy takes away may not be all there is:

- *kept*: it is all, the evidence proves it.
- *possible*: it is all that is told, and more may be behind it. A break counts there too where the
  cause itself is a guess (``likely``, ``possible``).

A break that needs two policies is kept by neither alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from app.analysis import lookup
from app.analysis.cache_life import retention_of
from app.analysis.parted import Parted, parted
from app.analysis.testimony import compared
from app.analysis.verdicts import Grade, Verdict
from app.analysis.waste import Loss, Waste
from app.ledger.filters import note
from app.ledger.rows import TurnRow
from engine.model import DivergenceClass, Reason, is_metadata


class Policy(StrEnum):
    FREEZE = "freeze"
    SORT_TOOLS = "sort_tools"
    FIX_TOOLS = "fix_tools"
    NO_CLOCK = "no_clock"
    FIX_INSTRUCTIONS = "fix_instructions"
    ONE_IDENTITY = "one_identity"
    FIX_SETTINGS = "fix_settings"
    KEEP_HISTORY = "keep_history"
    GO_ON_SOONER = "go_on_sooner"
    NONE = "none"
    """Nothing takes it away, or it was meant."""


SENTENCES: dict[Policy, str] = {
    Policy.FREEZE: "Freezing `{}`",
    Policy.SORT_TOOLS: "Sorting the tools by name",
    Policy.FIX_TOOLS: "One fixed list of tools",
    Policy.NO_CLOCK: "Instructions without a time, a counter or an id",
    Policy.FIX_INSTRUCTIONS: "Instructions built once, when the session begins",
    Policy.ONE_IDENTITY: "One model, effort, tier and cache key per session",
    Policy.FIX_SETTINGS: "Settings that stay through a session",
    Policy.KEEP_HISTORY: "Giving back every item as it was, in its order",
    Policy.GO_ON_SOONER: "Going on before the cache runs out, or a longer retention,",
}
"""What each policy is, as the subject of a sentence."""


class Remedy(NamedTuple):
    policy: Policy
    key: str | None = None
    """The JSON key, of ``freeze``."""

    @property
    def words(self) -> str:
        return SENTENCES[self.policy].format(self.key)


NOTHING = Remedy(Policy.NONE)
_NOTHING = frozenset({NOTHING})


class Needed(NamedTuple):
    """What it would have taken to keep a break warm."""

    remedies: frozenset[Remedy]
    proven: bool
    """The evidence tells all that there was."""


_IDENTITY = frozenset({"model", "reasoning", "service_tier", "prompt_cache_key"})
_OF_FIELDS = {
    "tools_reordered": Policy.SORT_TOOLS,
    "tools_set": Policy.FIX_TOOLS,
    "tool_volatile": Policy.FIX_TOOLS,
    "tool_changed": Policy.FIX_TOOLS,
    "instructions_volatile": Policy.NO_CLOCK,
    "instructions_trimmed": Policy.FIX_INSTRUCTIONS,
    "instructions": Policy.FIX_INSTRUCTIONS,
}
_OF_HISTORY = {
    "instruction_volatile": Policy.NO_CLOCK,
    "instruction": Policy.FIX_INSTRUCTIONS,
    "tool_definitions": Policy.FIX_TOOLS,
    "rewound": Policy.NONE,
    "branched": Policy.NONE,
    "window": Policy.NONE,
    "summarized_history": Policy.NONE,
}
"""Of all other changes of the history: keep it."""
_CERTAIN = frozenset({Grade.REPORTED, Grade.PROVEN})
_COVERED = {Policy.FIX_TOOLS: Policy.SORT_TOOLS, Policy.FIX_INSTRUCTIONS: Policy.NO_CLOCK}
"""A policy that takes away what another one does, and more."""


def needed(row: TurnRow, gap: int | None = None) -> Needed | None:
    """None of a turn that is no break. ``gap``: milliseconds from the end of the turn before it in
    its chain; a cache that had run out in it is not kept by mending the request alone."""
    reason = compared(row)
    if reason in lookup.COMPARED:
        return _paused(_of_evidence(row, reason), row, gap)
    if row.cache_verdict == Verdict.IDLE:
        return Needed(frozenset({Remedy(Policy.GO_ON_SOONER)}), row.cache_grade in _CERTAIN)
    if row.cache_verdict == Verdict.IDENTITY_CHANGE:
        told = Needed(frozenset({Remedy(Policy.ONE_IDENTITY)}), row.cache_grade in _CERTAIN)
        return _paused(told, row, gap)
    return None


def _paused(told: Needed, row: TurnRow, gap: int | None) -> Needed:
    life = retention_of(row)
    if gap is None or gap < life.soft:
        return told
    if gap < life.hard:
        return Needed(told.remedies, proven=False)
    return Needed(told.remedies | {Remedy(Policy.GO_ON_SOONER)}, told.proven)


def _of_evidence(row: TurnRow, reason: str | None) -> Needed:
    found = parted(row)
    remedies: set[Remedy] = set()
    proven = True
    if reason == Reason.NON_INPUT_FIELDS_CHANGED:
        told = [one for one in found.details if "item" not in one]
        named = {one.get("field") for one in told}
        bare = [{"field": name} for name in row.changed_field_names if name not in named]
        remedies |= {_of_field(one) for one in (*told, *bare)} or {NOTHING}
    if reason == Reason.PREFIX_MISMATCH or found.index is not None:
        mended = _of_history(found)
        remedies |= mended.remedies
        proven = proven and mended.proven
    policies = {one.policy for one in remedies}
    covered = {less for more, less in _COVERED.items() if more in policies}
    return Needed(frozenset(one for one in remedies if one.policy not in covered), proven)


def _of_field(detail: Mapping[str, Any]) -> Remedy:
    if detail.get("field") in _IDENTITY:
        return Remedy(Policy.ONE_IDENTITY)
    # What was left out of the evidence of a list of tools is a tool that came, went or changed.
    return Remedy(_OF_FIELDS.get(lookup.of_field(detail), Policy.FIX_SETTINGS))


def _of_history(found: Parted) -> Needed:
    name = lookup.of_history(found)
    if name == "tool_definitions" and found.details:
        of_tools = (one for one in found.details if "item" in one)
        return Needed(frozenset(map(_of_field, of_tools)) or _NOTHING, proven=False)
    if name is None:
        return Needed(_NOTHING, proven=False)
    if name == "metadata_moved":
        return _of_metadata(found)
    policy = _OF_HISTORY.get(name, Policy.KEEP_HISTORY)
    if policy == Policy.KEEP_HISTORY:  # by its meaning it takes away all that may be behind it
        return Needed(frozenset({Remedy(policy)}), proven=True)
    edited = found.klass == DivergenceClass.EDITED
    return Needed(frozenset({Remedy(policy)}), proven=not edited and not found.further)


def _of_metadata(found: Parted) -> Needed:
    if found.freezable:
        return Needed(frozenset(Remedy(Policy.FREEZE, key) for key in found.freezable), proven=True)
    steps = (found.path or "").split("/")[2:]
    key = next(one for one in steps if is_metadata(one))
    return Needed(frozenset({Remedy(Policy.FREEZE, key)}), proven=False)


@dataclass(slots=True)
class Saved:
    """What one remedy would have done."""

    breaks: int = 0
    """That have what it takes away, whatever else they have."""
    kept: Waste = field(default_factory=Waste)
    """What those lost that it would have kept warm."""
    possible: Waste = field(default_factory=Waste)
    """Those, and the ones that it may have kept warm."""
    turns: list[str] = field(default_factory=list, compare=False)
    """All of its breaks, as long as they may be named one by one."""

    @property
    def left(self) -> int:
        """Breaks that need something else too."""
        return self.breaks - self.possible.turns


@dataclass(slots=True)
class Remedies:
    """Adds up breaks by remedy. A break with two changes is in the ``breaks`` of two remedies; it
    is in what is kept by one at most."""

    breaks: int = 0
    by_remedy: dict[Remedy, Saved] = field(default_factory=dict)

    def add(self, needs: Needed, loss: Loss, turn_id: str) -> None:
        self.breaks += 1
        for remedy in needs.remedies:
            saved = self.by_remedy.setdefault(remedy, Saved())
            saved.breaks += 1
            note(saved.turns, turn_id)
            if len(needs.remedies) == 1:
                saved.possible.add(loss)
                if needs.proven:
                    saved.kept.add(loss)

    @property
    def beyond(self) -> int:
        """Breaks with something that no policy takes away, or that was meant."""
        return self.by_remedy[NOTHING].breaks if NOTHING in self.by_remedy else 0

    def best(self) -> list[tuple[Remedy, Saved]]:
        """Those that would have kept something, the most tokens first."""
        found = [(remedy, saved) for remedy, saved in self.by_remedy.items() if remedy != NOTHING]
        return sorted(
            found,
            key=lambda one: (-one[1].possible.tokens, -one[1].possible.turns, one[0].words),
        )


def sentence(remedy: Remedy, saved: Saved) -> str:
    """``Freezing `_meta` would have kept 212 of 240 breaks warm.``"""
    kept, possible = saved.kept.turns, saved.possible.turns
    whole = "1 break" if saved.breaks == 1 else f"{saved.breaks:,} breaks"
    if not possible:
        return f"{remedy.words} would have kept none of {whole} warm: each has another change."
    if kept == possible:
        number = f"{kept:,}"
    else:
        number = f"{kept:,}, at most {possible:,}," if kept else f"at most {possible:,}"
    return f"{remedy.words} would have kept {number} of {whole} warm."
