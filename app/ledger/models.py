"""The schema. Reads give ``TurnRow``, never an object of these classes.

- Times and byte counts are BIGINT: epoch milliseconds, UTC. The same on SQLite and PostgreSQL.
- Token counts are INTEGER, so that PostgreSQL sums them to BIGINT and not to NUMERIC.
- ``id`` grows with every insert and is never used again, also not after a purge: together with a
  time it makes keyset cursors exact, and alone it bounds the snapshot of an export.
- Text has no length in the schema; ``facts`` cuts what comes from outside. PostgreSQL sorts and
  compares it by its bytes, as SQLite does, whatever language the database was made for.

A change here needs a migration in ``alembic/versions``; ``alembic check`` compares the two.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    Table,
    Text,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
UNJUDGED = "cache_verdict IS NULL AND kind = 'generation'"
"""Turns that wait for a verdict; in a query word by word as here, else no index is used."""
UNPRICED = "price_note IS NULL AND cost_usd IS NULL"
"""Turns that wait for a price; likewise."""
LOSSES = (
    "prefix_changed", "identity_change", "idle", "pinned_floor", "one_off_full", "one_off_partial",
    "persistent", "unknown",
)  # fmt: skip
"""Verdicts of misses, as ``app.analysis.verdicts`` has them."""
BROKEN = (
    "kind = 'generation' AND status IN ('completed', 'incomplete') AND "
    "(eligible AND mode NOT IN ('ws_incremental', 'http_incremental') OR "
    "NOT eligible AND (reason IS NULL OR reason IN ('continuation_off', 'client_anchored')) AND "
    f"cache_verdict IN {LOSSES})"
)
"""Breaks, as ``app.ledger.break_groups`` tells them; likewise."""
SUB_AGENT = "root_session <> session"
"""Turns of sub-agents, which belong to another session; likewise."""
Words = Text().with_variant(Text(collation="C"), "postgresql")
Id = BigInteger().with_variant(Integer(), "sqlite")  # SQLite counts up INTEGER keys only


class Money(TypeDecorator[Decimal]):
    """Exact on PostgreSQL; SQLite keeps a double, which holds the nine decimals of a turn."""

    impl = Numeric(18, 9, asdecimal=False)
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else str(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:  # noqa: ARG002
        return None if value is None else Decimal(str(value))


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map = {  # noqa: RUF012  (SQLAlchemy's own protocol)
        str: Words,
        int: Integer(),
        float: Double(),
        bool: Boolean(),
        Decimal: Money(),
    }


def _big() -> Mapped[int | None]:
    return mapped_column(BigInteger())


class Turn(Base):
    """One turn. The columns after ``id`` are ``rows.COLUMNS``, in that order."""

    __tablename__ = "turns"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    turn_id: Mapped[str]
    started_at: Mapped[int] = mapped_column(BigInteger())
    ended_at: Mapped[int] = mapped_column(BigInteger())
    recorded_at: Mapped[int] = mapped_column(BigInteger())
    source: Mapped[str]
    kind: Mapped[str]
    status: Mapped[str]
    session: Mapped[str | None]
    session_key: Mapped[str]
    root_session: Mapped[str | None]
    turn_group: Mapped[str | None]
    tenant: Mapped[str]
    chain: Mapped[str | None]
    epoch: Mapped[int | None]
    epoch_turn: Mapped[int | None]
    client: Mapped[str | None]
    client_version: Mapped[str | None]
    client_transport: Mapped[str | None]
    gateway_version: Mapped[str | None]
    upstream: Mapped[str]
    model: Mapped[str | None]
    reasoning_effort: Mapped[str | None]
    service_tier: Mapped[str | None]
    mode: Mapped[str | None]
    reason: Mapped[str | None]
    epoch_reset_reason: Mapped[str | None]
    eligible: Mapped[bool]
    changed_fields: Mapped[str | None]
    fallback_reason: Mapped[str | None]
    attempts: Mapped[int | None]
    connection: Mapped[str | None]
    previous_response_id: Mapped[str | None]
    response_id: Mapped[str | None]
    prompt_cache_key: Mapped[str | None]
    store: Mapped[bool | None]
    items_total: Mapped[int | None]
    items_sent: Mapped[int | None]
    baseline_items: Mapped[int | None]
    bytes_total: Mapped[int | None] = _big()
    bytes_sent: Mapped[int | None] = _big()
    frozen_items: Mapped[int | None]
    diverged_at: Mapped[int | None]
    diverged_kind: Mapped[str | None]
    diverged_path: Mapped[str | None]
    diverged_class: Mapped[str | None]
    fingerprint: Mapped[str | None]
    evidence: Mapped[str | None]
    tools_digest: Mapped[str | None]
    instructions_digest: Mapped[str | None]
    prefix_digest: Mapped[str | None]
    baseline_digest: Mapped[str | None]
    input_tokens: Mapped[int | None]
    cached_tokens: Mapped[int | None]
    cache_write_tokens: Mapped[int | None]
    cache_write_long_tokens: Mapped[int | None]
    non_cached_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    reasoning_tokens: Mapped[int | None]
    total_tokens: Mapped[int | None]
    usage_state: Mapped[str]
    ttft_ms: Mapped[float | None]
    first_event_ms: Mapped[float | None]
    queue_ms: Mapped[float | None]
    connect_ms: Mapped[float | None]
    duration_ms: Mapped[float | None]
    http_status: Mapped[int | None]
    error_code: Mapped[str | None]
    cache_verdict: Mapped[str | None]
    cache_grade: Mapped[str | None]
    missed_tokens: Mapped[int | None]
    provider_miss_reason: Mapped[str | None]
    shadow_mode: Mapped[str | None]
    shadow_reason: Mapped[str | None]
    cost_usd: Mapped[Decimal | None]
    price_note: Mapped[str | None]
    import_id: Mapped[str | None]

    __table_args__ = (
        Index("uq_turns_turn_id", "turn_id", unique=True),
        Index(None, "started_at", "id"),
        Index(None, "recorded_at", "id"),
        Index(None, "session_key", "started_at"),
        Index(None, "session", "started_at"),
        Index(None, "fingerprint", "started_at"),
        # Costs nothing to the rows of gateways.
        Index(
            None,
            "import_id",
            "id",
            sqlite_where=text("import_id IS NOT NULL"),
            postgresql_where=text("import_id IS NOT NULL"),
        ),
        # Holds a turn until it is judged: nearly always nothing.
        Index(
            "ix_turns_unjudged",
            "session_key",
            sqlite_where=text(UNJUDGED),
            postgresql_where=text(UNJUDGED),
        ),
        Index(
            "ix_turns_unpriced",
            "id",
            sqlite_where=text(UNPRICED),
            postgresql_where=text(UNPRICED),
        ),
        Index(
            "ix_turns_broken",
            "started_at",
            sqlite_where=text(BROKEN),
            postgresql_where=text(BROKEN),
        ),
        # Tells of sub-agents alone whose they are.
        Index(
            "ix_turns_sub_agents",
            "started_at",
            "session_key",
            "tenant",
            "session",
            "root_session",
            sqlite_where=text(SUB_AGENT),
            postgresql_where=text(SUB_AGENT),
        ),
        {"sqlite_autoincrement": True},
    )


class BreakDecision(Base):
    """What an operator last said of a group of breaks."""

    __tablename__ = "break_decisions"

    break_group: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    """``resolved``, ``muted`` or ``open``."""
    decided_at: Mapped[int] = mapped_column(BigInteger())
    until: Mapped[int | None] = mapped_column(BigInteger())
    """The end of a mute; None: for ever."""
    who: Mapped[str]


class Import(Base):
    """One run of an import, of one file or of many. Counts are those of its last batch."""

    __tablename__ = "imports"

    id: Mapped[str] = mapped_column(primary_key=True)
    started_at: Mapped[int] = mapped_column(BigInteger())
    ended_at: Mapped[int | None] = mapped_column(BigInteger())
    state: Mapped[str]
    """``running`` (also after a kill), ``done``, ``interrupted``, ``undoing`` or ``undone``."""
    names: Mapped[str]
    """Names of its files without their directories, as far as they fit."""
    formats: Mapped[str]
    """Joined by commas."""
    rows_new: Mapped[int] = mapped_column(BigInteger())
    rows_known: Mapped[int] = mapped_column(BigInteger())
    skipped: Mapped[int] = mapped_column(BigInteger())
    reasons: Mapped[str]
    """JSON: reason to number of records, of what was skipped."""


class ImportKey(Base):
    """A record that is not to be taken again. It outlives the row, its sums, and a purge."""

    __tablename__ = "import_keys"

    key: Mapped[bytes] = mapped_column(LargeBinary(16), primary_key=True)
    """A digest of the row's ``turn_id``."""
    import_id: Mapped[str | None]
    """The import that took it; None: its row was purged."""

    __table_args__ = ({"sqlite_with_rowid": False},)


class MergedRecord(Base):
    """A record of another tool's log whose call has a gateway's row: it has none of its own."""

    __tablename__ = "merged_records"

    record_id: Mapped[str] = mapped_column(primary_key=True)
    """The ``turn_id`` of the row that it would be."""
    turn_id: Mapped[str]
    """The gateway's row."""
    import_id: Mapped[str]
    session: Mapped[str]
    session_key: Mapped[str]
    """This and what follows: of the record."""
    tenant: Mapped[str]
    started_at: Mapped[int] = mapped_column(BigInteger())
    differs: Mapped[bool]
    """Its figures are not those of the gateway's row."""
    record: Mapped[str]
    """JSON: what is known of its columns."""
    before: Mapped[str]
    """JSON: the columns that the gateway's row has learned, as they were."""

    __table_args__ = (
        Index("uq_merged_records_turn_id", "turn_id", unique=True),
        Index(None, "import_id"),
        Index(None, "session"),
    )


class UnmergedSession(Base):
    """A session whose records have not been held against the rows of gateways yet."""

    __tablename__ = "unmerged_sessions"

    session: Mapped[str] = mapped_column(primary_key=True)
    times: Mapped[int]
    """How often it was said, so that nothing that comes meanwhile is overlooked."""

    __table_args__ = ({"sqlite_with_rowid": False},)


class ImportFile(Base):
    """A file that need not be read again (``app.ledger.import_files``)."""

    __tablename__ = "import_files"

    place: Mapped[bytes] = mapped_column(LargeBinary(16), primary_key=True)
    seen: Mapped[bytes] = mapped_column(LargeBinary(16))

    __table_args__ = ({"sqlite_with_rowid": False},)


class LedgerFact(Base):
    """What is true of the ledger as a whole, by name."""

    __tablename__ = "ledger_facts"

    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


turns: Table = Base.metadata.tables["turns"]
ledger_facts: Table = Base.metadata.tables["ledger_facts"]
imports: Table = Base.metadata.tables["imports"]
break_decisions: Table = Base.metadata.tables["break_decisions"]
import_keys: Table = Base.metadata.tables["import_keys"]
import_files: Table = Base.metadata.tables["import_files"]
merged_records: Table = Base.metadata.tables["merged_records"]
unmerged_sessions: Table = Base.metadata.tables["unmerged_sessions"]
