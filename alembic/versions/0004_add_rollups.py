"""Add rollups: what pages ask for, summed up by quarters of an hour, hours and longer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Sorted by its bytes, as 0003 says.
WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SUMS = (
    "usage_turns",
    "inconsistent",
    "input",
    "cached",
    "write_turns",
    "cache_write",
    "output",
    "reasoning",
)
COUNTS = ("generation", "known", "incremental", "eligible", "breaks", "mismatches")
TABLES = ("rollup_times", "rollup_sessions", "rollup_keys", "rollup_cells")


def upgrade() -> None:
    op.create_table(
        "rollup_keys",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("shape", sa.BigInteger(), nullable=False),
        sa.Column("source", WORDS, nullable=False),
        sa.Column("tenant", WORDS, nullable=False),
        sa.Column("upstream", WORDS, nullable=False),
        sa.Column("model", WORDS, nullable=True),
        sa.Column("client", WORDS, nullable=True),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("mode", WORDS, nullable=True),
        sa.Column("reason", WORDS, nullable=True),
        sa.Column("eligible", sa.Boolean(), nullable=False),
        sa.Column("status", WORDS, nullable=False),
        sa.Column("cache", WORDS, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollup_keys")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rollup_cells",
        *_numbers("detail", autoincrement=False),
        *_place(),
        *_numbers("turns", *SUMS),
        sa.PrimaryKeyConstraint("detail", "level", "start", "key", name=op.f("pk_rollup_cells")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rollup_times",
        *_numbers("detail", autoincrement=False),
        *_place(),
        sa.Column("ttft", sa.LargeBinary(), nullable=False),
        sa.Column("duration", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("detail", "level", "start", "key", name=op.f("pk_rollup_times")),
    )
    level, start, key = _place()
    op.create_table(
        "rollup_sessions",
        level,
        start,
        sa.Column("session_key", WORDS, nullable=False),
        key,
        sa.Column("session", WORDS, nullable=True),
        *_numbers("first_at", "last_at", "turns", *COUNTS, *SUMS),
        sa.PrimaryKeyConstraint(
            "level", "start", "session_key", "key", name=op.f("pk_rollup_sessions")
        ),
        sqlite_with_rowid=False,
    )
    op.execute("INSERT INTO ledger_facts (name, value) VALUES ('rollups_coarse_until', '0')")
    # Rows that are there already are counted after the migration, with progress.
    op.execute(
        "INSERT INTO ledger_facts (name, value) "
        "SELECT 'rollups_missing', 'yes' WHERE EXISTS (SELECT 1 FROM turns)"
    )


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    op.execute("DELETE FROM ledger_facts WHERE name LIKE 'rollups_%' OR name = 'rows_kept_from'")


def _place() -> list[sa.Column[int]]:
    return _numbers("level", "start", "key", autoincrement=False)


def _numbers(*names: str, **options: bool) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False, **options) for name in names]
