"""Sum up sessions by quarters of an hour, and as a whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Sorted by its bytes, as 0003 says.
WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_index(
        op.f("ix_rollup_sessions_session_key_level_start"),
        "rollup_sessions",
        ["session_key", "level", "start"],
    )
    op.create_table(
        "rollup_lives",
        *_numbers("size", "block", autoincrement=False),
        sa.Column("session_key", WORDS, nullable=False),
        *_numbers("first", "last", "turns", "incremental", "known"),
        sa.PrimaryKeyConstraint("size", "block", "session_key", name=op.f("pk_rollup_lives")),
        sqlite_with_rowid=False,
    )
    op.create_index("uq_rollup_lives_session_key", "rollup_lives", ["session_key"], unique=True)
    op.create_table(
        "rollup_blocks",
        *_numbers("size", "block", autoincrement=False),
        *_numbers("sessions", "most"),
        sa.Column("leader", WORDS, nullable=False),
        sa.Column("shares", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("size", "block", name=op.f("pk_rollup_blocks")),
    )
    # Rows that are there are counted anew after the migration, with progress. Those that are
    # deleted are known by the hour only.
    sessions = sa.inspect(op.get_bind()).get_columns("rollup_sessions")
    names = ", ".join(column["name"] for column in sessions if column["name"] != "level")
    op.execute(
        f"INSERT INTO rollup_sessions (level, {names}) SELECT 900000, {names} "  # noqa: S608
        "FROM rollup_sessions WHERE level = 3600000 AND start < (SELECT CAST(value AS BIGINT) "
        "FROM ledger_facts WHERE name = 'rows_kept_from')"
    )
    op.execute(
        "INSERT INTO ledger_facts (name, value) SELECT 'rollups_missing', 'yes' "
        "WHERE EXISTS (SELECT 1 FROM turns) ON CONFLICT (name) DO NOTHING"
    )


def downgrade() -> None:
    op.drop_table("rollup_blocks")
    op.drop_table("rollup_lives")
    op.drop_index(op.f("ix_rollup_sessions_session_key_level_start"), "rollup_sessions")
    op.execute("DELETE FROM rollup_sessions WHERE level = 900000")


def _numbers(*names: str, **options: bool) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False, **options) for name in names]
