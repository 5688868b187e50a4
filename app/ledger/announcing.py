"""New rows announced to the other processes that write to one PostgreSQL.

The announcement is part of the transaction that writes the rows, so that it is heard only when they
are there, and never when they are not. ``app.ledger.listening`` hears it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import msgspec
from sqlalchemy import Connection, Engine, func, select

from app.ledger.rows import TurnRow

CHANNEL = "warmline_turns"
_PAYLOAD = 7_000
"""Bytes of one announcement; PostgreSQL takes up to 8,000."""
_REMEMBERED = 20_000


class Announcement(msgspec.Struct):
    origin: str
    """The process; each hears its own as well."""
    turns: list[str]


class Announcer:
    """One process: what it writes it knows already, and passes over when it hears of it."""

    def __init__(self) -> None:
        self.origin = secrets.token_hex(8)
        self._own: dict[str, None] = {}

    def announce(self, connection: Connection, rows: Sequence[TurnRow]) -> None:
        """Called in the transaction that writes the rows, in the writer's thread."""
        if connection.dialect.name != "postgresql":
            return  # all rows are this process's own
        self._remember(rows)
        for turns in _parts([row.turn_id for row in rows]):
            self._send(connection, turns)

    def greet(self, engine: Engine) -> None:
        """An announcement of nothing: whoever hears it knows that announcements come through."""
        with engine.begin() as connection:
            self._send(connection, [])

    def wrote(self, turn_id: str) -> bool:
        """Whether this is one of the rows that this process wrote lately."""
        return turn_id in self._own

    def _send(self, connection: Connection, turns: list[str]) -> None:
        said = msgspec.json.encode(Announcement(self.origin, turns)).decode()
        connection.execute(select(func.pg_notify(CHANNEL, said)))

    def _remember(self, rows: Sequence[TurnRow]) -> None:
        self._own.update(dict.fromkeys(row.turn_id for row in rows))
        if len(self._own) > 2 * _REMEMBERED:
            # A new one instead of deleting: another thread may be looking.
            self._own = dict.fromkeys(list(self._own)[-_REMEMBERED:])


def _parts(turn_ids: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for turn_id in turn_ids:
        length = len(msgspec.json.encode(turn_id)) + 1
        if part and size + length > _PAYLOAD:
            yield part
            part, size = [], 0
        part.append(turn_id)
        size += length
    if part:
        yield part
