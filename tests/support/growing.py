"""Folders of rollouts that are written, forked, cut, moved and compressed while they are read."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import zstandard

from tests.support.rollouts import Rollout, thread, usage


def session(number: int, chance: random.Random) -> Rollout:
    """A session of either era, with re-emissions, compactions, torn lines and failures."""
    file = Rollout(thread(number), cli_version="0.171.0")
    records = chance.random() < 0.5
    for turn in range(chance.randint(1, 3)):
        file.started(f"turn-{turn}").context(chance.choice(("gpt-5.5", "gpt-5.6")))
        for step in range(chance.randint(0, 3)):
            _request(file.sent().answered(), records, f"r{number}.{turn}.{step}", chance)
        what = chance.randrange(6)
        if what == 0:
            file.line("compacted", {"message": ""})
            file.total = {}
        elif what == 1:
            file.raw(b'{"timestamp":"2026-11-01T10:00:00.000Z","type":"event_msg","payl')
        elif what == 2:
            file.answered().event("turn_aborted", turn_id=f"turn-{turn}")
            continue
        file.done(f"turn-{turn}", time_to_first_token_ms=50 + turn)
    return file


def _request(file: Rollout, records: bool, name: str, chance: random.Random) -> None:
    used = usage(chance.randint(1, 9) * 1_000, chance.choice((0, 512)))
    if records:
        file.recorded(used, name)
        file.counted(used, total=file.total)
    else:
        file.counted(used)
    if chance.random() < 0.4:
        file.counted(used, total=file.total)


def fork(number: int, parent: Rollout, chance: random.Random) -> Rollout:
    """It begins with the parent's counts, written again at other times."""
    file = Rollout(f"fork-{number}", forked_from_id=parent.name).meta(parent.name)
    for size in (1_000, 2_000):
        file.sent().counted(usage(size), at=90)
    file.sent().counted(usage(chance.randint(20, 30) * 1_000))
    return file


def counts(number: int) -> Rollout:
    file = Rollout(thread(number))
    for size in (1_000, 2_000, 3_000):
        file.sent().counted(usage(size))
    return file


@dataclass
class Folder:
    """Codex's folder, in which files live."""

    root: Path
    whole: dict[str, bytes]
    """What the files hold in the end."""
    forked: frozenset[str]
    """Files that others have copied from: they are there whole, or not at all."""
    places: dict[str, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    """Files that are whole."""

    def act(self, name: str, what: str, percent: int) -> None:
        place = self.places.get(name, "sessions/2026/11/01")
        if what == "archive":
            place = "archived_sessions"
        data = self.whole[name]
        if name not in self.forked:
            data = data[: len(data) * percent // 100]
        for path in self.root.rglob(f"{name}*"):
            path.unlink()
        self.places[name] = place
        (self.done.add if data == self.whole[name] else self.done.discard)(name)
        packed = what == "compress"
        path = self.root / place / f"{name}{'.zst' if packed else ''}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.compress(data) if packed else data)

    def finish(self) -> None:
        """All is there, somewhere; what is already stays as it is."""
        for name in sorted(self.whole.keys() - self.done):
            self.act(name, "write", 100)


def folder(root: Path, seed: int) -> Folder:
    chance = random.Random(seed)
    files = {f"{thread(number)}.jsonl": session(number, chance) for number in (1, 2)}
    parent = counts(3)
    whole = {f"rollout-2026-11-01T10-00-00-{name}": file.data for name, file in files.items()}
    forked = f"rollout-2026-11-01T10-00-00-{parent.name}.jsonl"
    whole[forked] = parent.data
    whole["rollout-2026-11-02T10-00-00-fork.jsonl"] = fork(4, parent, chance).data
    return Folder(root, whole, frozenset({forked}))
