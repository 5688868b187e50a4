"""The tables of what breaks add up to. They hold what the rows there are add up to, at any moment:
what retention deletes is taken away, and hours that are not over are in days already.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, Table, text
from sqlalchemy.orm import Mapped, mapped_column

from app.ledger.models import Base


def _key() -> Mapped[int]:
    return mapped_column(BigInteger(), primary_key=True, autoincrement=False)


def _sum() -> Mapped[int]:
    return mapped_column(BigInteger())


class BreakKey(Base):
    """One combination of what is told apart; ``broken.Key``."""

    __tablename__ = "rollup_break_keys"

    id: Mapped[int] = _key()
    """A digest of the rest, so that all processes know it without asking."""
    break_group: Mapped[str]
    source: Mapped[str]
    tenant: Mapped[str]
    upstream: Mapped[str]
    model: Mapped[str | None]
    client: Mapped[str | None]
    client_version: Mapped[str | None]
    service_tier: Mapped[str | None]
    size: Mapped[int]
    long: Mapped[bool]

    __table_args__ = (Index(None, "break_group"), {"sqlite_with_rowid": False})


class BreakSum(Base):
    """The breaks of one stretch and key."""

    __tablename__ = "rollup_breaks"

    level: Mapped[int] = _key()
    key: Mapped[int] = _key()
    start: Mapped[int] = _key()
    turns: Mapped[int] = _sum()
    counted: Mapped[int] = _sum()
    """Turns whose missed tokens are known."""
    missed: Mapped[int] = _sum()
    written: Mapped[int] = _sum()
    """Of the missed tokens, those that were paid as writes."""
    written_long: Mapped[int] = _sum()
    """And as writes with the longer lifetime; these are not in ``written``."""
    sessions: Mapped[int] = _sum()
    """Hours of sessions, of groups as a whole."""
    firsts: Mapped[int] = _sum()
    """Of these, the first ones of their session; likewise."""
    first_at: Mapped[int] = _sum()
    last_at: Mapped[int] = _sum()

    __table_args__ = ({"sqlite_with_rowid": False},)


class BreakSession(Base):
    """The breaks of one group, session and hour; ``break_sessions``."""

    __tablename__ = "rollup_break_sessions"

    key: Mapped[int] = _key()
    session_key: Mapped[str] = mapped_column(primary_key=True)
    start: Mapped[int] = _key()
    turns: Mapped[int] = _sum()
    previous: Mapped[int | None] = mapped_column(BigInteger())
    """The hour before this one in which the session had the group."""
    size: Mapped[int | None]
    """The block of hours that holds both (``lives.block_of``)."""
    block: Mapped[int | None] = mapped_column(BigInteger())

    __table_args__ = (
        Index(
            "ix_rollup_break_sessions_blocks",
            "key",
            "size",
            "block",
            sqlite_where=text("previous IS NOT NULL"),
            postgresql_where=text("previous IS NOT NULL"),
        ),
        {"sqlite_with_rowid": False},
    )


keys: Table = Base.metadata.tables["rollup_break_keys"]
sums: Table = Base.metadata.tables["rollup_breaks"]
sessions: Table = Base.metadata.tables["rollup_break_sessions"]
