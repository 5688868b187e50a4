"""What an importer is: a pure reader of one format, and what it yields.

It gets the lines of one file and yields, in their order, rows of the ledger (``TurnRow``), records
that it skips, and remarks on the file as a whole. It knows no database, no clock and no file.

- A row's ``turn_id`` follows from the record alone: the same record read again, from another file
  or in another order, has the same one. That is what it is known by (``app.ledger.imports``).
- ``tenant`` and ``session_key`` are left empty: the run knows them (``app.importers.identity``).
  Only Warmline's own exports tell them.
- What a record does not tell is ``None``, never 0. ``recorded_at`` is not the time of the import:
  alerts look at what is recorded, and are not about the past.
- Messages never hold anything of the record. ``import_id`` is left ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol, TypeAlias

from app.importers import lines
from app.importers.lines import Line
from app.ledger.rows import TurnRow


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that is no row, or a piece of the file that is no record."""

    line: int
    """Where it begins, from 1."""
    reason: str
    column: str | None = None

    @property
    def why(self) -> str:
        """Equal for records that are skipped for one reason."""
        return self.reason if self.column is None else f"{self.column} {self.reason}"

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


@dataclass(frozen=True, slots=True)
class Remark:
    """What is to be known about the file; nothing is lost by it that could have been kept."""

    text: str


class NotReadable(Exception):
    """Nothing of the file can be read; the message says why and what to do."""


class Parents(Protocol):
    """What other files tell of the sessions that they are of."""

    def __call__(self, session: str) -> Sequence[Vector] | None:
        """The usage of a session, call by call; None where its file is not there."""


class Beside(Protocol):
    """Other files of the folder that a file lies in."""

    def __call__(self, name: str) -> Iterable[Line]:
        """The lines of the file of this name; none where it is not there or cannot be read."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a format may need to know beside the lines of its file."""

    name: str = ""
    """The file's, without the folders that it lies in."""
    parents: Parents = lambda _session: None
    beside: Beside = lambda _name: ()


Vector: TypeAlias = tuple[int, ...]
Item: TypeAlias = TurnRow | Skipped | Remark
Read: TypeAlias = Callable[[Iterable[Line]], Iterator[Item]]
"""Raises ``NotReadable``."""
ReadAround: TypeAlias = Callable[[Iterable[Line], Around], Iterator[Item]]
"""The same, with what is around the file."""


@dataclass(frozen=True, slots=True)
class Importer:
    name: str
    """The format, in one word."""
    title: str
    recognizes: Callable[[bytes], bool]
    """Whether a file that begins so is of this format. What it is called says nothing."""
    read: Read
    read_around: ReadAround | None = None
    """Used in place of ``read`` where the format has it."""
    beside: tuple[str, ...] = ()
    """Names of the files of the same folder that it reads too."""
    version: int = 1
    """Counted up when it makes something else of a file: then all are read again."""
    split: Callable[[BinaryIO], Iterator[Line]] = lines.split
    """How a file falls into records: by lines, or in another way."""
