"""Find the turns of a session by its name as well: filters take either."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(op.f("ix_turns_session_started_at"), "turns", ["session", "started_at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_turns_session_started_at"), "turns")
