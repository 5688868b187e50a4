"""Know the turns that wait for a verdict on the cache."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

UNJUDGED = sa.text("cache_verdict IS NULL AND kind = 'generation'")


def upgrade() -> None:
    op.create_index(
        "ix_turns_unjudged",
        "turns",
        ["session_key"],
        sqlite_where=UNJUDGED,
        postgresql_where=UNJUDGED,
    )


def downgrade() -> None:
    op.drop_index("ix_turns_unjudged", "turns")
