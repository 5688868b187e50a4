"""Keep records of logs beside the gateway's row of the same call."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "merged_records",
        sa.Column("record_id", WORDS, nullable=False),
        sa.Column("turn_id", WORDS, nullable=False),
        sa.Column("import_id", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("session_key", WORDS, nullable=False),
        sa.Column("tenant", WORDS, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("differs", sa.Boolean(), nullable=False),
        sa.Column("record", WORDS, nullable=False),
        sa.Column("before", WORDS, nullable=False),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_merged_records")),
    )
    op.create_index("uq_merged_records_turn_id", "merged_records", ["turn_id"], unique=True)
    for name in ("import_id", "session"):
        op.create_index(op.f(f"ix_merged_records_{name}"), "merged_records", [name])
    op.create_table(
        "unmerged_sessions",
        sa.Column("session", WORDS, nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("session", name=op.f("pk_unmerged_sessions")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("unmerged_sessions")
    op.drop_table("merged_records")
