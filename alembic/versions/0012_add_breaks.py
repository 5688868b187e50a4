"""Find breaks, and keep what operators say of their groups."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

BROKEN = sa.text(
    "kind = 'generation' AND status IN ('completed', 'incomplete') AND "
    "(eligible AND mode NOT IN ('ws_incremental', 'http_incremental') OR "
    "NOT eligible AND (reason IS NULL OR reason IN ('continuation_off', 'client_anchored')) AND "
    "cache_verdict IN ('prefix_changed', 'identity_change', 'idle', 'pinned_floor', "
    "'one_off_full', 'one_off_partial', 'persistent', 'unknown'))"
)


def upgrade() -> None:
    words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "break_decisions",
        sa.Column("break_group", words, nullable=False),
        sa.Column("state", words, nullable=False),
        sa.Column("decided_at", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("who", words, nullable=False),
        sa.PrimaryKeyConstraint("break_group", name=op.f("pk_break_decisions")),
    )
    op.create_index(
        "ix_turns_broken", "turns", ["started_at"], sqlite_where=BROKEN, postgresql_where=BROKEN
    )


def downgrade() -> None:
    op.drop_index("ix_turns_broken", "turns")
    op.drop_table("break_decisions")
