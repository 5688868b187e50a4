"""The tables of the rollups. A stretch is a level (its length in milliseconds) and a start.

Cells and times are kept twice: in ``detail`` 1 by everything that a filter may ask for, in
``detail`` 0 without telling apart whose they are, which is so few that a month is read at once.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, LargeBinary, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from app.ledger.models import Base


def _key() -> Mapped[int]:
    return mapped_column(BigInteger(), primary_key=True, autoincrement=False)


def _sum() -> Mapped[int]:
    return mapped_column(BigInteger())


def _sum_since() -> Mapped[int]:
    """One that came when there were rows already, to none of which it applied."""
    return mapped_column(BigInteger(), server_default=text("0"))


class TokenSums:
    """What stands in cells and in sessions."""

    usage_turns: Mapped[int] = _sum()
    inconsistent: Mapped[int] = _sum()
    input: Mapped[int] = _sum()
    cached: Mapped[int] = _sum()
    write_turns: Mapped[int] = _sum()
    cache_write: Mapped[int] = _sum()
    output: Mapped[int] = _sum()
    reasoning: Mapped[int] = _sum()
    priced: Mapped[int] = _sum_since()
    cost: Mapped[int] = _sum_since()
    """Nano-dollars."""


class RollupKey(Base):
    """One combination of what is told apart; ``contribution.Key``."""

    __tablename__ = "rollup_keys"

    id: Mapped[int] = _key()
    """A digest of the rest, so that all processes know it without asking."""
    shape: Mapped[int] = mapped_column(BigInteger())
    """Equal for keys that are equal from ``kind`` on: those that make one ``cells.Cell``."""
    source: Mapped[str]
    tenant: Mapped[str]
    upstream: Mapped[str]
    model: Mapped[str | None]
    client: Mapped[str | None]
    kind: Mapped[str]
    mode: Mapped[str | None]
    reason: Mapped[str | None]
    eligible: Mapped[bool]
    status: Mapped[str]
    cache: Mapped[str]

    __table_args__ = ({"sqlite_with_rowid": False},)


class RollupCell(TokenSums, Base):
    """The sums of ``cells.Cell`` of one stretch and key."""

    __tablename__ = "rollup_cells"

    detail: Mapped[int] = _key()
    level: Mapped[int] = _key()
    start: Mapped[int] = _key()
    key: Mapped[int] = _key()
    turns: Mapped[int] = _sum()

    __table_args__ = ({"sqlite_with_rowid": False},)


class RollupTime(Base):
    """Times of generations of one stretch and key; ``distribution`` says how they are stored."""

    __tablename__ = "rollup_times"

    detail: Mapped[int] = _key()
    level: Mapped[int] = _key()
    start: Mapped[int] = _key()
    key: Mapped[int] = _key()
    ttft: Mapped[bytes] = mapped_column(LargeBinary())
    duration: Mapped[bytes] = mapped_column(LargeBinary())


class RollupSession(TokenSums, Base):
    """One session in one stretch: all rows, and its generations that came to their end."""

    __tablename__ = "rollup_sessions"

    level: Mapped[int] = _key()
    start: Mapped[int] = _key()
    session_key: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[int] = _key()
    session: Mapped[str | None]
    """The greatest of the names it went by."""
    first_at: Mapped[int] = mapped_column(BigInteger())
    last_at: Mapped[int] = mapped_column(BigInteger())
    turns: Mapped[int] = _sum()
    generation: Mapped[int] = _sum()
    known: Mapped[int] = _sum()
    incremental: Mapped[int] = _sum()
    eligible: Mapped[int] = _sum()
    breaks: Mapped[int] = _sum()
    mismatches: Mapped[int] = _sum()

    __table_args__ = (
        Index(None, "session_key", "level", "start"),
        {"sqlite_with_rowid": False},
    )


class RollupLife(Base):
    """One session as a whole, as far as its hours are over; ``lives``."""

    __tablename__ = "rollup_lives"

    size: Mapped[int] = _key()
    block: Mapped[int] = _key()
    session_key: Mapped[str] = mapped_column(primary_key=True)
    first: Mapped[int] = _sum()
    """The hours since 1970 in which it began and in which it ended."""
    last: Mapped[int] = _sum()
    turns: Mapped[int] = _sum()
    incremental: Mapped[int] = _sum()
    known: Mapped[int] = _sum()

    __table_args__ = (
        Index("uq_rollup_lives_session_key", "session_key", unique=True),
        {"sqlite_with_rowid": False},
    )


class RollupBlock(Base):
    """The sessions of a block: those that no smaller block holds whole; ``lives``."""

    __tablename__ = "rollup_blocks"

    size: Mapped[int] = _key()
    block: Mapped[int] = _key()
    sessions: Mapped[int] = _sum()
    most: Mapped[int] = _sum()
    """The turns of the one that has the most."""
    leader: Mapped[str]
    """Its key; the least where several have as many."""


class RollupShare(Base):
    """How much of the sessions of a block was continued; ``lives.TOGETHER``, ``shares``."""

    __tablename__ = "rollup_shares"

    size: Mapped[int] = _key()
    block: Mapped[int] = _key()
    shares: Mapped[bytes] = mapped_column(LargeBinary())


keys: Table = Base.metadata.tables["rollup_keys"]
cells: Table = Base.metadata.tables["rollup_cells"]
times: Table = Base.metadata.tables["rollup_times"]
sessions: Table = Base.metadata.tables["rollup_sessions"]
lives: Table = Base.metadata.tables["rollup_lives"]
blocks: Table = Base.metadata.tables["rollup_blocks"]
shares: Table = Base.metadata.tables["rollup_shares"]
