"""Which records of a rollout are its own, and which it has copied from another session.

A fork, and a sub-agent that knows what its parent knows, begins with the parent's history, written
again with new times or with the old ones. What is copied was counted in the parent's file. Times
of lines decide nothing: a copy may take seconds, and a child's first request may come at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from app.importers.importer import Parents, Vector

_UUID7 = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)


class Whose(Enum):
    OWN = ""
    COPIED = "is copied from the session that this one came from"
    UNVERIFIED = (
        "may be copied from the session that this one came from, whose file is not here "
        "(boundary unverified)"
    )


def made_at(name: str | None) -> int | None:
    """When an id was made, in epoch milliseconds, where it is one that tells (UUID version 7)."""
    found = _UUID7.fullmatch(name or "")
    return int(found[1] + found[2], 16) if found else None


@dataclass(slots=True)
class Descent:
    """What a file tells of where its session came from, and what follows for its records."""

    parents: Parents
    session: str | None = None
    """The file's own."""
    created: int | None = None
    """Epoch milliseconds."""
    parent: str | None = None
    copies: bool = False
    """It says that it begins with another session's history."""
    _turn: str | None = None
    _settled: bool = False
    _asked: bool = False
    _history: Sequence[Vector] | None = None
    _place: int = 0

    def born(self, session: str, created: int | None) -> None:
        self.session = session
        self.created = made_at(session) or created

    def came_from(self, parent: str, *, copies: bool) -> None:
        """``copies``: its history is known to be in this file."""
        if copies and not self.copies:
            self.parent = parent
        self.copies = self.copies or copies
        self.parent = self.parent or parent

    def turn(self, name: str | None) -> None:
        """A turn begins."""
        self._turn = name

    def of_thread(self, thread: str | None, vector: Vector) -> Whose:
        """Of a record that may name its thread."""
        if thread is None:
            return self.of(vector, None)
        if thread != self.session:
            return Whose.COPIED
        self._settled = True
        return Whose.OWN

    def of_turn(self) -> Whose:
        """Of the turn that is under way, of which there are no figures."""
        if self.parent is None or self._settled:
            return Whose.OWN
        told = self._by_turn()
        if told is not None:
            return told
        return Whose.UNVERIFIED if self.copies else Whose.OWN

    def of(self, vector: Vector, at: int | None) -> Whose:
        """Of a count, by its figures and the time of its line."""
        if self.parent is None or self._settled:
            return Whose.OWN
        told = self._by_turn()
        if told is not None:
            return told
        if at is not None and self.created is not None and at < self.created:
            return Whose.COPIED
        if not self._asked:
            self._asked = True
            self._history = self.parents(self.parent)
        if self._history is None:
            return Whose.UNVERIFIED if self.copies else Whose.OWN
        for place in range(self._place, len(self._history)):
            if self._history[place] == vector:
                self._place = place + 1
                return Whose.COPIED
        self._settled = True
        self._history = None
        return Whose.OWN

    def _by_turn(self) -> Whose | None:
        """A turn that began before the session was there is not of it."""
        began, born = made_at(self._turn), made_at(self.session)
        if began is None or born is None:
            return None
        if began < born:
            return Whose.COPIED
        self._settled = True
        return Whose.OWN
