"""Find whose sub-agents sessions are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

SUB_AGENT = sa.text("root_session <> session")


def upgrade() -> None:
    op.create_index(
        "ix_turns_sub_agents",
        "turns",
        ["started_at", "session_key", "tenant", "session", "root_session"],
        sqlite_where=SUB_AGENT,
        postgresql_where=SUB_AGENT,
    )


def downgrade() -> None:
    op.drop_index("ix_turns_sub_agents", "turns")
