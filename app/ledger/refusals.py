"""Rows that the ledger does not take: whether it may take them later, and whose fault it is.

A row that the table refuses for what is in it is lost. One that the table would take, and that
fails in what comes with it (sums, announcements), is not: it waits, and others go by.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.ledger.inserting import insert_new
from app.ledger.rows import TurnRow

logger = logging.getLogger("app.ledger.writer")


class Sifted(NamedTuple):
    written: list[TurnRow]
    refused: list[TurnRow]
    """For what is in them."""
    kept: list[TurnRow]
    """For what is not."""
    error: Exception | None
    """Why the last one of these failed."""


def sift(
    engine: Engine, rows: Sequence[TurnRow], insert: Callable[[list[TurnRow]], list[TurnRow]]
) -> Sifted:
    """Insert rows one by one. Raises what may pass by itself."""
    written: list[TurnRow] = []
    refused: list[TurnRow] = []
    kept: list[TurnRow] = []
    last: Exception | None = None
    for row in rows:
        try:
            written += insert([row])
        except Exception as error:
            if may_pass(error):
                raise
            if _takes(engine, row):
                kept.append(row)
                last = error
            else:
                refused.append(row)
                logger.error("turn %s cannot be stored: %s", row.turn_id, type(error).__name__)
    return Sifted(written, refused, kept, last)


def _takes(engine: Engine, row: TurnRow) -> bool:
    """Whether the table takes a row, which is not inserted."""
    with engine.connect() as connection:
        try:
            insert_new(connection, [row])
        except Exception as error:
            if may_pass(error):
                raise
            return False
        finally:
            connection.rollback()
    return True


def may_pass(error: Exception) -> bool:
    """Whether the same rows may be accepted later: locked, full, gone, no rights yet …

    The opposite is a value that no column takes. Drivers call one that they cannot even pass on a
    programming error, which from a server means a table or a right that is missing. Where pages
    hold all connections for long, there is none to be had for a while.
    """
    if not isinstance(error, DBAPIError):
        return isinstance(error, OSError | PoolTimeoutError)
    if isinstance(error, ProgrammingError) and getattr(error.orig, "sqlstate", None) is None:
        return False
    return not isinstance(error, DataError | IntegrityError)
